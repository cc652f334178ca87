#pragma once
// SlabBatchNorm: mean and variance of a channel over the rows that a step is given, taken anew in each.
//
// The formulas are those of norm.hpp, with the statistics of y's rows forward, and of dy's rows, which are the same, backward. Sums are
// doubles; a group of channels is one thread's.
#include <lrcnn/backend/host/activation.hpp>
#include <lrcnn/backend/host/put_gradient.hpp>
#include <lrcnn/layer/statistics.hpp>
#include <cmath>
namespace lrcnn::host {
namespace detail {
/// Calls f(image, row, pointer to the row's first element of `lane`) for rows of all images.
template <class V, class F>
void each_row(const V& view, Index b, Index lane, Range rows, F f) {
  for (Index i = 0; i < view.n; ++i)
    for (Index row = rows.begin; row < rows.end; ++row) f(i, row, view.row(i, b, row) + lane);
}
/// Mean and 1 / sqrt(variance + epsilon) of L channels from `lane` of block b on.
template <std::size_t L>
struct SlabMoments {
  std::array<double, L> mean{}, inverse{};
  double count = 0;
  template <class T>
  SlabMoments(const Operands<T>& o, Index b, Index lane, Range rows) : count(static_cast<double>(o.x.n * rows.size() * o.x.w)) {
    const Index block = o.x.block, columns = o.x.w;
    each_row(o.x, b, lane, rows, [&](Index, Index, const T* x) {
      for (Index q = 0; q < columns; ++q, x += block)
        for (std::size_t l = 0; l < L; ++l) mean[l] += static_cast<double>(x[l]);
    });
    for (double& m : mean) m /= count;
    each_row(o.x, b, lane, rows, [&](Index, Index, const T* x) {
      for (Index q = 0; q < columns; ++q, x += block)
        for (std::size_t l = 0; l < L; ++l) {
          const double d = static_cast<double>(x[l]) - mean[l];
          inverse[l] += d * d;
        }
    });
    for (double& v : inverse) v = inverse_deviation(v / count, o.node->layer.norm.epsilon);
  }
};
/// Calls f(lanes, block, lane) for groups of channels, on threads.
template <class T, class F>
void for_channel_groups(const View<T>& view, int threads, F f) {
  const Index work = view.n * view.blocks() * view.rows * view.stride_row();
  parallel_for(view.blocks(), useful_threads(4 * work, threads),
               [&](Index b) { for_lanes(view.block, [&](auto lanes, Index lane) { f(lanes, b, lane); }); });
}
/// Sums over dy and over dy * normalised x.
template <std::size_t L>
struct SlabSums {
  std::array<double, L> sum{}, product{};
  template <class T>
  SlabSums(const Operands<T>& o, const SlabMoments<L>& m, Index b, Index lane) {
    const Index block = o.dy.block;
    each_row(o.dy, b, lane, o.dy.range(), [&](Index i, Index row, const T* dy) {
      const T* x = o.x.row(i, b, row) + lane;
      for (Index q = 0; q < o.dy.w; ++q, dy += block, x += block)
        for (std::size_t l = 0; l < L; ++l) {
          const double d = static_cast<double>(dy[l]);
          sum[l] += d, product[l] += d * (static_cast<double>(x[l]) - m.mean[l]) * m.inverse[l];
        }
    });
  }
};
/// Weight (or bias) of channel c; `otherwise` without them, 0 for a channel that only storage has.
template <class T>
double slab_parameter(const Operands<T>& o, std::size_t which, Index c, double otherwise) {
  if (c >= o.node->in.c) return 0;
  return o.node->layer.norm.affine ? static_cast<double>(o.parameters[which][c]) : otherwise;
}
}   // namespace detail
/// y = weight * (x - mean) / sqrt(variance + epsilon) + bias, with the statistics of y's rows of x, then through the step's activation.
/// Shapes:  x, y [N,C,rows,W], saved as an activation's. Pre: x holds y's rows
template <class T>
void slab_norm_forward(const Operands<T>& o, int threads) {
  assert(o.x.range().contains(o.y.range()));
  if (o.y.rows <= 0) return;
  detail::for_channel_groups(o.y, threads, [&](auto lanes, Index b, Index lane) {
    constexpr std::size_t L = decltype(lanes)::value;
    const detail::SlabMoments<L> m(o, b, lane, o.y.range());
    std::array<double, L> scale{}, shift{};
    for (std::size_t l = 0; l < L; ++l) {
      const Index c = b * o.y.block + lane + static_cast<Index>(l);
      const auto numbers = scale_and_shift(detail::slab_parameter(o, 0, c, 1), detail::slab_parameter(o, 1, c, 0), m.mean[l], m.inverse[l]);
      scale[l] = numbers.scale, shift[l] = numbers.shift;
    }
    detail::each_row(o.y, b, lane, o.y.range(), [&](Index i, Index row, T* y) {
      const T* x = o.x.row(i, b, row) + lane;
      for (Index q = 0; q < o.y.w; ++q, x += o.y.block, y += o.y.block)
        for (std::size_t l = 0; l < L; ++l) {
          const double normal = static_cast<double>(x[l]) * scale[l] + shift[l];
          y[l] = static_cast<T>(static_cast<master_t<T>>(normal));
        }
    });
  });
  if (o.activation) activation_forward(activation_of(o), threads);
}
/// dx from dy and x, by the statistics of dy's rows of x.
/// Shapes:  dy, dx, x [N,C,rows,W]. Pre: x holds dy's rows; dx may be the same memory as dy
/// Post:    writes all rows of dx; rows that dy does not have get 0
template <class T>
void slab_norm_backward_data(const Operands<T>& o, int threads) {
  detail::for_channel_groups(o.dx, threads, [&](auto lanes, Index b, Index lane) {
    constexpr std::size_t L = decltype(lanes)::value;
    const Index block = o.dx.block;
    const auto none = [&](Index, Index row, T* dx) {
      if (o.dy.range().contains({row, row + 1})) return;
      for (Index q = 0; q < o.dx.w; ++q) std::fill_n(dx + q * block, L, T(0));
    };
    detail::each_row(o.dx, b, lane, o.dx.range(), none);
    if (o.dy.rows <= 0) return;
    const detail::SlabMoments<L> m(o, b, lane, o.dy.range());
    const detail::SlabSums<L> s(o, m, b, lane);
    std::array<double, L> down{};
    for (std::size_t l = 0; l < L; ++l) down[l] = detail::slab_parameter(o, 0, b * block + lane + static_cast<Index>(l), 1) * m.inverse[l];
    detail::each_row(o.dx, b, lane, o.dy.range(), [&](Index i, Index row, T* dx) {
      const T *dy = o.dy.row(i, b, row) + lane, *x = o.x.row(i, b, row) + lane;
      for (Index q = 0; q < o.dx.w; ++q, dx += block, dy += block, x += block)
        for (std::size_t l = 0; l < L; ++l) {
          const double normal = (static_cast<double>(x[l]) - m.mean[l]) * m.inverse[l];
          const double d = down[l] * (static_cast<double>(dy[l]) - (s.sum[l] + normal * s.product[l]) / m.count);
          dx[l] = static_cast<T>(static_cast<master_t<T>>(d));
        }
    });
  });
}
/// Gradients of weight and bias. Pre: x holds dy's rows. Post: added to what is there if accumulate, else written.
template <class T>
void slab_norm_backward_parameters(const Operands<T>& o, int threads) {
  detail::for_channel_groups(o.dy, threads, [&](auto lanes, Index b, Index lane) {
    constexpr std::size_t L = decltype(lanes)::value;
    if (o.dy.rows <= 0 && o.accumulate) return;
    const detail::SlabMoments<L> m(o, b, lane, o.dy.range());
    const detail::SlabSums<L> s(o, m, b, lane);
    for (std::size_t l = 0; l < L; ++l) {
      const Index c = b * o.dy.block + lane + static_cast<Index>(l);
      if (c >= o.node->in.c) break;
      put_gradient(o.d_parameters[0][c], s.product[l], o.accumulate);
      put_gradient(o.d_parameters[1][c], s.sum[l], o.accumulate);
    }
  });
}
}   // namespace lrcnn::host
