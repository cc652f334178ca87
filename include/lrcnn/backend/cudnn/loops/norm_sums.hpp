#pragma once
// What norms add up over rows: statistics forward, sums and parameter gradients backward.
#include <lrcnn/backend/cudnn/loops/norm_numbers.hpp>
namespace lrcnn::loops {
namespace detail {
/// Mean and deviations of a part's channels, by sums about the part's first elements.
template <class T>
struct MomentsLoop : PartLoop<T> {
  using PartLoop<T>::V, PartLoop<T>::stride_n;
  const T* x;
  bool packs;
  MomentsLoop(const View<const T>& view, const PartRound& r, const Parts& parts_of)
      : PartLoop<T>(view, r, parts_of), x(view.data), packs(takes_packs<V>(view.data, view.n > 1 ? view.stride_n : 0, view.c)) {}
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto place = this->place(unit);
    double pivot[V] = {}, sum[V] = {}, squares[V] = {};
    bool first = true;
    this->each(place, [&](Index image, Index from, Index) {
      master_t<T> value[V];
      load(x + image * stride_n + from, place.count, packs, value);
      for (int v = 0; v < V; ++v) {
        if (first) pivot[v] = static_cast<double>(value[v]);
        const double d = static_cast<double>(value[v]) - pivot[v];
        sum[v] += d, squares[v] += d * d;
      }
      first = false;
    });
    const double n = static_cast<double>(this->round.size(place.part));
    for (int v = 0; v < place.count; ++v) {
      const double m2 = squares[v] - sum[v] * sum[v] / n;
      this->to.put(place.set, place.part, place.channel + v, {pivot[v] + sum[v] / n, m2 < 0 ? 0 : m2});
    }
  }
};
/// Means of channels, and of pixels what they are normalised with.
template <class T>
struct ChannelMeans {
  static constexpr bool of_pixels = false;
  ChannelNorm<T> norm;
  LRCNN_HOST_DEVICE double mean(Index set, Index c) const { return norm.mean(set, c); }
};
struct NoMeans {
  static constexpr bool of_pixels = false;
  LRCNN_HOST_DEVICE double mean(Index, Index) const { return 0; }
};
struct PixelNorm {
  double mean, inverse;
};
template <class T>
struct PixelNorms {
  static constexpr bool of_pixels = true;
  const PixelNorm* pixels;
};
/// Sums over dy and over dy * (x - mean) of a part's channels; over dy * normalised x where pixels have norms.
template <class T, class Means>
struct ProductsLoop : PartLoop<T> {
  using PartLoop<T>::V, PartLoop<T>::stride_n;
  const T *dy, *x;
  Index x_stride_n;
  Means means;
  bool packs;
  ProductsLoop(const View<const T>& down, const View<const T>& view, const PartRound& r, const Parts& parts_of, const Means& m)
      : PartLoop<T>(down, r, parts_of),
        dy(down.data),
        x(view.data),
        x_stride_n(view.stride_n),
        means(m),
        packs(takes_packs<V>(down.data, down.n > 1 ? down.stride_n : 0, down.c) &&
              takes_packs<V>(view.data, view.n > 1 ? view.stride_n : 0, view.c)) {}
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto place = this->place(unit);
    double mean[V] = {}, sum[V] = {}, product[V] = {};
    if constexpr (!Means::of_pixels)
      for (int v = 0; v < place.count; ++v) mean[v] = means.mean(place.set, place.channel + v);
    this->each(place, [&](Index image, Index from, Index position) {
      master_t<T> down[V], value[V];
      load(dy + image * stride_n + from, place.count, packs, down);
      load(x + image * x_stride_n + from, place.count, packs, value);
      for (int v = 0; v < V; ++v) {
        const double g = static_cast<double>(down[v]), at = static_cast<double>(value[v]);
        sum[v] += g;
        if constexpr (Means::of_pixels) product[v] += g * ((at - means.pixels[position].mean) * means.pixels[position].inverse);
        else product[v] += g * (at - mean[v]);
      }
    });
    for (int v = 0; v < place.count; ++v) this->to.put(place.set, place.part, place.channel + v, {sum[v], product[v]});
  }
};
/// Statistics of one unit of a set, together with those of other rows; with the last ones, those of the batch.
template <class T>
struct UnitLoop {
  ChannelNorm<T> norm;
  Parts parts;
  Divisor units;
  double positions, all;   ///< of a channel: those added; those of the whole batch
  bool accumulate;
  master_t<T>*batch_mean, *batch_variance;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index u = unit;
    const Index set = units.split(u), size = norm.unit_channels.value(), first = u * size;
    const double pivot = parts.get(set, 0, first).first;
    double sum = 0, m2 = 0;
    for (Index c = first; c < first + size; ++c) sum += parts.get(set, 0, c).first - pivot;
    const double mean = pivot + sum / static_cast<double>(size), added = positions * static_cast<double>(size);
    for (Index c = first; c < first + size; ++c) {
      const Two channel = parts.get(set, 0, c);
      m2 += channel.second + positions * (channel.first - mean) * (channel.first - mean);
    }
    const Statistics s = norm.statistics(set);
    const double before = accumulate ? s.count() : 0, count = before + added;
    Two two{mean, m2};
    if (before > 0) two = merge(before, {s.mean(u), s.deviations(u)}, added, two);
    s.mean(u) = two.first, s.deviations(u) = two.second;
    if (batch_mean == nullptr || count != all) return;
    batch_mean[u] = static_cast<master_t<T>>(two.first);
    batch_variance[u] = static_cast<master_t<T>>(count > 1 ? two.second / (count - 1) : 0);
  }
};
/// Counts of sets, when all of their units have been added to.
template <class T>
struct CountLoop {
  ChannelNorm<T> norm;
  double added;
  bool accumulate;
  LRCNN_HOST_DEVICE void operator()(Index set) const {
    double& count = norm.statistics(set).count();
    count = accumulate ? count + added : added;
  }
};
template <class T>
struct ClearLoop {
  double* data;
  LRCNN_HOST_DEVICE void operator()(Index unit) const { data[unit] = 0; }
};
/// Sums of one channel, in all sets, and its parameter gradients.
template <class T>
struct ChannelSumsLoop {
  using A = master_t<T>;
  ChannelNorm<T> norm;
  Parts parts;
  Index sets;
  double positions;
  bool accumulate, accumulate_parameters;
  A *d_weight, *d_bias;   ///< null if not wanted
  LRCNN_HOST_DEVICE void operator()(Index c) const {
    double bias = 0, weight = 0;
    for (Index set = 0; set < sets; ++set) {
      const Two two = parts.get(set, 0, c);
      const double product = two.second * norm.inverse(set, c);
      bias += two.first, weight += product;
      if (norm.sums_data == nullptr) continue;
      const Statistics s = norm.sums(set);
      s.sum(c) = (accumulate ? s.sum(c) : 0) + two.first;
      s.product(c) = (accumulate ? s.product(c) : 0) + product;
      if (c == 0) s.count() = (accumulate ? s.count() : 0) + positions;
    }
    if (d_weight == nullptr) return;
    d_weight[c] = static_cast<A>((accumulate_parameters ? static_cast<double>(d_weight[c]) : 0) + weight);
    d_bias[c] = static_cast<A>((accumulate_parameters ? static_cast<double>(d_bias[c]) : 0) + bias);
  }
};
/// Positions of each set of a view.
template <class V>
Index set_positions(const V& view, bool batch) {
  return (batch ? view.n : 1) * view.rows * view.w;
}
/// Adds dy's rows to sums, unless they are null, and to gradients.
template <class Exec, class T>
void add_sums(const Exec& exec, const Operands<T>& o, bool accumulate_parameters) {
  const ChannelNorm<T> norm(o);
  const Index sets = norm.sets(o.dy.n), positions = set_positions(o.dy, norm.batch);
  const PartRound round = first_part_round(sets, positions, norm.channels);
  auto* memory = reinterpret_cast<double*>(o.workspace);
  assert(channels_last(o.dy) && channels_last(o.x) && o.workspace_bytes >= part_bytes(sets, positions, norm.channels));
  const View<const T> x = o.dy.rows > 0 ? o.x.slice(o.dy.range()) : o.x;
  const ProductsLoop<T, ChannelMeans<T>> loop(o.dy, x, round, {memory, norm.channels, round.parts()}, {norm});
  for_units(exec, loop.units(), loop);
  const Parts parts = merge_parts<false>(exec, round, norm.channels, memory);
  const bool wants = o.node->layer.norm.affine;
  for_units(exec, norm.channels,
            ChannelSumsLoop<T>{norm, parts, sets, static_cast<double>(positions), o.accumulate, accumulate_parameters,
                               wants ? o.d_parameters[0] : nullptr, wants ? o.d_parameters[1] : nullptr});
}
}   // namespace detail
/// As host::norm_statistics: adds x's rows to the statistics of their images, and writes those of a batch that is complete.
/// Pre:     a workspace of part_bytes() for x's rows
template <class Exec, class T>
void norm_statistics(const Exec& exec, const Operands<T>& o) {
  const detail::ChannelNorm<T> norm(o);
  const Index sets = statistics_sets(o.node->layer.norm, o.x.n), positions = detail::set_positions(o.x, norm.batch);
  if (positions == 0) {
    if (!o.accumulate) for_units(exec, sets * Statistics::doubles(norm.units), detail::ClearLoop<T>{o.statistics});
    return;
  }
  assert(channels_last(o.x) && o.workspace_bytes >= detail::part_bytes(sets, positions, norm.channels));
  const detail::PartRound round = detail::first_part_round(sets, positions, norm.channels);
  auto* memory = reinterpret_cast<double*>(o.workspace);
  const detail::MomentsLoop<T> loop(o.x, round, {memory, norm.channels, round.parts()});
  for_units(exec, loop.units(), loop);
  const detail::Parts parts = detail::merge_parts<true>(exec, round, norm.channels, memory);
  const Shape& in = o.node->in;
  const std::size_t running = o.node->layer.norm.affine ? 2 : 0;
  const bool writes = norm.batch && o.d_parameters[running] != nullptr && o.d_parameters[running + 1] != nullptr;
  for_units(exec, sets * norm.units,
            detail::UnitLoop<T>{norm, parts, Divisor(norm.units), static_cast<double>(positions), static_cast<double>(in.n * in.h * in.w),
                                o.accumulate, writes ? o.d_parameters[running] : nullptr, writes ? o.d_parameters[running + 1] : nullptr});
  for_units(exec, sets, detail::CountLoop<T>{norm, static_cast<double>(positions * norm.unit_channels.value()), o.accumulate});
}
/// As host::norm_backward_sums: adds, for each channel, dy and dy * normalised x to the sums of their images, and to gradients.
/// Pre:     a workspace of part_bytes() for dy's rows
template <class Exec, class T>
void norm_backward_sums(const Exec& exec, const Operands<T>& o) {
  detail::add_sums(exec, o, o.accumulate_parameters);
}
}   // namespace lrcnn::loops
