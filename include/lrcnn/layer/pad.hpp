#pragma once
// Rows and columns around a map, as descriptors.
#include <lrcnn/layer/rules.hpp>
namespace lrcnn {
/// The layer of ZeroPad or, with `reflect`, of ReflectPad, for rows and columns that are known only at run time.
constexpr Layer pad_layer(const Pad& pad, bool reflect) { return {.kind = Kind::pad, .window = {.kernel = 1, .pad = pad}, .reflect = reflect}; }
/// Zeros around a map: `ZeroPad<1>` on all sides, `ZeroPad<Pad{1, 2}>` one row and two columns on each side, `ZeroPad<Pad{0, 1, 0, 1}>`
/// at the bottom and on the right. Negative numbers take rows and columns away.
/// Shapes:  x [N,C,H,W] -> y [N,C,H+top+bottom,W+left+right]
/// Errors:  a row and a column must be left
template <Pad pad>
struct ZeroPad {
  static constexpr Layer layer() { return pad_layer(pad, false); }
};
/// Takes rows and columns away: `Crop<2>`, `Crop<Pad{0, 1, 0, 1}>`.
template <Pad pad>
using Crop = ZeroPad<Pad{-pad.top, -pad.bottom, -pad.left, -pad.right}>;
/// The map's own rows and columns around it, in reverse, without its outermost ones: 3 2 1 2 3 for 1 2 3 and two columns on the left.
/// Shapes:  x [N,C,H,W] -> y [N,C,H+top+bottom,W+left+right]
/// Errors:  padding must not be negative, and smaller than the map's extents
template <Pad pad>
struct ReflectPad {
  static constexpr Layer layer() { return pad_layer(pad, true); }
};
namespace detail {
constexpr bool reflects_too_far(const Axis& axis, Index extent) {
  return axis.pad_begin < 0 || axis.pad_end < 0 || (known(extent) && std::max(axis.pad_begin, axis.pad_end) >= extent);
}
constexpr Fault fault_of_pad(const Layer& layer, const Shape& in, const Shape&) {
  const Axis rows = row_axis(layer.window), columns = column_axis(layer.window);
  if (layer.window.kernel != Pair(1) || layer.window.stride != Pair(1) || layer.window.ceil) return Fault::bad_window;
  if (layer.reflect) return reflects_too_far(rows, in.h) || reflects_too_far(columns, in.w) ? Fault::bad_reflection : Fault::none;
  return fault_of_fit(layer.window, in) == Fault::none ? Fault::none : Fault::nothing_left;
}
constexpr Axis padded_rows(const Layer& layer, const Shape&) {
  const Axis window = row_axis(layer.window);
  return layer.reflect ? reflected_axis(window) : window;
}
constexpr Shape padded_shape(const Layer& layer, const Shape& in, const Shape&) { return windowed_shape(layer, in); }
inline std::string pad_text(const Layer& layer) {
  const Pad& p = layer.window.pad;
  return " by " + std::to_string(p.top) + ',' + std::to_string(p.bottom) + ',' + std::to_string(p.left) + ',' + std::to_string(p.right) +
         (layer.reflect ? ", reflected" : ", zeros");
}
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::pad>{.name = "pad",
                                                  .details = detail::pad_text,
                                                  .rows = RowMap::own,
                                                  .axis = detail::padded_rows,
                                                  .output = detail::padded_shape,
                                                  .fault = detail::fault_of_pad};
}   // namespace lrcnn
