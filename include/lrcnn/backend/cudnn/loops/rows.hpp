#pragma once
// Moving rows between slabs, full-height tensors and staging buffers.
//
// As on the host, views are matched by the absolute index of their rows.
#include <lrcnn/backend/cudnn/loops/lines.hpp>
#include <lrcnn/backend/concepts.hpp>
namespace lrcnn::loops {
namespace detail {
/// y = x, or y += x.
template <class T, bool add>
struct MoveLoop {
  Lines lines;
  Line<const T> x;
  Line<T> y;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    using A = master_t<T>;
    const Piece p = lines.piece(unit);
    A value[Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    if constexpr (add) {
      A old[Lines::width];
      load(y.at(p), p.count, lines.packs(), old);
      for (int v = 0; v < Lines::width; ++v) value[v] = old[v] + value[v];
    }
    store(y.at(p), p.count, lines.packs(), value);
  }
};
template <class T>
struct ZeroLoop {
  Lines lines;
  Line<T> y;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    const master_t<T> zero[Lines::width] = {};
    store(y.at(p), p.count, lines.packs(), zero);
  }
};
template <bool add, class Exec, class T>
void move_rows(const Exec& exec, const View<const T>& from, const View<T>& y) {
  if (empty(y)) return;
  assert(from.n == y.n && from.c == y.c && from.w == y.w && from.range().contains(y.range()));
  assert(channels_last(from) && channels_last(y));
  const View<const T> x = from.slice(y.range());
  const Lines lines({}, x, y);
  for_units(exec, lines.count(), MoveLoop<T, add>{lines, x, y});
}
/// Where the elements of a view of either layout lie: NCHW or channels last.
template <class T>
struct Strided {
  T* data;
  Index n, row, column, channel;
  explicit Strided(const View<T>& v) : data(v.data), n(v.stride_n), row(v.stride_row()), column(v.block), channel(v.block == 1 ? v.stride_c : 1) {}
  LRCNN_HOST_DEVICE T* at(Index i, Index y, Index x, Index c) const { return data + i * n + y * row + x * column + c * channel; }
};
/// to = scale * from, one element at a time, in the order in which those of `to` lie in memory.
template <class S, class T>
struct ConvertLoop {
  using A = master_t<std::remove_const_t<S>>;
  Strided<S> from;
  Strided<T> to;
  Divisor rows, columns, channels;
  bool planes;   ///< `to` is NCHW
  A scale;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Index pixel = planes ? 0 : channels.split(unit);
    Index c = unit, x = planes ? unit : pixel, y = columns.split(x);
    Index i = rows.split(y);
    if (planes) c = i, i = channels.split(c);
    *to.at(i, y, x, c) = static_cast<T>(scale * static_cast<A>(*from.at(i, y, x, c)));
  }
};
}   // namespace detail
/// y = x. Shapes: x, y [N,C,rows,W]. Pre: x holds y's rows; they do not overlap. Post: writes y.
template <class Exec, class T>
void copy_rows(const Exec& exec, const ReadView<T>& x, const View<T>& y) {
  detail::move_rows<false>(exec, x, y);
}
/// y += x. Shapes and preconditions as for copy_rows.
template <class Exec, class T>
void add_rows(const Exec& exec, const ReadView<T>& x, const View<T>& y) {
  detail::move_rows<true>(exec, x, y);
}
/// y = 0.
template <class Exec, class T>
void zero_rows(const Exec& exec, const View<T>& y) {
  if (empty(y)) return;
  assert(channels_last(y));
  const Lines lines({}, y);
  for_units(exec, lines.count(), detail::ZeroLoop<T>{lines, y});
}
/// to = scale * from, between element types and layouts: rows of a staging buffer to a slab, or back.
/// Shapes:  from, to [N,C,rows,W], each NCHW (block 1) or channels last. Pre: from holds to's rows; no overlap
/// Post:    writes to; the product of master_t<S>, rounded once
template <class Exec, class S, class T>
void convert_rows(const Exec& exec, const View<S>& from, const View<T>& to, double scale = 1) {
  if (empty(to)) return;
  assert(from.n == to.n && from.c == to.c && from.w == to.w && from.range().contains(to.range()));
  assert((from.block == 1 || channels_last(from)) && (to.block == 1 || channels_last(to)));
  using Loop = detail::ConvertLoop<S, T>;
  for_units(exec, to.n * to.rows * to.w * to.c,
            Loop{detail::Strided<S>(from.slice(to.range())), detail::Strided<T>(to), Divisor(to.rows), Divisor(to.w), Divisor(to.c), to.block == 1,
                 static_cast<typename Loop::A>(scale)});
}
namespace detail {
/// dx's rows that dy has not become 0; returns those that it has.
template <class Exec, class T>
Range zero_others(const Exec& exec, const Operands<T>& o) {
  const Range all = o.dx.range(), both = intersect(all, o.dy.range());
  if (both.empty()) return zero_rows(exec, o.dx), both;
  zero_rows(exec, o.dx.slice({all.begin, both.begin}));
  zero_rows(exec, o.dx.slice({both.end, all.end}));
  return both;
}
}   // namespace detail
}   // namespace lrcnn::loops
