#pragma once
// One pass of a layer's convolution over slabs of one shape, by Winograd's algorithm.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/host/winograd.hpp>
#include <vector>
namespace lrcnn::host {
class WinogradConvolution {
 public:
  /// The pass, if Winograd's algorithm is one for it: 3x3 filters, stride 1, no groups, tensors in blocks of floats as wide as
  /// the vectors.
  /// Shapes:  x (or dx) and y (or dy) of the slab; their memory is not touched
  static std::optional<winograd::SlabPass> pass(const Node& node, Op op, const View<const float>& x, const View<const float>& y, Vectors vectors) {
    const Layer& layer = node.layer;
    const Window& w = layer.window;
    const Index lanes = vector_block(vectors);
    const bool suits = layer.kind == Kind::conv && w.kernel == Pair(3) && w.stride == Pair(1) && w.dilation == Pair(1) && layer.groups == 1 &&
                       w.pad.top < 3 && w.pad.bottom < 3 && w.pad.left < 3 && w.pad.right < 3 && x.block == lanes && y.block == lanes && x.n > 0 &&
                       x.rows > 0 && y.rows > 0;
    if (!suits || !LRCNN_WINOGRAD) return {};
    const Index top = pad_rows(row_axis(w), y.range(), x.range()).top, c = round_up(x.c, lanes), k = round_up(y.c, lanes);
    if (op != Op::backward_data) return winograd::SlabPass{x.n, c, k, x.rows, x.w, y.rows, y.w, top, w.pad.left};
    return winograd::SlabPass{x.n, k, c, y.rows, y.w, x.rows, x.w, 2 - top, 2 - w.pad.left};
  }
  /// Pre:     the processor has `vectors`, and `pass` is for them
  WinogradConvolution(const winograd::SlabPass& pass, const winograd::Blocking& blocking, int threads, Vectors vectors)
      : pass_(pass), blocking_(blocking), threads_(threads), vectors_(vectors), bias_(static_cast<std::size_t>(pass.out_c)) {}
  /// Whether run() applies the activation that belongs to a forward step.
  static bool activates(const Operands<float>& o) { return o.activation != nullptr && o.activation->layer.activation.function == Function::relu; }
  /// Whether it is likely to be faster than direct arithmetic.
  bool pays() const { return winograd::pays(pass_.out_rows, pass_.out_w); }
  const winograd::Blocking& blocking() const { return blocking_; }
  /// Pre:     `o` has the shapes of pass(); with l lanes packed filters are [k / l][c / l][9][l c][l k], for data gradients
  ///          [k / l][c / l][9][l k][l c]
  void run(const Operands<float>& o) {
#if LRCNN_WINOGRAD
    winograd::with_kernels(vectors_, [&](auto kernels) { run_on<decltype(kernels)>(o); });
#else
    static_cast<void>(o);
#endif
  }

 private:
#if LRCNN_WINOGRAD
  template <class K>
  void run_on(const Operands<float>& o) {
    constexpr Index square = K::lanes * K::lanes * 9;
    auto* const scratch = reinterpret_cast<float*>(o.workspace);
    const Index in_blocks = pass_.in_c / K::lanes, out_blocks = pass_.out_c / K::lanes;
    if (o.op == Op::forward) {
      const float* bias = o.parameters[1];
      if (bias != nullptr) std::copy_n(bias, o.node->out.c, bias_.data()), bias = bias_.data();
      winograd::run<K>(pass_, blocking_, threads_, o.x, {o.packed, in_blocks * square, square, false}, {o.y, bias, activates(o), o.saved}, scratch);
    } else if (o.op == Op::backward_data) {
      winograd::run<K>(pass_, blocking_, threads_, o.dy, {o.packed, square, out_blocks * square, true}, {o.dx}, scratch);
    } else {
      winograd::run_gradient<K>(pass_, blocking_, threads_, o.x, o.dy,
                                {o.node->out.c, o.node->in.c, o.accumulate, o.d_parameters[0], o.d_parameters[1]}, scratch);
    }
  }
#endif
  winograd::SlabPass pass_;
  winograd::Blocking blocking_;
  int threads_;
  Vectors vectors_;
  std::vector<float> bias_;   ///< with zeros for the channels that are padding
};
}   // namespace lrcnn::host
