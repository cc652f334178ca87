#pragma once
// The eight ways to lay a square: turned by quarter turns, mirrored or not.
#include <lrcnn/shape/window.hpp>
namespace lrcnn {
/// A picture is mirrored first (left and right exchanged), if so, then turned counter-clockwise.
struct Orientation {
  bool mirrored = false;
  int quarter_turns = 0;   ///< 0 to 3
  friend constexpr bool operator==(const Orientation&, const Orientation&) = default;
};
/// What comes of one after the other.
constexpr Orientation then(Orientation first, Orientation second) {
  const int turns = second.quarter_turns + (second.mirrored ? 4 - first.quarter_turns : first.quarter_turns);
  return {first.mirrored != second.mirrored, turns % 4};
}
/// Rows and columns of the result, of a picture of h x w.
constexpr Pair extents(Orientation o, Pair of) { return o.quarter_turns % 2 == 0 ? of : Pair{of.w, of.h}; }
/// Where pixel `at` of the result lies in the picture, which is h x w.
constexpr Pair source_of(Orientation o, Pair picture, Pair at) {
  Pair size = extents(o, picture);
  for (int turn = 0; turn < o.quarter_turns; ++turn) {
    at = {at.w, size.h - 1 - at.h};   // a turn puts the picture's last column into the first row
    size = {size.w, size.h};
  }
  return {at.h, o.mirrored ? picture.w - 1 - at.w : at.w};
}
/// Lays a picture so. Shapes: from [h][w], to [extents(o, picture)], both dense.
template <class From, class To>
void orient(Orientation o, Pair picture, const From* from, To* to) {
  const Pair size = extents(o, picture);
  const auto at = [&](Index y, Index x) {
    const Pair p = source_of(o, picture, {y, x});
    return p.h * picture.w + p.w;
  };
  const Index start = at(0, 0), down = size.h > 1 ? at(1, 0) - start : 0, right = size.w > 1 ? at(0, 1) - start : 0;
  for (Index y = 0; y < size.h; ++y)
    for (Index x = 0; x < size.w; ++x) *to++ = static_cast<To>(from[start + y * down + x * right]);
}
}   // namespace lrcnn
