#pragma once
// Pooling as descriptors.
#include <lrcnn/layer/layer.hpp>
namespace lrcnn {
/// Largest value of each window; padding counts as -inf; of equals the first in row-major order wins.
/// Shapes:  x [N,C,H,W] -> y [N,C,P,Q], as a convolution's
/// Errors:  padding must be smaller than the window, so that no window lies wholly in padding
/// Window{.ceil = true}: extents are rounded up, as PyTorch's ceil_mode does; a window that would begin behind the map is left out.
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
}  // namespace lrcnn
