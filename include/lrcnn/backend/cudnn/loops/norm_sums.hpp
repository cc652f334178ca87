#pragma once
// What norms add up over rows: statistics forward, sums and parameter gradients backward.
#include <lrcnn/backend/cudnn/loops/products.hpp>
namespace lrcnn::loops {
namespace detail {
/// Mean and deviations of channels, of each part by sums about the part's first elements. Counts the rows, too, unless Then does.
template <class T, class Then>
struct MomentsLoop : PartLoop<T, true, Then> {
  using Base = PartLoop<T, true, Then>;
  using Base::V;
  using typename Base::Elements, typename Base::Place, typename Base::Shared;
  const T* x;
  Index stride_n;
  bool packs, accumulate;
  ChannelNorm<T> norm;
  double* counts;   ///< before these rows
  MomentsLoop(const View<const T>& view, const Tiles& t, const PartSpace& space, const ChannelNorm<T>& n, bool adds, const Then& result,
              std::uint32_t* counted)
      : Base(view, t, space.parts, result, counted),
        x(view.data),
        stride_n(view.stride_n),
        packs(position_packs<V>(view)),
        accumulate(adds),
        norm(n),
        counts(space.counts) {}
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const Place place = this->place(block, thread);
    if constexpr (k == 0) {
      if constexpr (!Base::closes)
        if (thread == 0 && place.part == 0 && place.channel == 0) add_count(place.set);
      if (packs && place.count == V) add_up<4, true>(place, thread, shared);
      else add_up<1, false>(place, thread, shared);
    } else if constexpr (k == 1) {
      this->add_rows(thread, shared);
    } else if constexpr (k == 2) {
      this->put_part(block, thread, shared);
    } else {
      this->template end_phase<k - Base::own_phases>(block, thread, shared.turn);
    }
  }

 private:
  template <int n, bool packed>
  LRCNN_HOST_DEVICE void add_up(const Place& place, int thread, Shared& shared) const {
    using Few = few_t<T>;
    double sum[V] = {}, squares[V] = {};
    if (place.count > 0) {
      Elements pivot[1];
      load_all<packed>([&](int) { return x + this->before(place, place.part * this->tiles.part, stride_n); }, place.count, pivot);
      if (place.row == 0)
        for (int v = 0; v < V; ++v) shared.sum.pivot[v][thread] = pivot[0].element[v];
      this->template each<n>(place, [&](const auto& some) {
        Elements element[n];
        load_all<packed>([&](int i) { return x + this->before(place, some.at(i), stride_n); }, place.count, element);
        for (int v = 0; v < V; ++v) {
          Few few = 0, few_squares = 0;
          for (int i = 0; i < n; ++i) {
            const Few d = some.has(i) ? static_cast<Few>(element[i].element[v]) - static_cast<Few>(pivot[0].element[v]) : Few(0);
            few += d, few_squares += d * d;
          }
          sum[v] += static_cast<double>(few), squares[v] += static_cast<double>(few_squares);
        }
      });
    }
    this->keep(shared, thread, sum, squares);
  }
  LRCNN_HOST_DEVICE void add_count(Index set) const {
    double& count = norm.statistics(set).count();
    counts[set] = accumulate ? count : 0;
    count = counts[set] + static_cast<double>(this->tiles.positions * norm.unit_channels.value());
  }
};
/// Statistics of one unit of a set, together with those of other rows; with the last ones, those of the batch.
template <class T>
struct UnitStatistics {
  ChannelNorm<T> norm;
  double added, all;   ///< elements of a unit: these; those of the whole batch
  master_t<T>*batch_mean, *batch_variance;
  LRCNN_HOST_DEVICE void put(Index set, Index u, Two two, double before) const {
    const Statistics s = norm.statistics(set);
    const double count = before + added;
    if (before > 0) {
      const Moments both = merged(before, {s.mean(u), s.deviations(u)}, added, {two.first, two.second});
      two = {both.mean, both.deviations};
    }
    s.mean(u) = two.first, s.deviations(u) = two.second;
    if (batch_mean == nullptr || count != all) return;
    batch_mean[u] = static_cast<master_t<T>>(two.first);
    batch_variance[u] = static_cast<master_t<T>>(count > 1 ? two.second / (count - 1) : 0);
  }
};
/// Of a channel, where all images share statistics. The rows are counted when all channels are done.
template <class T>
struct BatchStatistics {
  UnitStatistics<T> to;
  bool accumulate;
  LRCNN_HOST_DEVICE double before(Index set) const { return accumulate ? to.norm.statistics(set).count() : 0; }
  LRCNN_HOST_DEVICE void operator()(Index set, Index c, const Two& two) const { to.put(set, c, two, before(set)); }
  LRCNN_HOST_DEVICE void close(Index set) const { to.norm.statistics(set).count() = before(set) + to.added; }
};
/// Of the channels of a group.
template <class T>
struct GroupLoop {
  UnitStatistics<T> to;
  Parts parts;
  const double* counts;   ///< of other rows
  Divisor units;
  double positions;   ///< of a channel
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index u = unit;
    const Index set = units.split(u), size = to.norm.unit_channels.value(), first = u * size;
    const double pivot = parts.get(set, 0, first).first;
    double sum = 0, m2 = 0;
    for (Index c = first; c < first + size; ++c) sum += parts.get(set, 0, c).first - pivot;
    const double mean = pivot + sum / static_cast<double>(size);
    for (Index c = first; c < first + size; ++c) {
      const Two channel = parts.get(set, 0, c);
      m2 += channel.second + positions * (channel.first - mean) * (channel.first - mean);
    }
    to.put(set, u, {mean, m2}, counts[set]);
  }
};
template <class T>
struct ClearLoop {
  double* data;
  LRCNN_HOST_DEVICE void operator()(Index unit) const { data[unit] = 0; }
};
/// Sums of one channel, and its parameter gradients.
template <class T>
struct ChannelSums {
  using A = master_t<T>;
  ChannelNorm<T> norm;
  double positions;
  bool accumulate, accumulate_parameters;
  A *d_weight, *d_bias;   ///< null if not wanted
  /// One set's. Returns the sum over dy * normalised x
  LRCNN_HOST_DEVICE double add(Index set, Index c, const Two& two) const {
    const double product = two.second * norm.inverse(set, c);
    if (norm.sums_data == nullptr) return product;
    const Statistics s = norm.sums(set);
    s.sum(c) = (accumulate ? s.sum(c) : 0) + two.first;
    s.product(c) = (accumulate ? s.product(c) : 0) + product;
    if (c == 0) s.count() = (accumulate ? s.count() : 0) + positions;
    return product;
  }
  LRCNN_HOST_DEVICE void add_gradients(Index c, double bias, double weight) const {
    if (d_weight == nullptr) return;
    d_weight[c] = static_cast<A>((accumulate_parameters ? static_cast<double>(d_weight[c]) : 0) + weight);
    d_bias[c] = static_cast<A>((accumulate_parameters ? static_cast<double>(d_bias[c]) : 0) + bias);
  }
  LRCNN_HOST_DEVICE void operator()(Index set, Index c, const Two& two) const { add_gradients(c, two.first, add(set, c, two)); }
};
/// One channel's, in all sets.
template <class T>
struct ChannelSumsLoop {
  ChannelSums<T> to;
  Parts parts;
  Index sets;
  LRCNN_HOST_DEVICE void operator()(Index c) const {
    double bias = 0, weight = 0;
    for (Index set = 0; set < sets; ++set) {
      const Two two = parts.get(set, 0, c);
      bias += two.first, weight += to.add(set, c, two);
    }
    to.add_gradients(c, bias, weight);
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
  const Tiles tiles = tiles_of<T>(sets, positions, norm.channels);
  const PartSpace space(tiles, norm.channels, o.workspace);
  assert(channels_last(o.dy) && channels_last(o.x) && o.workspace_bytes >= part_bytes<T>(sets, positions, norm.channels));
  const View<const T> x = o.dy.rows > 0 ? o.x.slice(o.dy.range()) : o.x;
  const bool wants = o.node->layer.norm.affine;
  const ChannelSums<T> sums{norm,
                            static_cast<double>(positions),
                            o.accumulate,
                            accumulate_parameters,
                            wants ? o.d_parameters[0] : nullptr,
                            wants ? o.d_parameters[1] : nullptr};
  const auto go = [&](const auto& then) {
    using Loop = ProductsLoop<T, ChannelMeans<T>, std::remove_cvref_t<decltype(then)>>;
    for_blocks(exec, tiles.blocks(), Loop(o.dy, x, tiles, space.parts, {norm}, then, o.tallies));
  };
  if (o.along && o.dx.data != nullptr)
    return for_blocks(exec, tiles.blocks(),
                      ProductsLoop<T, ChannelMeans<T>, ChannelSums<T>, ReluBehindJoin<T>>(o.dy, x, tiles, space.parts, {norm}, sums, o.tallies,
                                                                                          ReluBehindJoin<T>(o)));
  if (o.along)
    return for_blocks(exec, tiles.blocks(),
                      ProductsLoop<T, ChannelMeans<T>, ChannelSums<T>, ReluBehind<T>>(o.dy, x, tiles, space.parts, {norm}, sums, o.tallies, {norm}));
  if (norm.batch) return go(sums);
  go(ToParts{space.whole});
  for_units(exec, norm.channels, ChannelSumsLoop<T>{sums, space.whole, sets});
}
}   // namespace detail
/// As host::norm_statistics: adds x's rows to the statistics of their images, and writes those of a batch that is complete.
/// Pre:     a workspace of part_bytes() for x's rows, and tallies
template <class Exec, class T>
void norm_statistics(const Exec& exec, const Operands<T>& o) {
  const detail::ChannelNorm<T> norm(o);
  const Index sets = statistics_sets(o.node->layer.norm, o.x.n), positions = detail::set_positions(o.x, norm.batch);
  if (positions == 0) {
    if (!o.accumulate) for_units(exec, sets * Statistics::doubles(norm.units), detail::ClearLoop<T>{o.statistics});
    return;
  }
  assert(channels_last(o.x) && o.workspace_bytes >= detail::part_bytes<T>(sets, positions, norm.channels));
  const Tiles tiles = tiles_of<T>(sets, positions, norm.channels);
  const detail::PartSpace space(tiles, norm.channels, o.workspace);
  const Shape& in = o.node->in;
  const std::size_t running = o.node->layer.norm.affine ? 2 : 0;
  const bool writes = norm.batch && o.d_parameters[running] != nullptr && o.d_parameters[running + 1] != nullptr;
  const detail::UnitStatistics<T> statistics{norm, static_cast<double>(positions * norm.unit_channels.value()),
                                             static_cast<double>(in.n * in.h * in.w), writes ? o.d_parameters[running] : nullptr,
                                             writes ? o.d_parameters[running + 1] : nullptr};
  const auto go = [&](const auto& then) {
    using Loop = detail::MomentsLoop<T, std::remove_cvref_t<decltype(then)>>;
    for_blocks(exec, tiles.blocks(), Loop(o.x, tiles, space, norm, o.accumulate, then, o.tallies));
  };
  if (norm.batch) return go(detail::BatchStatistics<T>{statistics, o.accumulate});
  go(detail::ToParts{space.whole});
  for_units(exec, sets * norm.units,
            detail::GroupLoop<T>{statistics, space.whole, space.counts, Divisor(norm.units), static_cast<double>(positions)});
}
/// As host::norm_backward_sums: adds, for each channel, dy and dy * normalised x to the sums of their images, and to gradients. With o.along, of
/// what a ReLU lets pass: the one behind the norm, or with dx the one behind the join that reads the norm's output: then dx becomes what
/// passes, and `other` is added to dy before, if it is there.
/// Pre:     a workspace of part_bytes() for dy's rows, and tallies
template <class Exec, class T>
void norm_backward_sums(const Exec& exec, const Operands<T>& o) {
  detail::add_sums(exec, o, o.accumulate_parameters);
}
}   // namespace lrcnn::loops
