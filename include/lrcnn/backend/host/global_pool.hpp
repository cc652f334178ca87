#pragma once
// Global average pooling, fed by rows.
//
// Pieces of a row are added up in what elements are computed in, and pieces in doubles, from the top row down; between slabs the doubles are
// kept. So the order of additions is that of the whole map, and the result the same to the bit, however its rows are cut.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
#include <lrcnn/shape/rows.hpp>
#include <array>
namespace lrcnn::host {
/// total += L lanes of a row of so many columns, `step` elements apart.
template <class T, std::size_t L>
void add_row(const T* from, Index step, Index columns, std::array<double, L>& total) {
  // Narrow blocks have eight running sums, by column modulo eight, wide ones a sum for each lane.
  constexpr std::size_t parts = L == 1 ? 8 : 1;
  for (Index first = 0; first < columns; first += sum_piece) {
    const Index end = std::min(first + sum_piece, columns);
    std::array<master_t<T>, L * parts> sum{};
    Index column = first;
    for (; column + static_cast<Index>(parts) <= end; column += static_cast<Index>(parts))
      for (std::size_t p = 0; p < parts; ++p)
        for (std::size_t l = 0; l < L; ++l) sum[p * L + l] += from[(column + static_cast<Index>(p)) * step + static_cast<Index>(l)];
    for (; column < end; ++column) sum[0] += from[column * step];
    for (std::size_t p = 1; p < parts; ++p) sum[0] += sum[p];
    for (std::size_t l = 0; l < L; ++l) total[l] += static_cast<double>(sum[l]);
  }
}
/// sums = (accumulate ? sums : 0) + the sum of x's rows; y = sums / (H*W), the mean where x ends with the map's last row.
/// Shapes:  x [N,C,rows,W] -> sums [N,C], y [N,C,1,1]
/// Pre:     x has all rows, or o.sums is there
template <class T>
void global_pool_forward(const Operands<T>& o, int threads) {
  const View<const T>& x = o.x;
  using A = master_t<T>;
  const Index channels = o.node->in.c;
  const auto count = static_cast<double>(o.node->in.h * o.node->in.w);
  const Index planes = o.y.n * o.y.blocks();
  assert(o.sums != nullptr || (x.rows == o.node->in.h && !o.accumulate));
  parallel_for(planes, useful_threads(planes * x.rows * x.stride_row(), threads), [&](Index plane) {
    const Index i = plane / o.y.blocks(), b = plane % o.y.blocks();
    T* const y = o.y.row(i, b, 0);
    for_lanes(x.block, [&](auto lanes, Index lane) {
      constexpr std::size_t L = decltype(lanes)::value;
      const Index first = b * x.block + lane, there = std::clamp<Index>(channels - first, 0, L);   // the others are storage's
      double* const sums = o.sums ? o.sums + i * channels + first : nullptr;
      std::array<double, L> total{};
      if (sums && o.accumulate) std::copy_n(sums, there, total.begin());
      for (Index row = x.row0; row < x.row0 + x.rows; ++row) add_row(x.row(i, b, row) + lane, x.block, x.w, total);
      if (sums) std::copy_n(total.begin(), there, sums);
      for (std::size_t l = 0; l < L; ++l) y[lane + static_cast<Index>(l)] = static_cast<T>(static_cast<A>(total[l] / count));
    });
  });
}
/// dx = dy / (H*W) everywhere.
/// Shapes:  dy [N,C,1,1] -> dx [N,C,rows,W]
template <class T>
void global_pool_backward(const Operands<T>& o, int threads) {
  using A = master_t<T>;
  const A count = static_cast<A>(o.node->in.h * o.node->in.w);
  for_rows(o.dx, threads, [&](Index i, Index b, Index row) {
    T* dx = o.dx.row(i, b, row);
    const T* dy = o.dy.row(i, b, 0);
    for_lanes(o.dx.block, [&](auto lanes, Index lane) {
      constexpr std::size_t L = decltype(lanes)::value;
      std::array<T, L> value;
      for (std::size_t l = 0; l < L; ++l) value[l] = static_cast<T>(dy[lane + static_cast<Index>(l)] / count);
      for (Index column = 0; column < o.dx.w; ++column)
        for (std::size_t l = 0; l < L; ++l) dx[column * o.dx.block + lane + static_cast<Index>(l)] = value[l];
    });
  });
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::global_avg_pool, T>{global_pool_forward<T>, global_pool_backward<T>};
}   // namespace lrcnn::host
