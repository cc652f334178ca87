#pragma once
// Means of windows that cover a map, with threads and the host's orders of sums as in average pooling.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
namespace lrcnn::loops {
namespace detail {
template <class T>
struct AdaptivePoolLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> x;
  Image<T> y;
  Pair in, out;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const Range rows = adaptive_window(at.y, out.h, in.h), columns = adaptive_window(at.x, out.w, in.w);
    const Index elements = (rows.end - rows.begin) * (columns.end - columns.begin);
    A sum[V] = {};
    const auto add = [&](Index r, Index begin, Index end) {
      for (Index s = begin; s < end; ++s) {
        A value[V];
        load(x.at(at.image, static_cast<int>(r), static_cast<int>(s), at.channel), at.count, packs, value);
        for (int v = 0; v < V; ++v) sum[v] += value[v];
      }
    };
    if (elements <= largest_window_sum) {
      for (Index r = rows.begin; r < rows.end; ++r) add(r, columns.begin, columns.end);
      for (int v = 0; v < V; ++v) sum[v] /= static_cast<A>(elements);
    } else {
      double total[V] = {};
      for (Index r = rows.begin; r < rows.end; ++r)
        for (Index first = columns.begin; first < columns.end; first += sum_piece) {
          for (int v = 0; v < V; ++v) sum[v] = 0;
          add(r, first, first + sum_piece < columns.end ? first + sum_piece : columns.end);
          for (int v = 0; v < V; ++v) total[v] += static_cast<double>(sum[v]);
        }
      for (int v = 0; v < V; ++v) sum[v] = static_cast<A>(total[v] / static_cast<double>(elements));
    }
    store(y.at(at.image, at.y, at.x, at.channel), at.count, packs, sum);
  }
};
template <class T>
struct AdaptivePoolBackwardLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> dy;
  Image<T> dx;
  Pair in, out;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const Range rows = adaptive_readers(at.y, out.h, in.h), columns = adaptive_readers(at.x, out.w, in.w);
    A sum[V] = {};
    for (Index r = rows.begin; r < rows.end; ++r) {
      if (!dy.holds(static_cast<int>(r))) continue;
      const Range window = adaptive_window(r, out.h, in.h);
      for (Index s = columns.begin; s < columns.end; ++s) {
        const Range across = adaptive_window(s, out.w, in.w);
        const A count = static_cast<A>((window.end - window.begin) * (across.end - across.begin));
        A down[V];
        load(dy.at(at.image, static_cast<int>(r), static_cast<int>(s), at.channel), at.count, packs, down);
        for (int v = 0; v < V; ++v) sum[v] += down[v] / count;
      }
    }
    store(dx.at(at.image, at.y, at.x, at.channel), at.count, packs, sum);
  }
};
}   // namespace detail
/// As host::adaptive_pool_forward. Pre: x holds the rows that y's read
template <class Exec, class T>
void adaptive_pool_forward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.y)) return;
  assert(channels_last(o.x) && channels_last(o.y));
  constexpr int V = lanes<T>;
  const detail::Positions positions(o.y, V);
  const Shape &in = o.node->in, &out = o.node->out;
  for_units(exec, positions.count(),
            detail::AdaptivePoolLoop<T>{
                positions, o.x, o.y, {in.h, in.w}, {out.h, out.w}, detail::position_packs<V>(o.x) && detail::position_packs<V>(o.y)});
}
/// As host::adaptive_pool_backward. Post: writes all rows of dx; only windows of dy's rows contribute
template <class Exec, class T>
void adaptive_pool_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  assert(channels_last(o.dx) && channels_last(o.dy));
  constexpr int V = lanes<T>;
  const detail::Positions positions(o.dx, V);
  const Shape &in = o.node->in, &out = o.node->out;
  for_units(exec, positions.count(),
            detail::AdaptivePoolBackwardLoop<T>{
                positions, o.dy, o.dx, {in.h, in.w}, {out.h, out.w}, detail::position_packs<V>(o.dx) && detail::position_packs<V>(o.dy)});
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::adaptive_avg_pool, Exec, T>{adaptive_pool_forward<Exec, T>, adaptive_pool_backward<Exec, T>};
}   // namespace lrcnn::loops
