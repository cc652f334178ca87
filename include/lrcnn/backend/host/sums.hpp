#pragma once
// Rows that are summed up in place, whatever they are stored as.
//
// Where elements are what is computed in, sums are made in the row itself. Elements of two bytes would be rounded at
// every addition: for them a piece of the row at a time is widened on the stack, summed there and rounded once.
#include <lrcnn/backend/host/window.hpp>
#include <lrcnn/backend/host/words.hpp>
#include <array>
namespace lrcnn::host {
/// Calls f(to, to_step, columns) for pieces of columns that cover [0, count). Column c's L lanes begin at
/// row + c * step, and at to + (c - columns.begin) * to_step while f adds to them.
template <Index L, class T, class F>
void sum_columns(Lanes<L>, T* row, Index step, Index count, F&& f) {
  using A = master_t<T>;
  if constexpr (std::is_same_v<T, A>) {
    f(row, step, Range{0, count});
  } else {
    using W = Words<T, L>;
    constexpr Index columns = 2048 / L;
    std::array<A, static_cast<std::size_t>(columns * L)> sums;
    for (Index first = 0; first < count; first += columns) {
      const Range piece{first, std::min(first + columns, count)};
      for (Index c = 0; c < piece.size(); ++c)
        for (Index l = 0; l < L; l += W::width) store_word(sums.data() + c * L + l, load_word<typename W::Value>(row + (first + c) * step + l));
      f(sums.data(), L, piece);
      for (Index c = 0; c < piece.size(); ++c)
        for (Index l = 0; l < L; l += W::width) store_word(row + (first + c) * step + l, load_word<typename W::Value>(sums.data() + c * L + l));
    }
  }
}
}   // namespace lrcnn::host
