#pragma once
// Upsampling, with threads as in pooling and the host's orders of sums.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
#include <lrcnn/shape/upsampling.hpp>
namespace lrcnn::loops {
namespace detail {
/// y = what the pixels around are worth.
template <class T>
struct UpsampleLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> x;
  Image<T> y;
  Upsampling rule;
  int h, w;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const Interpolation r = upsampled_at(rule, true, at.y, h), c = upsampled_at(rule, false, at.x, w);
    A value[V], below[V];
    row(at, static_cast<int>(r.first), c, value);
    if (r.weight != 0) {
      const A low = static_cast<A>(r.weight), high = static_cast<A>(1 - r.weight);
      row(at, static_cast<int>(r.second), c, below);
      for (int v = 0; v < V; ++v) value[v] = high * value[v] + low * below[v];
    }
    store(y.at(at.image, at.y, at.x, at.channel), at.count, packs, value);
  }
  LRCNN_HOST_DEVICE void row(const Positions::Place& at, int from, const Interpolation& c, A (&value)[V]) const {
    load(x.at(at.image, from, static_cast<int>(c.first), at.channel), at.count, packs, value);
    if (c.weight == 0) return;
    A second[V];
    const A right = static_cast<A>(c.weight), left = static_cast<A>(1 - c.weight);
    load(x.at(at.image, from, static_cast<int>(c.second), at.channel), at.count, packs, second);
    for (int v = 0; v < V; ++v) value[v] = left * value[v] + right * second[v];
  }
};
/// dx = the sum of what the pixels made of it send back.
template <class T>
struct UpsampleBackwardLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> dy;
  Image<T> dx;
  Upsampling rule;
  int h, w;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const Range rows = upsampled_to(rule, true, at.y, h), columns = upsampled_to(rule, false, at.x, w);
    const int first = static_cast<int>(columns.begin), last = static_cast<int>(columns.end);
    A sum[V] = {};
    for (int p = static_cast<int>(rows.begin); p < static_cast<int>(rows.end); ++p) {
      if (!dy.holds(p)) continue;
      const double down = share(true, p, at.y, h);
      for (int q = first; q < last; ++q) {
        const A part = static_cast<A>(down * share(false, q, at.x, w));
        A value[V];
        load(dy.at(at.image, p, q, at.channel), at.count, packs, value);
        for (int v = 0; v < V; ++v) sum[v] += part * value[v];
      }
    }
    store(dx.at(at.image, at.y, at.x, at.channel), at.count, packs, sum);
  }
  /// What output position `out` takes from input position `in`.
  LRCNN_HOST_DEVICE double share(bool of_rows, Index out, Index in, Index extent) const {
    if (rule.rule == Upsampling::Rule::nearest) return 1;
    const Interpolation at = upsampled_at(rule, of_rows, out, extent);
    return (at.first == in ? 1 - at.weight : 0) + (at.second == in ? at.weight : 0);
  }
};
}   // namespace detail
/// As host::upsample_forward. Pre: x holds the rows that y's read
template <class Exec, class T>
void upsample_forward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.y)) return;
  assert(channels_last(o.x) && channels_last(o.y));
  constexpr int V = lanes<T>;
  const detail::Positions positions(o.y, V);
  for_units(exec, positions.count(),
            detail::UpsampleLoop<T>{positions, o.x, o.y, o.node->layer.upsampling, static_cast<int>(o.node->in.h), static_cast<int>(o.node->in.w),
                                    detail::position_packs<V>(o.x) && detail::position_packs<V>(o.y)});
}
/// As host::upsample_backward. Post: writes all rows of dx; only rows that dy has contribute
template <class Exec, class T>
void upsample_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  assert(channels_last(o.dx) && channels_last(o.dy));
  constexpr int V = lanes<T>;
  const detail::Positions positions(o.dx, V);
  for_units(exec, positions.count(),
            detail::UpsampleBackwardLoop<T>{positions, o.dy, o.dx, o.node->layer.upsampling, static_cast<int>(o.node->in.h),
                                            static_cast<int>(o.node->in.w), detail::position_packs<V>(o.dx) && detail::position_packs<V>(o.dy)});
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::upsample, Exec, T>{upsample_forward<Exec, T>, upsample_backward<Exec, T>};
}   // namespace lrcnn::loops
