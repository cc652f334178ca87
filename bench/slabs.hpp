#pragma once
// Convolutions of slabs alone: what each kind of arithmetic reaches at each height.
//
// Operations are counted as the formula has them, two for each tap and channel, so Winograd may reach more than a processor
// can multiply and add; the peak it is compared with is what direct arithmetic reaches on a whole map of 28 rows with 512 channels.
#include "../examples/cpu_backend.hpp"
#include <lrcnn/core/memory.hpp>
#include <lrcnn/core/rng.hpp>
#include <lrcnn/network/table.hpp>
#include <chrono>
#include <vector>
namespace bench {
using namespace lrcnn;
#ifdef LRCNN_WITH_ONEDNN
/// One pass of a 3x3 convolution over the first rows of eight square maps, with memory of its own.
struct SlabProblem {
  Index c = 512, k = 512, size = 28, rows = 28;
  Op op = Op::forward;
  ConvAlgorithm conv_algorithm = ConvAlgorithm::direct;
  /// "conv/512to512/28/forward/direct/28"
  std::string name() const {
    return "conv/" + std::to_string(c) + "to" + std::to_string(k) + "/" + std::to_string(size) + "/" + std::string(op_name(op)) + "/" +
           (conv_algorithm == ConvAlgorithm::direct ? "direct/" : "winograd/") + std::to_string(rows);
  }
};
class SlabConvolution {
 public:
  SlabConvolution(const SlabProblem& p, int threads) : backend_(threads) {
    const std::array layers{Layer{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = p.k}};
    node_ = make_table(layers, {images, p.c, p.size, p.size}).nodes[0];
    const Range out{0, p.rows}, in = in_rows(row_axis(node_.layer.window), out, p.size);
    const auto map = [&](const Shape& s, Range rows) {
      const Index block = backend_.layout().block(s.c);
      return dense_view(numbers(stored_elements(s.n, s.c, rows.size(), s.w, block)), s.n, s.c, rows, s.w, block);
    };
    const View<float> x = map(node_.in, in), y = map(node_.out, out);
    o_.op = p.op, o_.node = &node_, o_.conv_algorithm = p.conv_algorithm;
    if (p.op == Op::backward_data) o_.dx = x;
    else o_.x = x;
    if (p.op == Op::forward) o_.y = y;
    else o_.dy = y;
    o_.parameters = {numbers(p.c * p.k * 9), numbers(p.k)};
    o_.d_parameters = {numbers(p.c * p.k * 9), numbers(p.k)};
    o_.packed = numbers(p.c * p.k * 9), o_.scratch = numbers(p.c * p.k * 9);
    o_.workspace_bytes = 64_MiB;
    o_.workspace = reinterpret_cast<std::byte*>(numbers(o_.workspace_bytes / 4));
    prepared_ = backend_.prepare(o_);
    operations_ = 2.0 * 9 * static_cast<double>(p.c * p.k * p.size * p.rows * images);
    run();
  }
  void run() { backend_.run(prepared_, o_); }
  double operations() const { return operations_; }
  /// Operations in a second, the best of some runs.
  double best_rate() {
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run();
      best = std::max(best, operations_ / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  }

 private:
  static constexpr Index images = 8;
  float* numbers(Index count) {
    auto* const data = reinterpret_cast<float*>(memory_.emplace_back(count * 4, "a convolution's benchmark").data());
    const Random random(memory_.size(), 1);
    for (Index i = 0; i < count; ++i) data[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)) - 0.5);
    return data;
  }
  Onednn backend_;
  std::vector<Arena> memory_;
  Node node_;
  Operands<float> o_;
  Onednn::Prepared prepared_;
  double operations_ = 0;
};
/// What VGG-16 has at 224x224, whole maps and slabs from 28 rows down.
inline std::vector<SlabProblem> slab_problems() {
  std::vector<SlabProblem> list;
  for (const SlabProblem& layer :
       {SlabProblem{64, 64, 224}, SlabProblem{128, 128, 112}, SlabProblem{256, 256, 56}, SlabProblem{512, 512, 28}, SlabProblem{512, 512, 14}})
    for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters})
      for (const ConvAlgorithm algorithm : {ConvAlgorithm::direct, ConvAlgorithm::winograd})
        for (Index rows = layer.size; rows >= 2; rows = rows > 28 ? 28 : rows / 2)
          list.push_back({layer.c, layer.k, layer.size, rows, op, algorithm});
  return list;
}
#endif
}   // namespace bench
