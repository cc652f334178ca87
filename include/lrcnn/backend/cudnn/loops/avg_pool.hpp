#pragma once
// Average pooling, with threads and orders of sums as in max pooling.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
namespace lrcnn::loops {
namespace detail {
/// Divides by a number of elements below 2^24. For floats it multiplies with the inverse in double, which rounds to the same bits: a quotient of 24
/// by 24 bits is never so near to the middle between two floats. A device calls a function to divide, and keeps registers in a stack frame for it.
template <class A>
class DivideBy {
 public:
  LRCNN_HOST_DEVICE explicit DivideBy(int count) : by_(single ? inverse(count) : count) {}
  LRCNN_HOST_DEVICE A operator()(A a) const {
    if constexpr (single) return static_cast<A>(static_cast<double>(a) * by_);
    else return a / by_;
  }

 private:
  static constexpr bool single = std::is_same_v<A, float>;
  /// To 50 bits, by Newton's method from some 22.
  LRCNN_HOST_DEVICE static double inverse(int count) {
#ifdef __CUDA_ARCH__
    float near;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(static_cast<float>(count)));
#else
    const float near = 1.0f / static_cast<float>(count);
#endif
    double r = near;
    for (int i = 0; i < 2; ++i) r += r * (1 - r * count);
    return r;
  }
  double by_;
};
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
    for (int r = 0; r < rows.kernel(); ++r) {
      const int row = rows.position(at.y, r);
      if (!rows.inside(row)) continue;
      for (int s = 0; s < columns.kernel(); ++s) {
        const int column = columns.position(at.x, s);
        if (!columns.inside(column)) continue;
        A value[V];
        load(x.at(at.image, row, column, at.channel), at.count, packs, value);
        for (int v = 0; v < V; ++v) sum[v] += value[v];
      }
    }
    const int counted = rows.taps_counted(at.y, count_padding) * columns.taps_counted(at.x, count_padding), count = counted > 0 ? counted : 1;
    const DivideBy<A> mean(count);
    for (int v = 0; v < V; ++v) sum[v] = mean(sum[v]);
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
        const DivideBy<A> mean(row_count * column_count);
        for (int v = 0; v < V; ++v) sum[v] += mean(down[v]);
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
