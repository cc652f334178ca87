#pragma once
// Global average pooling, fed by rows.
//
// Each row is summed by itself and added to what y holds, from the top row down; at the map's last row y is divided.
// So the order of additions is that of the whole map, however its rows are cut: the result is the same to the bit. Of
// elements of two bytes it is not: what y holds between two slabs is rounded.
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/sums.hpp>
#include <array>
namespace lrcnn::host {
/// y = (accumulate ? y : 0) + the sum of x's rows; divided by H*W if x ends with the map's last row.
/// Shapes:  x [N,C,rows,W] -> y [N,C,1,1]
template <class T>
void global_pool_forward(const Operands<T>& o, int threads) {
  const View<const T>& x = o.x;
  const bool last = x.rows > 0 && x.range().end == o.node->in.h;
  using A = master_t<T>;
  const A count = static_cast<A>(o.node->in.h * o.node->in.w);
  const Index planes = o.y.n * o.y.blocks();
  parallel_for(planes, useful_threads(planes * x.rows * x.stride_row(), threads), [&](Index plane) {
    const Index i = plane / o.y.blocks(), b = plane % o.y.blocks();
    T* y = o.y.row(i, b, 0);
    if (!o.accumulate) std::fill_n(y, o.y.block, T(0));
    for_lanes(x.block, [&](auto lanes, Index lane) {
      sum_columns(lanes, y + lane, o.y.block, 1, [&](A* total, Index, Range) {
        for (Index row = x.row0; row < x.row0 + x.rows; ++row) {
          const T* from = x.row(i, b, row);
          // Narrow blocks have eight running sums, by column modulo eight, wide ones a sum for each lane.
          constexpr std::size_t L = decltype(lanes)::value, parts = L == 1 ? 8 : 1;
          std::array<A, L * parts> sum{};
          Index column = 0;
          for (; column + static_cast<Index>(parts) <= x.w; column += static_cast<Index>(parts))
            for (std::size_t p = 0; p < parts; ++p)
              for (std::size_t l = 0; l < L; ++l)
                sum[p * L + l] += from[(column + static_cast<Index>(p)) * x.block + lane + static_cast<Index>(l)];
          for (; column < x.w; ++column) sum[0] += from[column * x.block + lane];
          for (std::size_t p = 1; p < parts; ++p) sum[0] += sum[p];
          for (std::size_t l = 0; l < L; ++l) total[l] += sum[l];
        }
        if (last)
          for (Index l = 0; l < decltype(lanes)::value; ++l) total[l] /= count;
      });
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
}  // namespace lrcnn::host
