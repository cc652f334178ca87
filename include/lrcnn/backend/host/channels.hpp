#pragma once
// Layers that work on the channels of a pixel: a factor for each, and another order.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/put_gradient.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
namespace lrcnn::host {
namespace detail {
/// to = from * factors, for the rows that `from` has; zero in others.
template <class T>
void scale_rows(const View<const T>& from, const View<T>& to, const master_t<T>* factors, int threads) {
  const Index block = to.block;
  for_row_groups(to, threads, [&](Index i, Index b, Range rows) {
    for_lanes(block, [&](auto lanes, Index lane) {
      constexpr Index L = decltype(lanes)::value;
      using W = Words<T, L>;
      using Value = typename W::Value;
      std::array<master_t<T>, L> factor{};
      for (Index l = 0; l < L; ++l)
        if (const Index c = b * block + lane + l; c < to.c) item(factor, l) = factors[c];
      const auto words = load_word<std::array<Value, W::count>>(factor.data());
      for (Index row = rows.begin; row < rows.end; ++row) {
        T* y = to.row(i, b, row) + lane;
        const T* x = from.range().contains({row, row + 1}) ? from.row(i, b, row) + lane : nullptr;
        for (Index q = 0; q < to.w; ++q)
          for (std::size_t p = 0; p < words.size(); ++p) {
            const Index at = q * block + static_cast<Index>(p) * W::width;
            store_word(y + at, x ? load_word<Value>(x + at) * words[p] : Value{});
          }
      }
    });
  });
}
/// Channel c of `to` = channel source(c) of `from`; zeros in rows that `from` does not have.
template <class T, class Source>
void move_channels(const View<const T>& from, const View<T>& to, int threads, Source source) {
  const Index block = to.block;
  for_rows(to, threads, [&](Index i, Index b, Index row) {
    T* y = to.row(i, b, row);
    const bool there = from.range().contains({row, row + 1});
    for (Index lane = 0; lane < block; ++lane) {
      const Index c = b * block + lane;
      const T* x = there && c < to.c ? channel_row(from, i, source(c), row) : nullptr;
      for (Index q = 0; q < to.w; ++q) y[q * block + lane] = x ? x[q * block] : T(0);
    }
  });
}
}   // namespace detail
/// y = layer_scale * x. Shapes: x, y [N,C,rows,W], parameter [C]. Pre: x holds y's rows.
template <class T>
void layer_scale_forward(const Operands<T>& o, int threads) {
  assert(o.x.range().contains(o.y.range()));
  detail::scale_rows(o.x, o.y, o.parameters[0], threads);
}
/// dx = layer_scale * dy. Post: writes all rows of dx; rows that dy does not have get 0.
template <class T>
void layer_scale_backward_data(const Operands<T>& o, int threads) {
  detail::scale_rows(View<const T>(o.dy), o.dx, o.parameters[0], threads);
}
/// The gradient of layer_scale: the sum of x * dy; added to what is there if accumulate, else written.
/// Shapes:  x, dy [N,C,rows,W]. Pre: x holds dy's rows. Post: the order of additions is images, rows, columns, in doubles
template <class T>
void layer_scale_backward_parameters(const Operands<T>& o, int threads) {
  assert(o.x.range().contains(o.dy.range()));
  const Index block = o.dy.block;
  parallel_for(o.dy.blocks(), useful_threads(o.dy.n * o.dy.blocks() * o.dy.rows * o.dy.stride_row(), threads), [&](Index b) {
    for_lanes(block, [&](auto lanes, Index lane) {
      constexpr Index L = decltype(lanes)::value;
      std::array<double, L> sum{};
      for (Index i = 0; i < o.dy.n; ++i)
        for (Index row = o.dy.row0; row < o.dy.row0 + o.dy.rows; ++row) {
          const T *x = o.x.row(i, b, row) + lane, *dy = o.dy.row(i, b, row) + lane;
          for (Index q = 0; q < o.dy.w; ++q, x += block, dy += block)
            for (std::size_t l = 0; l < L; ++l) sum[l] += static_cast<double>(x[l]) * static_cast<double>(dy[l]);
        }
      for (Index l = 0; l < L; ++l) {
        const Index c = b * block + lane + l;
        if (c >= o.dy.c) return;
        put_gradient(o.d_parameters[0][c], item(sum, l), o.accumulate);
      }
    });
  });
}
/// y = x's channels in another order. Shapes: x, y [N,C,rows,W]. Pre: x holds y's rows.
template <class T>
void channel_shuffle_forward(const Operands<T>& o, int threads) {
  const Index groups = o.node->layer.groups, each = o.node->in.c / groups;
  assert(o.x.range().contains(o.y.range()));
  detail::move_channels(o.x, o.y, threads, [=](Index c) { return c % groups * each + c / groups; });
}
/// dx = dy's channels in the order of x. Post: writes all rows of dx; rows that dy does not have get 0.
template <class T>
void channel_shuffle_backward(const Operands<T>& o, int threads) {
  const Index groups = o.node->layer.groups, each = o.node->in.c / groups;
  detail::move_channels(View<const T>(o.dy), o.dx, threads, [=](Index c) { return c % each * groups + c / each; });
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::layer_scale, T>{layer_scale_forward<T>, layer_scale_backward_data<T>,
                                                                 layer_scale_backward_parameters<T>};
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::channel_shuffle, T>{channel_shuffle_forward<T>, channel_shuffle_backward<T>};
}   // namespace lrcnn::host
