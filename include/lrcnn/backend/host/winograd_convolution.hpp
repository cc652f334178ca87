#pragma once
// One pass of a layer's convolution over slabs of one shape, by Winograd's algorithm.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/host/winograd.hpp>
#include <vector>
namespace lrcnn::host {
class WinogradConvolution {
 public:
  /// The pass, if Winograd's algorithm is one for it: 3x3 filters, stride 1, no groups, tensors in blocks of 16 floats, on a
  /// machine that has the instructions.
  /// Shapes:  x (or dx) and y (or dy) of the slab; their memory is not touched
  static std::optional<winograd::SlabPass> pass(const Node& node, Op op, const View<const float>& x, const View<const float>& y) {
    const Layer& layer = node.layer;
    const Window& w = layer.window;
    const bool suits = layer.kind == Kind::conv && w.kernel == Pair(3) && w.stride == Pair(1) && w.dilation == Pair(1) && layer.groups == 1 &&
                       w.pad.top < 3 && w.pad.bottom < 3 && w.pad.left < 3 && w.pad.right < 3 && x.block == winograd::lanes && y.block == winograd::lanes && x.n > 0 &&
                       x.rows > 0 && y.rows > 0;
    if (!suits || !winograd::available()) return {};
    const Index top = pad_rows(row_axis(w), y.range(), x.range()).top, c = round_up(x.c, winograd::lanes), k = round_up(y.c, winograd::lanes);
    if (op != Op::backward_data) return winograd::SlabPass{x.n, c, k, x.rows, x.w, y.rows, y.w, top, w.pad.left};
    return winograd::SlabPass{x.n, k, c, y.rows, y.w, x.rows, x.w, 2 - top, 2 - w.pad.left};
  }
  WinogradConvolution(const winograd::SlabPass& pass, const winograd::Blocking& blocking, int threads)
      : pass_(pass), blocking_(blocking), threads_(threads), bias_(static_cast<std::size_t>(pass.out_c)) {}
  /// Whether run() applies the activation that belongs to a forward step.
  static bool activates(const Operands<float>& o) { return o.activation != nullptr && o.activation->layer.activation.function == Function::relu; }
  /// Whether it is likely to be faster than direct arithmetic.
  bool pays() const { return winograd::pays(pass_); }
  const winograd::Blocking& blocking() const { return blocking_; }
  /// Pre:     `o` has the shapes of pass(); packed filters are [k / 16][c / 16][9][16 c][16 k], for data gradients
  ///          [k / 16][c / 16][9][16 k][16 c]
  void run(const Operands<float>& o) {
#if LRCNN_WINOGRAD
    constexpr Index square = winograd::lanes * winograd::lanes * 9;
    auto* const scratch = reinterpret_cast<float*>(o.workspace);
    const Index in_blocks = pass_.in_c / winograd::lanes, out_blocks = pass_.out_c / winograd::lanes;
    if (o.op == Op::forward) {
      const float* bias = o.parameters[1];
      if (bias != nullptr) std::copy_n(bias, o.node->out.c, bias_.data()), bias = bias_.data();
      winograd::run(pass_, blocking_, threads_, o.x, {o.packed, in_blocks * square, square, false}, {o.y, bias, activates(o), o.saved}, scratch);
    } else if (o.op == Op::backward_data) {
      winograd::run(pass_, blocking_, threads_, o.dy, {o.packed, square, out_blocks * square, true}, {o.dx}, scratch);
    } else {
      winograd::run_gradient(pass_, blocking_, threads_, o.x, o.dy, o.node->out.c, o.node->in.c, o.accumulate, o.d_parameters[0],
                             o.d_parameters[1], scratch);
    }
#else
    static_cast<void>(o);
#endif
  }

 private:
  winograd::SlabPass pass_;
  winograd::Blocking blocking_;
  int threads_;
  std::vector<float> bias_;   ///< with zeros for the channels that are padding
};
}  // namespace lrcnn::host
