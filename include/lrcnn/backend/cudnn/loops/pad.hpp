#pragma once
// Rows and columns around a map, zeros or reflected ones, or taken away; with threads as in pooling.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
namespace lrcnn::loops {
namespace detail {
/// Position (row, column) of `to` is (row - top, column - left) of `from`, zero where that has none.
template <class T>
struct ShiftLoop {
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> from;
  Image<T> to;
  int top, left, width;   ///< width: of `from`
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const int row = at.y - top, column = at.x - left;
    master_t<T> value[V] = {};
    if (from.holds(row) && 0 <= column && column < width) load(from.at(at.image, row, column, at.channel), at.count, packs, value);
    store(to.at(at.image, at.y, at.x, at.channel), at.count, packs, value);
  }
};
template <class Exec, class T>
void shift(const Exec& exec, const View<const T>& from, const View<T>& to, Index top, Index left) {
  constexpr int V = lanes<T>;
  const Positions positions(to, V);
  for_units(exec, positions.count(),
            ShiftLoop<T>{positions, from, to, static_cast<int>(top), static_cast<int>(left), static_cast<int>(from.w),
                         position_packs<V>(from) && position_packs<V>(to)});
}
/// y = what the position shows.
template <class T>
struct ReflectLoop {
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> x;
  Image<T> y;
  Pad pad;
  Index h, w;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const int row = static_cast<int>(reflected_position(at.y, pad.top, h)), column = static_cast<int>(reflected_position(at.x, pad.left, w));
    master_t<T> value[V];
    load(x.at(at.image, row, column, at.channel), at.count, packs, value);
    store(y.at(at.image, at.y, at.x, at.channel), at.count, packs, value);
  }
};
/// dx = the sum of dy over the positions that show it.
template <class T>
struct ReflectBackwardLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> dy;
  Image<T> dx;
  Pad pad;
  Index h, w, out_w;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const Reflections down(pad.top, pad.bottom, at.y, h, {dy.row0, dy.row0 + dy.rows}), across(pad.left, pad.right, at.x, w, {0, out_w});
    A sum[V] = {};
    for (int p = 0; p < 3; ++p)   // to a constant, so that `at` needs no memory
      for (int q = 0; q < 3; ++q) {
        if (p >= down.count || q >= across.count) continue;
        A value[V];
        load(dy.at(at.image, static_cast<int>(down.at[p]), static_cast<int>(across.at[q]), at.channel), at.count, packs, value);
        for (int v = 0; v < V; ++v) sum[v] += value[v];
      }
    store(dx.at(at.image, at.y, at.x, at.channel), at.count, packs, sum);
  }
};
}   // namespace detail
/// As host::pad_forward. Pre: x holds the rows inside the map that y's rows show
template <class Exec, class T>
void pad_forward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.y)) return;
  assert(channels_last(o.x) && channels_last(o.y));
  const Pad& pad = o.node->layer.window.pad;
  if (!o.node->layer.reflect) return detail::shift(exec, o.x, o.y, pad.top, pad.left);
  constexpr int V = lanes<T>;
  const detail::Positions positions(o.y, V);
  for_units(
      exec, positions.count(),
      detail::ReflectLoop<T>{positions, o.x, o.y, pad, o.node->in.h, o.node->in.w, detail::position_packs<V>(o.x) && detail::position_packs<V>(o.y)});
}
/// As host::pad_backward. Post: writes all rows of dx; only rows that dy has contribute
template <class Exec, class T>
void pad_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  assert(channels_last(o.dx) && channels_last(o.dy));
  const Pad& pad = o.node->layer.window.pad;
  if (!o.node->layer.reflect) return detail::shift(exec, o.dy, o.dx, -pad.top, -pad.left);
  constexpr int V = lanes<T>;
  const detail::Positions positions(o.dx, V);
  for_units(exec, positions.count(),
            detail::ReflectBackwardLoop<T>{positions, o.dy, o.dx, pad, o.node->in.h, o.node->in.w, o.node->out.w,
                                           detail::position_packs<V>(o.dx) && detail::position_packs<V>(o.dy)});
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::pad, Exec, T>{pad_forward<Exec, T>, pad_backward<Exec, T>};
}   // namespace lrcnn::loops
