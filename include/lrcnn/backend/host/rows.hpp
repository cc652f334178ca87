#pragma once
// Moving rows between slabs and full-height tensors.
//
// Both views show the same tensor in the same layout; rows are matched by their absolute index, so a view may hold
// more rows than the other, or start elsewhere.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/host/words.hpp>
#include <algorithm>
#include <cassert>
namespace lrcnn::host {
namespace detail {
template <class T>
void check_same_rows(const Operands<T>& o) {
  assert(o.y.rows == 0 || (o.x.n == o.y.n && o.x.c == o.y.c && o.x.w == o.y.w && o.x.block == o.y.block));
  assert(o.x.range().contains(o.y.range()));
  static_cast<void>(o);
}
}   // namespace detail
/// y = x. Shapes: x, y [N,C,rows,W]. Pre: x holds y's rows; they do not overlap. Post: writes y, padded channels too.
template <class T>
void copy_rows(const Operands<T>& o, int threads) {
  detail::check_same_rows(o);
  for_row_groups(o.y, threads, [&](Index i, Index b, Range rows) {
    std::copy_n(o.x.row(i, b, rows.begin), rows.size() * o.y.stride_row(), o.y.row(i, b, rows.begin));
  });
}
/// y += x. Shapes and preconditions as for copy_rows.
template <class T>
void add_rows(const Operands<T>& o, int threads) {
  detail::check_same_rows(o);
  for_row_groups(o.y, threads, [&](Index i, Index b, Range rows) {
    const T* __restrict from = o.x.row(i, b, rows.begin);
    T* __restrict to = o.y.row(i, b, rows.begin);
    const Index count = rows.size() * o.y.stride_row();
    if constexpr (std::is_same_v<T, master_t<T>>) {
      for (Index e = 0; e < count; ++e) to[e] += from[e];
    } else {
      using W = Words<T, 16>;
      Index e = 0;
      for (; e + W::width <= count; e += W::width) store_word(to + e, load_word<typename W::Value>(to + e) + load_word<typename W::Value>(from + e));
      for (; e < count; ++e) to[e] = static_cast<T>(to[e] + from[e]);
    }
  });
}
/// y = 0, padded channels too.
template <class T>
void zero_rows(const View<T>& y, int threads) {
  for_row_groups(y, threads, [&](Index i, Index b, Range rows) { std::fill_n(y.row(i, b, rows.begin), rows.size() * y.stride_row(), T(0)); });
}
/// Zeroes the channels that exist in storage only.
template <class T>
void zero_padded_channels(const View<T>& y) {
  const Index used = y.c % y.block;
  if (used == 0) return;
  for (Index i = 0; i < y.n; ++i)
    for (Index row = y.row0; row < y.row0 + y.rows; ++row) {
      T* to = y.row(i, y.blocks() - 1, row);
      for (Index column = 0; column < y.w; ++column) std::fill(to + column * y.block + used, to + (column + 1) * y.block, T(0));
    }
}
}   // namespace lrcnn::host
