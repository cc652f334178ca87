#pragma once
// The sliding window of convolutions and pools: kernel, stride, padding, dilation.
#include <lrcnn/core/types.hpp>
#include <compare>
#include <string>
namespace lrcnn {
/// A value along the height and one along the width. `3` means both.
struct Pair {
  Index h = 1;
  Index w = 1;
  constexpr Pair(Index both) : h(both), w(both) {}
  constexpr Pair(Index height, Index width) : h(height), w(width) {}
  friend constexpr bool operator==(const Pair&, const Pair&) = default;
  friend constexpr auto operator<=>(const Pair&, const Pair&) = default;
};
/// Padding of the four borders. `1` means all, `{1, 2}` means height and width.
struct Pad {
  Index top = 0;
  Index bottom = 0;
  Index left = 0;
  Index right = 0;
  constexpr Pad(Index all) : top(all), bottom(all), left(all), right(all) {}
  constexpr Pad(Index height, Index width) : top(height), bottom(height), left(width), right(width) {}
  constexpr Pad(Index t, Index b, Index l, Index r) : top(t), bottom(b), left(l), right(r) {}
  friend constexpr bool operator==(const Pad&, const Pad&) = default;
  friend constexpr auto operator<=>(const Pad&, const Pad&) = default;
};
/// A window over rows and columns. Usable as a template argument when the type is named:
/// `Conv<64, Window{.kernel = 5, .stride = 2, .pad = 2}>`.
struct Window {
  Pair kernel = 3;
  Pair stride = 1;
  Pad pad = 0;
  Pair dilation = 1;
  bool ceil = false;   ///< pools: the extent is rounded up; the last window begins in the map or before it, and may end beyond the padding
  friend constexpr bool operator==(const Window&, const Window&) = default;
};
/// One axis of a window: everything that the row algebra needs to know of it.
struct Axis {
  Index kernel = 1;
  Index stride = 1;
  Index pad_begin = 0;
  Index pad_end = 0;
  Index dilation = 1;
  Index up = 1;   ///< output positions for every `stride` input positions, where a layer makes maps larger
  bool ceil = false;
  /// Input positions that one output position spans: (kernel - 1) * dilation + 1.
  constexpr Index extent() const { return (kernel - 1) * dilation + 1; }
  friend constexpr bool operator==(const Axis&, const Axis&) = default;
};
constexpr Axis row_axis(const Window& w) { return {w.kernel.h, w.stride.h, w.pad.top, w.pad.bottom, w.dilation.h, 1, w.ceil}; }
constexpr Axis column_axis(const Window& w) { return {w.kernel.w, w.stride.w, w.pad.left, w.pad.right, w.dilation.w, 1, w.ceil}; }
/// "kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1" (pads: top, bottom, left, right), and "ceil" where that is set
inline std::string to_string(const Window& w) {
  const auto pair = [](const Pair& p) { return std::to_string(p.h) + 'x' + std::to_string(p.w); };
  return "kernel " + pair(w.kernel) + " stride " + pair(w.stride) + " pad " + std::to_string(w.pad.top) + ',' + std::to_string(w.pad.bottom) + ',' +
         std::to_string(w.pad.left) + ',' + std::to_string(w.pad.right) + " dilation " + pair(w.dilation) + (w.ceil ? " ceil" : "");
}
}   // namespace lrcnn
