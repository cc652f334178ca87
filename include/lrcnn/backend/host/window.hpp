#pragma once
// Which taps of a window meet the map, and loops over lanes that compilers turn into vector instructions.
//
// Everything below follows from tap_position() in shape/rows.hpp, along either axis.
#include <lrcnn/core/view.hpp>
#include <lrcnn/shape/rows.hpp>
#include <cassert>
#include <type_traits>
namespace lrcnn::host {
/// Output positions in [0, out_extent) at which a tap lies within some input positions.
constexpr Range outputs_within(const Axis& axis, Index tap, Range in, Index out_extent) {
  const Index shift = axis.pad_begin - tap * axis.dilation, low = in.begin + shift, high = in.end + shift;
  const Index begin = std::max<Index>(0, axis.stride == 1 ? low : ceil_div(low, axis.stride));
  const Index end = std::min(out_extent, axis.stride == 1 ? high : ceil_div(high, axis.stride));
  return {begin, std::max(begin, end)};
}
/// Likewise inside the map.
constexpr Range outputs_inside(const Axis& axis, Index tap, Index extent, Index out_extent) {
  return outputs_within(axis, tap, {0, extent}, out_extent);
}
/// Input positions from the first that `taps` of output position `out` read to behind the last.
constexpr Range positions(const Axis& axis, Index out, Range taps) {
  if (taps.empty()) return {0, 0};
  return {tap_position(axis, out, taps.begin), tap_position(axis, out, taps.end - 1) + 1};
}
/// The output position in `out` whose tap reads input position `in`; -1 if there is none.
constexpr Index output_reading(const Axis& axis, Index in, Index tap, Range out) {
  const Index scaled = in + axis.pad_begin - tap * axis.dilation;
  if (scaled < 0 || scaled % axis.stride != 0) return -1;
  const Index at = scaled / axis.stride;
  return out.begin <= at && at < out.end ? at : -1;
}
/// Start of row y of one channel; consecutive columns are `view.block` elements apart.
template <class T>
constexpr T* channel_row(const View<T>& view, Index i, Index c, Index y) {
  return view.block == 1 ? view.row(i, c, y) : view.row(i, c / view.block, y) + c % view.block;
}
/// Elements of the feature vector of image i: contiguous in every storage block, as it has one row and one column.
template <class T>
constexpr T* features(const View<T>& view, Index i) {
  assert(view.rows == 1 && view.w == 1 && (view.blocks() == 1 || view.stride_c == view.block));
  return view.data + i * view.stride_n;
}
/// A number of lanes that is known when compiling.
template <Index n>
using Lanes = std::integral_constant<Index, n>;
/// Calls f(Lanes<L>, first lane) for groups of lanes that cover a storage block.
template <class F>
void for_lanes(Index block, F&& f) {
  if (block == 16) return f(Lanes<16>{}, Index{0});
  if (block == 8) return f(Lanes<8>{}, Index{0});
  for (Index lane = 0; lane < block; ++lane) f(Lanes<1>{}, lane);
}
}   // namespace lrcnn::host
