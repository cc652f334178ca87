#pragma once
// Flatten: a map with channels last becomes a feature vector in NCHW order.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/backend/concepts.hpp>
namespace lrcnn::loops {
namespace detail {
/// The feature vectors of a view [N,F,1,1] as a map [N,C,H,W] in NCHW order.
template <class T>
constexpr View<T> unflattened(const View<T>& features, const Shape& map) {
  return {features.data, features.n, map.c, 0, map.h, map.w, 1, features.stride_n, map.h * map.w};
}
}   // namespace detail
/// Shapes:  x [N,C,H,W], all rows -> y [N,C*H*W,1,1]
template <class Exec, class T>
void flatten_forward(const Exec& exec, const Operands<T>& o) {
  assert(channels_last(o.x) && channels_last(o.y));
  convert_rows(exec, o.x, detail::unflattened(o.y, o.node->in));
}
/// Shapes:  dy [N,C*H*W,1,1] -> dx [N,C,H,W], all rows
template <class Exec, class T>
void flatten_backward(const Exec& exec, const Operands<T>& o) {
  assert(channels_last(o.dy) && channels_last(o.dx));
  convert_rows(exec, detail::unflattened(o.dy, o.node->in), o.dx);
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::flatten, Exec, T>{flatten_forward<Exec, T>, flatten_backward<Exec, T>};
}   // namespace lrcnn::loops
