#pragma once
// Average pooling, with threads and orders of sums as in max pooling.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
namespace lrcnn::loops {
namespace detail {
template <class T>
struct AvgPoolLoop : PoolLoop<T> {
  using A = master_t<T>;
  using PoolLoop<T>::positions, PoolLoop<T>::rows, PoolLoop<T>::columns, PoolLoop<T>::packs;
  static constexpr int V = lanes<T>;
  Image<const T> x;
  Image<T> y;
  bool count_padding;
  explicit AvgPoolLoop(const Operands<T>& o) : PoolLoop<T>(*o.node, o.y, o.x), x(o.x), y(o.y), count_padding(o.node->layer.count_padding) {}
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    A sum[V] = {};
    int inside = 0;
    for (int r = 0; r < rows.kernel(); ++r) {
      const int row = rows.position(at.y, r);
      if (!rows.inside(row)) continue;
      for (int s = 0; s < columns.kernel(); ++s) {
        const int column = columns.position(at.x, s);
        if (!columns.inside(column)) continue;
        A value[V];
        load(x.at(at.image, row, column, at.channel), at.count, packs, value);
        for (int v = 0; v < V; ++v) sum[v] += value[v];
        ++inside;
      }
    }
    const int count = count_padding ? rows.taps_counted(at.y, true) * columns.taps_counted(at.x, true) : inside > 0 ? inside : 1;
    for (int v = 0; v < V; ++v) sum[v] /= static_cast<A>(count);
    store(y.at(at.image, at.y, at.x, at.channel), at.count, packs, sum);
  }
};
template <class T>
struct AvgPoolBackwardLoop : PoolLoop<T> {
  using A = master_t<T>;
  using PoolLoop<T>::positions, PoolLoop<T>::rows, PoolLoop<T>::columns, PoolLoop<T>::packs;
  static constexpr int V = lanes<T>;
  Image<const T> dy;
  Image<T> dx;
  int outputs;
  bool count_padding;
  explicit AvgPoolBackwardLoop(const Operands<T>& o)
      : PoolLoop<T>(*o.node, o.dx, o.dy), dy(o.dy), dx(o.dx), outputs(static_cast<int>(o.node->out.w)), count_padding(o.node->layer.count_padding) {}
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    A sum[V] = {};
    for (auto r = rows.first_reader(at.y); r.tap < rows.kernel(); rows.next(r)) {
      if (!dy.holds(r.out)) continue;
      const int row_count = rows.taps_counted(r.out, count_padding);
      for (auto s = columns.first_reader(at.x); s.tap < columns.kernel(); columns.next(s)) {
        if (s.out < 0 || s.out >= outputs) continue;
        const int column_count = columns.taps_counted(s.out, count_padding);
        A down[V];
        load(dy.at(at.image, r.out, s.out, at.channel), at.count, packs, down);
        for (int v = 0; v < V; ++v) sum[v] += down[v] / static_cast<A>(row_count * column_count);
      }
    }
    store(dx.at(at.image, at.y, at.x, at.channel), at.count, packs, sum);
  }
};
}   // namespace detail
/// As host::avg_pool_forward: the mean of each window.
template <class Exec, class T>
void avg_pool_forward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.y)) return;
  const detail::AvgPoolLoop<T> loop(o);
  for_units(exec, loop.positions.count(), loop);
}
/// As host::avg_pool_backward: dx = dy / count, added up over windows.
/// Post:    writes all rows of dx; only windows of dy's rows contribute
template <class Exec, class T>
void avg_pool_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  const detail::AvgPoolBackwardLoop<T> loop(o);
  for_units(exec, loop.positions.count(), loop);
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::avg_pool, Exec, T>{avg_pool_forward<Exec, T>, avg_pool_backward<Exec, T>};
}   // namespace lrcnn::loops
