#pragma once
// The row algebra: which rows need which, stated once.
//
// A windowed layer with kernel k, stride s, dilation d, padding p (top) and q (bottom) has e = (k-1)d + 1 and
//     out_extent(H)     = floor((H + p + q - e) / s) + 1, or rounded up, less a last window that begins at H + p or behind (ceil)
//     in_rows([a,b))    = [a*s - p, (b-1)*s - p + e)  clipped to [0, H)        what output rows [a,b) read
//     frontier(f)       = H_out if f == H, else max(0, floor((f + p - e) / s) + 1)
//                                                                              first output row not yet computable
//     carry(f)          = [max(0, frontier(f)*s - p), f)                       what rows still to come will read
//     known_for(b)      = end of in_rows([b-1, b)); 0 for b = 0                least f whose frontier reaches b
// A layer that makes maps larger has `up` output rows for every s input rows, and
//     in_rows([a,b))    = [floor((a*s - p) / up), floor(((b-1)*s - p) / up) + e)  clipped
//     frontier(f)       = H_out if f == H, else max(0, floor(((f - e + 1) * up - 1 + p) / s) + 1)
// of which the above is the case up = 1; the others follow. An axis may say of a layer that it reads more rows than it does.
// Divisions round toward minus infinity; rows are half-open and absolute. Laws, asserted in tests/shape/rows.cpp:
//     frontier(known_for(b)) >= b;  b > frontier(f) implies known_for(b) > f
//     in_rows([frontier(f), H_out)) lies in carry(f) + [f, H)
// What the clip removes is padding; it occurs at the true borders only (pad_rows).
// Source: LR-CNN, arXiv 2401.11471, sections III and IV, restated for absolute rows.
#include <lrcnn/shape/window.hpp>
namespace lrcnn {
/// Output extent along one axis; zero or negative if the window does not fit. Pre: stride, kernel, dilation >= 1.
constexpr Index out_extent(const Axis& axis, Index extent) {
  const Index room = extent + axis.pad_begin + axis.pad_end - axis.extent();
  if (!axis.ceil) return floor_div(room, axis.stride) + 1;
  const Index last = ceil_div(room, axis.stride);
  return last * axis.stride < extent + axis.pad_begin ? last + 1 : last;
}
/// The input position at which the window of output position `out` begins; in padding or inside.
constexpr Index window_begin(const Axis& axis, Index out) {
  const Index scaled = out * axis.stride - axis.pad_begin;
  return axis.up == 1 ? scaled : floor_div(scaled, axis.up);
}
/// Input rows that output rows `out` read, of an input with `height` rows. Empty if they lie wholly in padding.
constexpr Range in_rows(const Axis& axis, Range out, Index height) {
  if (out.empty()) return {0, 0};
  const Range window{window_begin(axis, out.begin), window_begin(axis, out.end - 1) + axis.extent()};
  return intersect(window, {0, height});
}
/// First output row that cannot be computed when input rows [0, known) are known, of `all` there are.
constexpr Index frontier(const Axis& axis, Index known, Index height, Index all) {
  if (known >= height) return all;
  return std::clamp<Index>(floor_div((known - axis.extent() + 1) * axis.up - 1 + axis.pad_begin, axis.stride) + 1, 0, all);
}
/// Likewise of a window, of which there are out_extent().
constexpr Index frontier(const Axis& axis, Index known, Index height) { return frontier(axis, known, height, out_extent(axis, height)); }
/// First input row that output rows from `next` on read; 0 at the least.
constexpr Index first_needed(const Axis& axis, Index next) { return std::max<Index>(0, window_begin(axis, next)); }
/// Rows of [0, known) that output rows beyond the frontier will read. Empty when the stride jumps over them.
constexpr Range carry(const Axis& axis, Index known, Index height) {
  const Range rows{first_needed(axis, frontier(axis, known, height)), known};
  return rows.empty() ? Range{known, known} : rows;
}
/// The least number of leading input rows from which output rows [0, wanted) can be computed.
constexpr Index known_for(const Axis& axis, Index wanted, Index height) {
  if (wanted <= 0) return 0;
  return std::clamp<Index>(window_begin(axis, wanted - 1) + axis.extent(), 0, height);
}
/// The row rule of a layer that makes maps `up` times larger, of an input with so many rows: nearest; linear between pixel centres, or
/// with corners that stay in place.
constexpr Axis nearest_axis(Index up) { return {.up = up}; }
constexpr Axis linear_axis(Index up) { return {.kernel = 2, .stride = 2, .pad_begin = up - 1, .up = 2 * up}; }
constexpr Axis corner_axis(Index up, Index height) {
  return height == 1 || up == 1 ? Axis{.up = up} : Axis{.kernel = 2, .stride = height - 1, .up = up * height - 1};
}
/// That of a transposed convolution with this window: output row o reads the rows i for which o = i * stride - pad + tap * dilation.
constexpr Axis transposed_axis(const Axis& window) {
  const Index span = window.extent() - 1, s = window.stride;
  return {.kernel = 1 + span / s, .pad_begin = span - window.pad_begin - (s - 1), .up = s};
}
constexpr Index transposed_extent(const Axis& window, Index extent) {
  return (extent - 1) * window.stride + window.extent() - window.pad_begin - window.pad_end;
}
/// That of padding with reflected rows, which lie as far below the first row as the padding lies above it.
constexpr Axis reflected_axis(const Axis& window) {
  const Index p = window.pad_begin, q = window.pad_end;
  return {.kernel = 2 * (p + q) + 1, .pad_begin = p + 2 * q, .pad_end = q + 2 * p};
}
namespace detail {
LRCNN_HOST_DEVICE constexpr Index quotient(Index a, Index b) { return a / b; }
template <class D>
LRCNN_HOST_DEVICE constexpr auto quotient(Index a, const D& by) -> decltype(by.quotient(a)) {
  return by.quotient(a);
}
}   // namespace detail
/// Rows that output row `out` of an adaptive pool with `all` rows takes the mean of: they begin at floor(out * H / all), and end at
/// ceil((out + 1) * H / all).
/// `all` is a number, or what divides by one.
template <class D>
LRCNN_HOST_DEVICE constexpr Range adaptive_window(Index out, const D& all, Index height) {
  return {detail::quotient(out * height, all), detail::quotient((out + 1) * height - 1, all) + 1};
}
/// Elements of such a window that one sum in what elements are computed in takes; larger windows are summed up in doubles, piece by piece.
inline constexpr Index largest_window_sum = 1024;
/// Columns of a row in a piece: in what elements are computed in, pieces themselves in doubles. Means over maps are summed up so, on the host
/// and on a device, which gives them the same bits; on the host, so are some parameters' gradients.
inline constexpr Index sum_piece = 256;
/// Output rows whose windows hold row `in`.
template <class D>
LRCNN_HOST_DEVICE constexpr Range adaptive_readers(Index in, Index all, const D& height) {
  return adaptive_window(in, height, all);
}
constexpr Axis adaptive_axis(Index all, Index height) {
  Index most = 1;
  for (Index out = 0; out < all; ++out) most = std::max(most, adaptive_window(out, all, height).size());
  return {.kernel = most, .stride = height, .up = all};
}
/// Input position that position `out` of a map with reflected padding shows. Pre: padding is smaller than the extent.
LRCNN_HOST_DEVICE constexpr Index reflected_position(Index out, Index pad_begin, Index extent) {
  const Index at = out < pad_begin ? pad_begin - out : out - pad_begin;
  return at < extent ? at : 2 * (extent - 1) - at;
}
/// Output positions, at most three, that show input position `in` of a map with reflected padding, in ascending order.
struct Reflections {
  Index at[3] = {};
  int count = 0;
  /// `out`: those that count.
  LRCNN_HOST_DEVICE constexpr Reflections(Index pad_begin, Index pad_end, Index in, Index extent, Range out) {
    const Index last = extent - 1;
    if (1 <= in && in <= pad_begin) add(pad_begin - in, out);
    add(pad_begin + in, out);
    if (last - pad_end <= in && in < last) add(pad_begin + 2 * last - in, out);
  }

 private:
  LRCNN_HOST_DEVICE constexpr void add(Index position, Range out) {
    if (position < out.begin || position >= out.end) return;
    for (int i = 0; i < 3; ++i)   // a constant index: on a device `at` stays in registers
      if (i == count) at[i] = position;
    ++count;
  }
};
/// Output rows whose windows cover one of the input rows `in`, of as many as there may be. Pre: axis.up == 1, in is not empty
constexpr Range windows_over(const Axis& axis, Range in) {
  return {ceil_div(in.begin - axis.extent() + 1 + axis.pad_begin, axis.stride), floor_div(in.end - 1 + axis.pad_begin, axis.stride) + 1};
}
/// Rows of padding above and below the input rows `in` that output rows `out` read as zeros.
/// Rows of `in` that the window never reads give no negative padding at the bottom; at the top they are a broken
/// precondition. Pre: in.begin <= in_rows(out).begin, and in ends where in_rows(out) ends or below.
struct RowPads {
  Index top = 0;
  Index bottom = 0;
  friend constexpr bool operator==(const RowPads&, const RowPads&) = default;
};
constexpr RowPads pad_rows(const Axis& axis, Range out, Range in) {
  return {in.begin - (out.begin * axis.stride - axis.pad_begin),
          std::max<Index>(0, (out.end - 1) * axis.stride - axis.pad_begin + axis.extent() - in.end)};
}
/// Input position that a tap of an output position reads, in integers of any kind. Positions outside [0, extent) are padding.
template <class I>
LRCNN_HOST_DEVICE constexpr I tap_position(I out, I tap, I stride, I pad_begin, I dilation) {
  return out * stride - pad_begin + tap * dilation;
}
constexpr Index tap_position(const Axis& axis, Index out, Index tap) { return tap_position(out, tap, axis.stride, axis.pad_begin, axis.dilation); }
/// Number of taps that average pooling counts, of an output position whose first tap reads `first`: those inside the map, or with `padding` all
/// but those behind `limit`, the end of the padding, where extents were rounded up.
template <class I>
LRCNN_HOST_DEVICE constexpr I counted_taps(I first, I kernel, I dilation, I extent, I limit, bool padding) {
  const I begin = padding ? first : 0, end = padding ? limit : extent;
  if (first >= begin && first + (kernel - 1) * dilation < end) return kernel;
  I count = 0;
  for (I tap = 0, at = first; tap < kernel; ++tap, at += dilation) count += at >= begin && at < end ? 1 : 0;
  return count;
}
/// Taps of output position `out` that lie inside the map.
constexpr Range taps_inside(const Axis& axis, Index out, Index extent) {
  const Index first = tap_position(axis, out, 0), d = axis.dilation;
  if (first >= 0 && first + axis.extent() <= extent) return {0, axis.kernel};
  const Index begin = std::max<Index>(0, ceil_div(-first, d));
  const Index end = std::min(axis.kernel, ceil_div(extent - first, d));
  return {begin, std::max(begin, end)};
}
}   // namespace lrcnn
