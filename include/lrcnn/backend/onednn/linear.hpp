#pragma once
// Linear layers as matrix products on the canonical weights.
//
// The library's blocked matrix product takes its scratch from the caller; its other one allocates while it runs, so
// small layers, for which it picks that, are left to our own loops.
#include <lrcnn/backend/onednn/convert.hpp>
#include <algorithm>
#include <string>
namespace lrcnn::onednn {
/// One pass of a linear layer over a number of images.
class Linear {
 public:
  /// Shapes:  forward             x [N,F] -> y [N,K];  backward_data dy [N,K] -> dx [N,F]
  ///          backward_parameters x, dy -> dw [K,F], db [K]
  Linear(const Library& library, const Operands<float>& o) : op_(o.op) {
    const Index in = o.node->in.c, out = o.node->out.c;
    const auto vectors = [](const auto& v) { return strided({v.n, v.c}, {v.stride_n, 1}); };
    MemoryDesc a, b, c, bias;
    if (op_ == Op::forward) {
      a = vectors(o.x), b = strided({in, out}, {1, in}), c = vectors(o.y);
      if (o.node->layer.bias) bias = strided({1, out}, {out, 1});
    } else if (op_ == Op::backward_data) {
      a = vectors(o.dy), b = strided({out, in}, {in, 1}), c = vectors(o.dx);
    } else {
      a = strided({out, o.dy.n}, {1, o.dy.stride_n}), b = vectors(o.x), c = strided({out, in}, {in, 1});
    }
    const auto pd = api::matmul(library, a, b, bias, c, op_ == Op::backward_parameters && o.accumulate);
    if (!pd || std::string_view(pd.impl_info_str()).find("brg") == std::string_view::npos) return;
    const MemoryDesc scratch = pd.scratchpad_desc();
    if (static_cast<Index>(scratch.get_size()) > o.workspace_bytes) return;
    name_ = pd.impl_info_str();
    bytes_ = static_cast<Index>(scratch.get_size());
    call_ = Call(library, dnnl::matmul(pd), {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c},
                                             {DNNL_ARG_SCRATCHPAD, scratch}, {DNNL_ARG_BIAS, bias}});
  }
  bool served() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  Index workspace_bytes() const { return bytes_; }
  void run(const Library& library, const Operands<float>& o) {
    if (op_ == Op::forward) {
      call_.bind_all({o.x.data, o.parameters[0], o.y.data, o.workspace, o.parameters[1]});
      call_.run(library);
      clear_padding(o.y);
    } else if (op_ == Op::backward_data) {
      call_.bind_all({o.dy.data, o.parameters[0], o.dx.data, o.workspace});
      call_.run(library);
      clear_padding(o.dx);
    } else {
      call_.bind_all({o.dy.data, o.x.data, o.d_parameters[0], o.workspace});
      call_.run(library);
      if (o.node->layer.bias) add_bias(o);
    }
  }

 private:
  static void clear_padding(const View<float>& v) {
    for (Index i = 0; i < v.n; ++i)
      std::fill(v.data + i * v.stride_n + v.c, v.data + i * v.stride_n + round_up(v.c, v.block), 0.f);
  }
  static void add_bias(const Operands<float>& o) {
    float* d = o.d_parameters[1];
    if (!o.accumulate) std::fill_n(d, o.dy.c, 0.f);
    for (Index i = 0; i < o.dy.n; ++i)
      for (Index k = 0; k < o.dy.c; ++k) d[k] += o.dy.data[i * o.dy.stride_n + k];
  }
  Op op_;
  Call call_;
  std::string name_;
  Index bytes_ = 0;
};
}  // namespace lrcnn::onednn
