#pragma once
// Convolution, and the one that goes the other way, as descriptors.
#include <lrcnn/layer/layer.hpp>
namespace lrcnn {
/// Options that few convolutions need.
struct ConvOptions {
  Index groups = 1;   ///< input and output channels are divided into so many independent groups
  bool bias = true;
  friend constexpr bool operator==(const ConvOptions&, const ConvOptions&) = default;
};
/// Convolution to K channels. The number of input channels is inferred.
/// Shapes:  x [N,C,H,W], weight [K,C/groups,R,S], bias [K] -> y [N,K,P,Q], P = floor((H + top + bottom - e) / stride) + 1,
///          e = (R - 1) * dilation + 1, likewise Q
/// Errors:  groups must divide C and K; the window must fit into the padded input (compile time for Fixed networks,
///          ShapeError otherwise)
template <Index K, Window window = Window{.kernel = 3, .pad = 1}, ConvOptions options = ConvOptions{}>
struct Conv {
  static constexpr Layer layer() {
    return {.kind = Kind::conv, .window = window, .channels = K, .groups = options.groups, .bias = options.bias};
  }
};
/// Transposed convolution to K channels: the map from y to x of which a convolution with this window is the map from x to y's
/// gradient. ConvTranspose<K> makes maps twice as large. As PyTorch's, without output padding.
/// Shapes:  x [N,C,H,W], weight [C,K/groups,R,S], bias [K] -> y [N,K,P,Q], P = (H - 1) * stride + (R - 1) * dilation + 1 - top - bottom,
///          likewise Q
/// Errors:  groups must divide C and K; padding must leave a row and a column
template <Index K, Window window = Window{.kernel = 2, .stride = 2}, ConvOptions options = ConvOptions{}>
struct ConvTranspose {
  static constexpr Layer layer() {
    return {.kind = Kind::conv_transpose, .window = window, .channels = K, .groups = options.groups, .bias = options.bias};
  }
};
}  // namespace lrcnn
