#pragma once
// Flatten: a map becomes a feature vector in NCHW order, whatever the storage of either.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
namespace lrcnn::host {
namespace detail {
/// Calls f(image, channel, row, feature of the row's first element).
template <class F>
void for_features(const Shape& in, Index images, int threads, F&& f) {
  parallel_for(images * in.c, useful_threads(images * in.c * in.h * in.w, threads), [&](Index piece) {
    for (Index row = 0; row < in.h; ++row) f(piece / in.c, piece % in.c, row, (piece % in.c * in.h + row) * in.w);
  });
}
}   // namespace detail
/// Shapes:  x [N,C,H,W], all rows -> y [N,C*H*W,1,1]
template <class T>
void flatten_forward(const Operands<T>& o, int threads) {
  const Shape& in = o.node->in;
  assert(o.x.range().contains({0, in.h}));
  detail::for_features(in, o.y.n, threads, [&](Index i, Index c, Index row, Index feature) {
    const T* from = channel_row(o.x, i, c, row);
    T* to = features(o.y, i) + feature;
    for (Index column = 0; column < in.w; ++column) to[column] = from[column * o.x.block];
  });
  zero_padded_channels(o.y);
}
/// Shapes:  dy [N,C*H*W,1,1] -> dx [N,C,H,W], all rows
template <class T>
void flatten_backward(const Operands<T>& o, int threads) {
  const Shape& in = o.node->in;
  assert((o.dx.range() == Range{0, in.h}));
  detail::for_features(in, o.dx.n, threads, [&](Index i, Index c, Index row, Index feature) {
    const T* from = features(o.dy, i) + feature;
    T* to = channel_row(o.dx, i, c, row);
    for (Index column = 0; column < in.w; ++column) to[column * o.dx.block] = from[column];
  });
  zero_padded_channels(o.dx);
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::flatten, T>{flatten_forward<T>, flatten_backward<T>};
}   // namespace lrcnn::host
