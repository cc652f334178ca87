#pragma once
// A map times a vector: a factor for each channel of each image.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
namespace lrcnn::host {
namespace detail {
/// to = from * factors, for the rows that `from` has; zero in others.
template <class T>
void multiply_rows(const View<const T>& from, const View<const T>& factors, const View<T>& to, int threads) {
  assert(from.block == to.block && factors.block == to.block);
  const Index block = to.block;
  for_row_groups(to, threads, [&](Index i, Index b, Range rows) {
    for_lanes(block, [&](auto lanes, Index lane) {
      constexpr std::size_t L = decltype(lanes)::value;
      std::array<master_t<T>, L> factor{};
      for (std::size_t l = 0; l < L; ++l) factor[l] = factors.row(i, b, 0)[lane + static_cast<Index>(l)];
      for (Index row = rows.begin; row < rows.end; ++row) {
        T* y = to.row(i, b, row) + lane;
        const bool there = from.range().contains({row, row + 1});
        const T* x = there ? from.row(i, b, row) + lane : nullptr;
        for (Index q = 0; q < to.w; ++q)
          for (std::size_t l = 0; l < L; ++l) {
            const Index at = q * block + static_cast<Index>(l);
            y[at] = there ? static_cast<T>(static_cast<master_t<T>>(x[at]) * factor[l]) : T(0);
          }
      }
    });
  });
}
}   // namespace detail
/// y = x * other. Shapes: x, y [N,C,rows,W], other [N,C,1,1]. Pre: x holds y's rows.
template <class T>
void scale_forward(const Operands<T>& o, int threads) {
  assert(o.x.range().contains(o.y.range()));
  detail::multiply_rows(o.x, o.other, o.y, threads);
}
/// dx = dy * other, of the map; or, of the factors, the sum over dy's rows and columns of dy * x, and what o.sums has if accumulate.
/// Shapes:  operand 0: dy, dx [N,C,rows,W], other [N,C,1,1]; operand 1: dy, x [N,C,rows,W], dx [N,C,1,1]
/// Pre:     operand 1: x holds dy's rows
/// Post:    operand 0: writes all rows of dx; rows that dy does not have get 0. Operand 1: sums are made in doubles, row by row; o.sums,
///          [N,C] if it is there, has what dx is rounded from
template <class T>
void scale_backward(const Operands<T>& o, int threads) {
  if (o.operand == 0) return detail::multiply_rows(View<const T>(o.dy), o.other, o.dx, threads);
  assert(o.x.range().contains(o.dy.range()));
  const Index block = o.dy.block, planes = o.dx.n * o.dx.blocks();
  parallel_for(planes, useful_threads(planes * o.dy.rows * o.dy.stride_row(), threads), [&](Index plane) {
    const Index i = plane / o.dx.blocks(), b = plane % o.dx.blocks();
    for_lanes(block, [&](auto lanes, Index lane) {
      constexpr std::size_t L = decltype(lanes)::value;
      const Index first = b * block + lane, there = std::clamp<Index>(o.dx.c - first, 0, L);   // the others are storage's
      double* const sums = o.sums ? o.sums + i * o.dx.c + first : nullptr;
      std::array<double, L> sum{};
      if (sums && o.accumulate) std::copy_n(sums, there, sum.begin());
      for (Index row = o.dy.row0; row < o.dy.row0 + o.dy.rows; ++row) {
        const T *dy = o.dy.row(i, b, row) + lane, *x = o.x.row(i, b, row) + lane;
        for (Index q = 0; q < o.dy.w; ++q, dy += block, x += block)
          for (std::size_t l = 0; l < L; ++l) sum[l] += static_cast<double>(dy[l]) * static_cast<double>(x[l]);
      }
      if (sums) std::copy_n(sum.begin(), there, sums);
      T* dx = o.dx.row(i, b, 0) + lane;
      for (std::size_t l = 0; l < L; ++l) dx[l] = static_cast<T>(sum[l]);
    });
  });
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::scale, T>{scale_forward<T>, scale_backward<T>};
}   // namespace lrcnn::host
