#pragma once
// Pooling as descriptors.
#include <lrcnn/layer/rules.hpp>
namespace lrcnn {
/// Largest value of each window; padding counts as -inf; of equals the first in row-major order wins.
/// Shapes:  x [N,C,H,W] -> y [N,C,P,Q], as a convolution's
/// Errors:  padding must be smaller than the window, so that no window lies wholly in padding
/// Window{.ceil = true}: extents are rounded up, as PyTorch's ceil_mode does; a window that would begin behind the map is left out.
/// A map that lacks less than a stride for one window has one.
template <Window window = Window{.kernel = 2, .stride = 2}>
struct MaxPool {
  static constexpr Layer layer() { return {.kind = Kind::max_pool, .window = window}; }
};
/// Mean of each window. count_padding: divide by the window's size, rather than by the positions inside the map; what lies beyond the
/// padding (Window::ceil) never counts.
template <Window window = Window{.kernel = 2, .stride = 2}, bool count_padding = true>
struct AvgPool {
  static constexpr Layer layer() { return {.kind = Kind::avg_pool, .window = window, .count_padding = count_padding}; }
};
/// Means of windows that cover the map, to P rows and Q columns whatever the map's extents: output row p is the mean of rows
/// floor(p * H / P) to ceil((p + 1) * H / P) - 1. As PyTorch's.
/// Shapes:  x [N,C,H,W] -> y [N,C,P,Q]
template <Index P, Index Q = P>
struct AdaptiveAvgPool {
  static constexpr Layer layer() { return {.kind = Kind::adaptive_avg_pool, .pooled = {P, Q}}; }
};
/// Mean over all rows and columns: x [N,C,H,W] -> y [N,C,1,1]. Takes rows as they come; ends a stage.
struct GlobalAvgPool {
  static constexpr Layer layer() { return {.kind = Kind::global_avg_pool}; }
};
namespace detail {
/// Whether some window of a pool has no place on an input of this extent.
constexpr bool misses_input(const Axis& axis, Index extent) {
  if (std::max(axis.pad_begin, axis.pad_end) >= axis.extent()) return true;
  if (!known(extent) || axis.dilation <= extent) return false;   // no gap between places is wider than the input
  for (Index out = 0, end = out_extent(axis, extent); out < end;) {
    const Range taps = taps_inside(axis, out, extent);
    if (taps.empty()) return true;
    out = (extent - 1 + axis.pad_begin - taps.begin * axis.dilation) / axis.stride + 1;   // the windows between have that place, too
  }
  return false;
}
constexpr Fault fault_of_pool(const Layer& layer, const Shape& in, const Shape&) {
  if (misses_input(row_axis(layer.window), in.h) || misses_input(column_axis(layer.window), in.w)) return Fault::pad_too_large;
  return layer.kind == Kind::max_pool && layer.window.kernel.h * layer.window.kernel.w > 256 ? Fault::window_too_large : Fault::none;
}
constexpr BackwardReads reads_indices(const Layer&) { return {.indices = true}; }
constexpr Axis adaptive_rows(const Layer& layer, const Shape& in) { return adaptive_axis(layer.pooled.h, in.h); }
constexpr Shape adaptive_shape(const Layer& layer, const Shape& in, const Shape&) { return {in.n, in.c, layer.pooled.h, layer.pooled.w}; }
constexpr Fault fault_of_adaptive(const Layer& layer, const Shape&, const Shape&) {
  return layer.pooled.h < 1 || layer.pooled.w < 1 ? Fault::bad_pooled : Fault::none;
}
inline std::string pooled_text(const Layer& layer) { return " to " + pair_text(layer.pooled); }
constexpr Shape shape_of_means(const Layer&, const Shape& in, const Shape&) { return {in.n, in.c, 1, 1}; }
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::max_pool>{
    .name = "max_pool", .counted_as = "pool", .rows = RowMap::window, .backward = detail::reads_indices, .fault = detail::fault_of_pool};
template <>
inline constexpr LayerRules kind_rules<Kind::avg_pool>{
    .name = "avg_pool", .counted_as = "pool", .rows = RowMap::window, .fault = detail::fault_of_pool};
template <>
inline constexpr LayerRules kind_rules<Kind::adaptive_avg_pool>{.name = "adaptive_avg_pool",
                                                                .details = detail::pooled_text,
                                                                .rows = RowMap::own,
                                                                .axis = detail::adaptive_rows,
                                                                .output = detail::adaptive_shape,
                                                                .fault = detail::fault_of_adaptive};
template <>
inline constexpr LayerRules kind_rules<Kind::global_avg_pool>{
    .name = "global_avg_pool", .rows = RowMap::all, .reduces = true, .output = detail::shape_of_means};
}   // namespace lrcnn
