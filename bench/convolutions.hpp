#pragma once
// The convolutions of a network alone: what a training step with direct arithmetic cannot be faster than.
//
// Forward, data gradient (not of the first layer) and filter gradient of each, over whole maps, by oneDNN's direct
// kernels with filters in the layout that oneDNN likes best, on normally distributed numbers. Nothing else is timed.
#include "../examples/cpu_backend.hpp"
#include <lrcnn/core/rng.hpp>
#include <lrcnn/network/table.hpp>
#include <chrono>
#include <memory>
#include <vector>
namespace bench {
using namespace lrcnn;
#ifdef LRCNN_WITH_ONEDNN
class Convolutions {
 public:
  Convolutions(const Table& table, int threads) : threads_(threads), layout_(Cpu(threads).layout()) {
    use_threads();
    for (const Node& node : table.nodes) {
      if (node.layer.kind != Kind::conv) continue;
      for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters})
        if (op != Op::backward_data || &node != first_convolution(table)) add(node, op);
    }
    const Random random(2, 1);
    for (auto* buffer : {&x_, &w_, &dy_})
      for (std::size_t i = 0; i < buffer->size(); ++i) (*buffer)[i] = static_cast<float>(random.normal(i));
    for (Bound& b : calls_)
      b.call.bind_all({b.op == Op::backward_data ? dy_.data() : x_.data(), b.op == Op::backward_parameters ? dy_.data() : w_.data(), out_.data(),
                       scratch_.data(), bias_.data()});
    seconds();   // first touch, and what the library makes once
  }
  /// Runs all of them once.
  double seconds() {
    use_threads();
    const auto start = std::chrono::steady_clock::now();
    for (const Bound& b : calls_) b.call.run(library_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  struct Bound {
    Op op;
    onednn::Call call;
  };
  void use_threads() const {
#ifdef _OPENMP
    if (threads_ > 0) omp_set_num_threads(threads_);
#endif
  }
  static const Node* first_convolution(const Table& table) {
    for (const Node& node : table.nodes)
      if (node.layer.kind == Kind::conv) return &node;
    return nullptr;
  }
  static void hold(std::vector<float>& buffer, const onednn::MemoryDesc& desc) {
    buffer.resize(std::max(buffer.size(), desc.get_size() / sizeof(float) + 16));
  }
  template <class Description>
  void add(Op op, const Description& pd, int a_name, const onednn::MemoryDesc& a, int b_name, const onednn::MemoryDesc& b, int out_name,
           const onednn::MemoryDesc& out, int bias_name, const onednn::MemoryDesc& bias) {
    hold(op == Op::backward_data ? dy_ : x_, a);
    hold(op == Op::backward_parameters ? dy_ : w_, b);
    hold(out_, out);
    hold(bias_, bias);
    hold(scratch_, pd.scratchpad_desc());
    calls_.push_back({op, onednn::Call(library_, dnnl::primitive(pd),
                                       {{a_name, a}, {b_name, b}, {out_name, out}, {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}, {bias_name, bias}})});
  }
  void add(const Node& node, Op op) {
    const auto d = onednn::conv_desc(node, layout_, op, node.in.n, {0, node.in.h}, {0, node.out.h});
    if (op == Op::forward) {
      const auto pd = onednn::api::forward(library_, d, onednn::api::any);
      add(op, pd, DNNL_ARG_SRC, d.x, DNNL_ARG_WEIGHTS, pd.weights_desc(), DNNL_ARG_DST, d.y, DNNL_ARG_BIAS, d.b);
    } else if (op == Op::backward_data) {
      const auto pd = onednn::api::backward_data(library_, d, onednn::api::any);
      add(op, pd, DNNL_ARG_DIFF_DST, d.y, DNNL_ARG_WEIGHTS, pd.weights_desc(), DNNL_ARG_DIFF_SRC, d.x, DNNL_ARG_BIAS, {});
    } else {
      const auto pd = onednn::api::backward_parameters(library_, d, onednn::api::any);
      add(op, pd, DNNL_ARG_SRC, d.x, DNNL_ARG_DIFF_DST, d.y, DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), DNNL_ARG_DIFF_BIAS, d.b);
    }
  }
  int threads_;   // 0: as many as there are
  Target layout_;
  onednn::Library library_;
  std::vector<Bound> calls_;
  std::vector<float> x_, w_, dy_, out_, bias_, scratch_;
};
#endif
}   // namespace bench
