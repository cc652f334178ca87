#pragma once
// Means of windows that cover a map, with threads and the host's orders of sums as in average pooling.
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
namespace lrcnn::loops {
namespace detail {
/// Windows of rows, or of columns.
struct AdaptiveWindows {
  Divisor out, in;
  LRCNN_HOST_DEVICE Range window(Index at) const { return adaptive_window(at, out, in.value()); }
  LRCNN_HOST_DEVICE Range readers(Index at) const { return adaptive_readers(at, out.value(), in); }
};
struct AdaptiveMap {
  AdaptiveWindows rows, columns;
  explicit AdaptiveMap(const Node& node) : rows{Divisor(node.out.h), Divisor(node.in.h)}, columns{Divisor(node.out.w), Divisor(node.in.w)} {}
};
/// The mean of V channels of a window; of more elements than one sum takes if `large`.
template <class T, int V, bool large>
struct WindowMeanLoop {
  using A = master_t<T>;
  Positions positions;
  Image<const T> x;
  Image<T> y;
  AdaptiveMap map;
  bool packs;
  WindowMeanLoop(const Operands<T>& o) : positions(o.y, V), x(o.x), y(o.y), map(*o.node), packs(position_packs<V>(o.x) && position_packs<V>(o.y)) {}
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const Range rows = map.rows.window(at.y), columns = map.columns.window(at.x);
    const int first = static_cast<int>(columns.begin), last = static_cast<int>(columns.end);
    const Index elements = (rows.end - rows.begin) * (columns.end - columns.begin);
    A sum[V] = {};
    const auto add = [&](int r, int begin, int end) {
      for (int s = begin; s < end; ++s) {
        A value[V];
        load(x.at(at.image, r, s, at.channel), at.count, packs, value);
        for (int v = 0; v < V; ++v) sum[v] += value[v];
      }
    };
    const int top = static_cast<int>(rows.begin), bottom = static_cast<int>(rows.end);
    if constexpr (!large) {
      for (int r = top; r < bottom; ++r) add(r, first, last);
      for (int v = 0; v < V; ++v) sum[v] /= static_cast<A>(elements);
    } else {
      const bool pieces = elements > largest_window_sum;
      const int piece = pieces ? static_cast<int>(sum_piece) : last - first;
      double total[V] = {};
      for (int r = top; r < bottom; ++r)
        for (int begin = first; begin < last; begin += piece) {
          add(r, begin, begin + piece < last ? begin + piece : last);
          for (int v = 0; v < V; ++v) total[v] = pieces ? total[v] + static_cast<double>(sum[v]) : static_cast<double>(sum[v]);
          for (int v = 0; pieces && v < V; ++v) sum[v] = 0;
        }
      for (int v = 0; v < V; ++v) sum[v] = static_cast<A>(total[v] / static_cast<double>(elements));   // of floats: what float division gives
    }
    store(y.at(at.image, at.y, at.x, at.channel), at.count, packs, sum);
  }
};
template <class T>
struct AdaptivePoolLoop : WindowMeanLoop<T, lanes<T>, false> {
  using WindowMeanLoop<T, lanes<T>, false>::WindowMeanLoop;
};
/// Large windows are few: more threads, with fewer channels each. A loop of blocks, whose compiler keeps all of it in registers.
template <class T>
struct LargeWindowLoop : WindowMeanLoop<T, 2, true> {
  using WindowMeanLoop<T, 2, true>::WindowMeanLoop;
  static constexpr int phases = 1;
  struct Shared {};
  Index blocks() const { return ceil_div(this->positions.count(), Index{block_threads}); }
  template <int>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared&) const {
    const Index unit = block * block_threads + thread;
    if (unit < this->positions.count()) (*this)(unit);
  }
};
template <class T>
struct AdaptivePoolBackwardLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> dy;
  Image<T> dx;
  AdaptiveMap map;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const Range rows = map.rows.readers(at.y), columns = map.columns.readers(at.x);
    A sum[V] = {};
    for (Index r = rows.begin; r < rows.end; ++r) {
      if (!dy.holds(static_cast<int>(r))) continue;
      const Range window = map.rows.window(r);
      for (Index s = columns.begin; s < columns.end; ++s) {
        const Range across = map.columns.window(s);
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
  const Shape &in = o.node->in, &out = o.node->out;
  if (adaptive_axis(out.h, in.h).kernel * adaptive_axis(out.w, in.w).kernel > largest_window_sum) {
    const detail::LargeWindowLoop<T> loop(o);
    for_blocks(exec, loop.blocks(), loop);
  } else {
    const detail::AdaptivePoolLoop<T> loop(o);
    for_units(exec, loop.positions.count(), loop);
  }
}
/// As host::adaptive_pool_backward. Post: writes all rows of dx; only windows of dy's rows contribute
template <class Exec, class T>
void adaptive_pool_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  assert(channels_last(o.dx) && channels_last(o.dy));
  constexpr int V = lanes<T>;
  const detail::Positions positions(o.dx, V);
  for_units(exec, positions.count(),
            detail::AdaptivePoolBackwardLoop<T>{positions, o.dy, o.dx, detail::AdaptiveMap(*o.node),
                                                detail::position_packs<V>(o.dx) && detail::position_packs<V>(o.dy)});
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::adaptive_avg_pool, Exec, T>{adaptive_pool_forward<Exec, T>, adaptive_pool_backward<Exec, T>};
}   // namespace lrcnn::loops
