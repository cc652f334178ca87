#pragma once
// What works on channels: a factor for each, the layer's own or a vector of each image, and another order.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/norm_sums.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
namespace lrcnn::loops {
namespace detail {
/// to = from * the channel's factor.
template <class T, class S>
struct FactorLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> from;
  Image<T> to;
  const S* factors;
  Index stride_n;   ///< of the factors; 0: all images have the same
  bool packs, factor_packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    A value[V], factor[V];
    load(from.at(at.image, at.y, at.x, at.channel), at.count, packs, value);
    load(factors + at.image * stride_n + at.channel, at.count, factor_packs, factor);
    for (int v = 0; v < V; ++v) value[v] *= factor[v];
    store(to.at(at.image, at.y, at.x, at.channel), at.count, packs, value);
  }
};
/// Rows of `to`, all of which `from` has.
template <class Exec, class T, class S>
void multiply(const Exec& exec, const View<const T>& from, const View<T>& to, const S* factors, Index stride_n) {
  if (empty(to)) return;
  assert(channels_last(from) && channels_last(to) && from.range().contains(to.range()));
  constexpr int V = lanes<T>;
  const Positions positions(to, V);
  for_units(exec, positions.count(),
            FactorLoop<T, S>{positions, from, to, factors, stride_n, position_packs<V>(from) && position_packs<V>(to),
                             takes_packs<V>(factors, stride_n, to.c)});
}
/// dx = dy * factors for the rows that both have; 0 in dx's others.
template <class Exec, class T, class S>
void multiply_down(const Exec& exec, const Operands<T>& o, const S* factors, Index stride_n) {
  const Range both = zero_others(exec, o);
  if (!both.empty()) multiply(exec, o.dy, o.dx.slice(both), factors, stride_n);
}
/// What sums of dy * x come to.
template <class A, class T>
struct ProductResult {
  Index channels;
  bool accumulate;
  T* to;
  Index stride_n;
  double* sums;   ///< [sets][channels] that are added up and rounded to the result; null: the result itself is
  LRCNN_HOST_DEVICE void operator()(Index set, Index c, const Two& two) const {
    T& result = to[set * stride_n + c];
    double* const kept = sums != nullptr ? sums + set * channels + c : nullptr;
    const double before = !accumulate ? 0 : kept ? *kept : static_cast<double>(result), total = before + two.second;
    if (kept) *kept = total;
    result = static_cast<T>(static_cast<A>(total));
  }
};
/// to[set][channel] (+)= the sum over dy's rows of dy * x, in doubles: of all images, or of each. `sums`: kept there unrounded, or null.
template <class Exec, class T, class S>
void sum_products(const Exec& exec, const Operands<T>& o, Lines::Images together, bool accumulate, S* to, Index stride_n, double* sums) {
  const bool all = together == Lines::Images::together;
  const Index sets = all ? 1 : o.dy.n, positions = set_positions(o.dy, all);
  const Tiles tiles = tiles_of<T>(sets, positions, o.dy.c);
  const PartSpace space(tiles, o.dy.c, o.workspace);
  assert(channels_last(o.dy) && channels_last(o.x) && o.workspace_bytes >= part_bytes<T>(sets, positions, o.dy.c));
  const View<const T> x = o.dy.rows > 0 ? o.x.slice(o.dy.range()) : o.x;
  const ProductResult<master_t<T>, S> result{o.dy.c, accumulate, to, stride_n, sums};
  for_blocks(exec, tiles.blocks(), ProductsLoop<T, NoMeans, ProductResult<master_t<T>, S>>(o.dy, x, tiles, space.parts, {}, result, o.tallies));
}
/// y's channel c is x's channel source(c), where groups lie `each` apart.
template <class T>
struct ShuffleLoop {
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> from;
  Image<T> to;
  Divisor inner;   ///< channel c comes from c % inner * step + c / inner
  Index step;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const T* x = from.at(at.image, at.y, at.x, 0);
    master_t<T> value[V] = {};
    for (int v = 0; v < V; ++v) {
      if (v >= at.count) continue;
      Index rest = at.channel + v;
      const Index whole = inner.split(rest);
      value[v] = static_cast<master_t<T>>(x[rest * step + whole]);
    }
    store(to.at(at.image, at.y, at.x, at.channel), at.count, packs, value);
  }
};
template <class Exec, class T>
void shuffle(const Exec& exec, const View<const T>& from, const View<T>& to, Index inner, Index step) {
  if (empty(to)) return;
  assert(channels_last(from) && channels_last(to) && from.range().contains(to.range()));
  constexpr int V = lanes<T>;
  const Positions positions(to, V);
  for_units(exec, positions.count(), ShuffleLoop<T>{positions, from, to, Divisor(inner), step, position_packs<V>(to)});
}
}   // namespace detail
/// As host::layer_scale_forward.
template <class Exec, class T>
void layer_scale_forward(const Exec& exec, const Operands<T>& o) {
  detail::multiply(exec, o.x, o.y, o.parameters[0], 0);
}
/// As host::layer_scale_backward_data.
template <class Exec, class T>
void layer_scale_backward_data(const Exec& exec, const Operands<T>& o) {
  detail::multiply_down(exec, o, o.parameters[0], 0);
}
/// As host::layer_scale_backward_parameters. Pre: a workspace of products_workspace_bytes()
template <class Exec, class T>
void layer_scale_backward_parameters(const Exec& exec, const Operands<T>& o) {
  detail::sum_products(exec, o, Lines::Images::together, o.accumulate, o.d_parameters[0], 0, nullptr);
}
/// As host::scale_forward.
template <class Exec, class T>
void scale_forward(const Exec& exec, const Operands<T>& o) {
  detail::multiply(exec, o.x, o.y, o.other.data, o.other.stride_n);
}
/// As host::scale_backward. Pre: operand 1 has a workspace of products_workspace_bytes()
template <class Exec, class T>
void scale_backward(const Exec& exec, const Operands<T>& o) {
  if (o.operand == 0) return detail::multiply_down(exec, o, o.other.data, o.other.stride_n);
  detail::sum_products(exec, o, Lines::Images::apart, o.accumulate && o.sums, o.dx.data, o.dx.stride_n, o.sums);
}
/// Bytes of workspace that the gradient of a LayerScale, or of the factors of a Scale, needs; 0 for their other steps.
template <class T>
constexpr Index products_workspace_bytes(const Operands<T>& o) {
  const bool own = o.op == Op::backward_parameters;
  if (!own && (o.op != Op::backward_data || o.node->layer.kind != Kind::scale || o.operand == 0)) return 0;
  return detail::part_bytes<T>(own ? 1 : o.dy.n, detail::set_positions(o.dy, own), o.dy.c);
}
/// As host::channel_shuffle_forward.
template <class Exec, class T>
void channel_shuffle_forward(const Exec& exec, const Operands<T>& o) {
  const Index groups = o.node->layer.groups;
  detail::shuffle(exec, o.x, o.y, groups, o.node->in.c / groups);
}
/// As host::channel_shuffle_backward. Post: writes all rows of dx; rows that dy does not have get 0
template <class Exec, class T>
void channel_shuffle_backward(const Exec& exec, const Operands<T>& o) {
  const Index groups = o.node->layer.groups;
  const Range both = detail::zero_others(exec, o);
  if (!both.empty()) detail::shuffle(exec, o.dy, o.dx.slice(both), o.node->in.c / groups, groups);
}
template <class T>
inline constexpr auto layer_workspace<Kind::layer_scale, T> = products_workspace_bytes<T>;
template <class T>
inline constexpr auto layer_workspace<Kind::scale, T> = products_workspace_bytes<T>;
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::layer_scale, Exec, T>{layer_scale_forward<Exec, T>, layer_scale_backward_data<Exec, T>,
                                                                             layer_scale_backward_parameters<Exec, T>};
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::scale, Exec, T>{scale_forward<Exec, T>, scale_backward<Exec, T>};
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::channel_shuffle, Exec, T>{channel_shuffle_forward<Exec, T>, channel_shuffle_backward<Exec, T>};
}   // namespace lrcnn::loops
