#pragma once
// Rows and columns around a map, as descriptors.
#include <lrcnn/layer/layer.hpp>
namespace lrcnn {
namespace detail {
constexpr Layer pad_layer(const Pad& pad, bool reflect) {
  return {.kind = Kind::pad, .window = {.kernel = 1, .pad = pad}, .reflect = reflect};
}
}  // namespace detail
/// Zeros around a map: `ZeroPad<1>` on all sides, `ZeroPad<Pad{1, 2}>` one row and two columns on each side, `ZeroPad<Pad{0, 1, 0, 1}>`
/// at the bottom and on the right. Negative numbers take rows and columns away.
/// Shapes:  x [N,C,H,W] -> y [N,C,H+top+bottom,W+left+right]
/// Errors:  a row and a column must be left
template <Pad pad>
struct ZeroPad {
  static constexpr Layer layer() { return detail::pad_layer(pad, false); }
};
/// Takes rows and columns away: `Crop<2>`, `Crop<Pad{0, 1, 0, 1}>`.
template <Pad pad>
using Crop = ZeroPad<Pad{-pad.top, -pad.bottom, -pad.left, -pad.right}>;
/// The map's own rows and columns around it, in reverse, without its outermost ones: 3 2 1 2 3 for 1 2 3 and two columns on the left.
/// Shapes:  x [N,C,H,W] -> y [N,C,H+top+bottom,W+left+right]
/// Errors:  padding must not be negative, and smaller than the map's extents
template <Pad pad>
struct ReflectPad {
  static constexpr Layer layer() { return detail::pad_layer(pad, true); }
};
}  // namespace lrcnn
