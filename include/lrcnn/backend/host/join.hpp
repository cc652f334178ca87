#pragma once
// Joins: where two branches of a network meet.
//
// Their inputs may hold more rows than the output; rows are matched by absolute index. The inputs and the output of a concatenation may
// be stored in different blocks, since a tensor of few channels may be plain where others are not.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/strips.hpp>
namespace lrcnn::host {
namespace detail {
/// Copies channels [first, first + count) of a row of `from`, of any block, to channels from `to_first` on of a row of `to`.
template <class T>
void copy_channels(const View<const T>& from, Index first, const View<T>& to, Index to_first, Index count, Index i, Index row) {
  for (Index c = 0; c < count; ++c) {
    const T* source = channel_row(from, i, first + c, row);
    T* target = channel_row(to, i, to_first + c, row);
    for (Index q = 0; q < to.w; ++q) target[q * to.block] = source[q * from.block];
  }
}
/// Whether channels that begin at `first` of one view lie as those of another do from its first on.
template <class V, class U>
bool same_places(const V& a, const U& b, Index first) {
  return a.block == b.block && first % a.block == 0;
}
}   // namespace detail
/// y = x + other, then through the step's activation, with saved = the bits that are positive.
/// Shapes:  x, other, y [N,C,rows,W], saved as an activation's
/// Pre:     y or saved may be empty; y may be the same memory as x or other, which may hold more rows
template <class T>
void sum_forward(const Operands<T>& o, int threads) {
  assert(o.x.block == o.other.block);
  const Index elements = o.x.stride_row();
  detail::make_activated(o, o.x.w, o.x.block, threads, [&](Index i, Index b, Range rows, auto begin) {
    detail::Strip<T> x_copy, other_copy;
    for (Index row = rows.begin; row < rows.end; ++row) {
      const T *x = o.x.row(i, b, row), *other = o.other.row(i, b, row);
      const auto write = begin(row);
      detail::for_strips(elements, [&](Index at, Index size) {
        read_ahead(x + at);
        read_ahead(other + at);
        auto sum = detail::load_sixteen<T>(detail::whole_strip(x + at, size, x_copy));
        const auto more = detail::load_sixteen<T>(detail::whole_strip(other + at, size, other_copy));
        for (std::size_t p = 0; p < sum.size(); ++p) sum[p] = sum[p] + more[p];
        write(at, sum, size);
      });
    }
  });
}
/// dx = dy, of either input.
/// Shapes:  dy, dx [N,C,rows,W]. Post: writes all rows of dx; rows that dy does not have get 0.
template <class T>
void sum_backward(const Operands<T>& o, int threads) {
  if (o.dx.data == o.dy.data) return;   // in place: it is there
  for_rows(o.dx, threads, [&](Index i, Index b, Index row) {
    if (o.dy.range().contains({row, row + 1})) std::copy_n(o.dy.row(i, b, row), o.dx.stride_row(), o.dx.row(i, b, row));
    else std::fill_n(o.dx.row(i, b, row), o.dx.stride_row(), T(0));
  });
}
/// y = the channels of x, then those of other.
/// Shapes:  x [N,C,rows,W], other [N,D,rows,W] -> y [N,C+D,rows,W], each in its own block
/// Pre:     x and other hold y's rows
template <class T>
void concat_forward(const Operands<T>& o, int threads) {
  const Index channels = o.node->in.c, others = o.y.c - channels;
  const bool x_fits = detail::same_places(o.x, o.y, 0), other_fits = detail::same_places(o.other, o.y, channels);
  parallel_for(o.y.n * o.y.rows, useful_threads(o.y.n * o.y.rows * o.y.blocks() * o.y.stride_row(), threads), [&](Index r) {
    const Index i = r / o.y.rows, row = o.y.row0 + r % o.y.rows, size = o.y.stride_row();
    if (x_fits)
      for (Index b = 0; b < o.x.blocks(); ++b) std::copy_n(o.x.row(i, b, row), size, o.y.row(i, b, row));
    else detail::copy_channels(o.x, 0, o.y, 0, channels, i, row);
    const Index first = channels / o.y.block;
    if (other_fits)
      for (Index b = 0; b < o.other.blocks(); ++b) std::copy_n(o.other.row(i, b, row), size, o.y.row(i, first + b, row));
    else detail::copy_channels(o.other, 0, o.y, channels, others, i, row);
  });
  zero_padded_channels(o.y);
}
/// dx = the channels of dy that are input number `operand`'s.
/// Shapes:  dy [N,C+D,rows,W] -> dx [N,C,rows,W] or [N,D,rows,W], each in its own block
/// Post:    writes all rows of dx; rows that dy does not have get 0
template <class T>
void concat_backward(const Operands<T>& o, int threads) {
  const Index first = o.operand == 0 ? 0 : o.node->in.c, size = o.dx.stride_row();
  const bool fits = detail::same_places(o.dy, o.dx, first);
  parallel_for(o.dx.n * o.dx.rows, useful_threads(o.dx.n * o.dx.rows * o.dx.blocks() * size, threads), [&](Index r) {
    const Index i = r / o.dx.rows, row = o.dx.row0 + r % o.dx.rows;
    if (!o.dy.range().contains({row, row + 1}))
      for (Index b = 0; b < o.dx.blocks(); ++b) std::fill_n(o.dx.row(i, b, row), size, T(0));
    else if (fits)
      for (Index b = 0; b < o.dx.blocks(); ++b) std::copy_n(o.dy.row(i, first / o.dy.block + b, row), size, o.dx.row(i, b, row));
    else detail::copy_channels(o.dy, first, o.dx, 0, o.dx.c, i, row);
  });
  zero_padded_channels(o.dx);
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::sum, T>{sum_forward<T>, sum_backward<T>};
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::concat, T>{concat_forward<T>, concat_backward<T>};
}   // namespace lrcnn::host
