#pragma once
// What norms know of channels, and how they cut rows to add them up.
//
// Statistics and sums are doubles and are made in two steps, or more: threads take a few channels of a part of the positions each, and
// parts are merged, sixteen at a time, until one is left. How positions are cut depends on nothing but their number, so bits repeat.
// Parts lie in the step's workspace.
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/layer/statistics.hpp>
#include <cmath>
namespace lrcnn::loops::detail {
/// What a norm does to channel c of a set: from statistics where there are some, else from running ones.
template <class T>
struct ChannelNorm {
  using A = master_t<T>;
  double *statistics_data, *sums_data;
  const A *weights, *biases, *means, *variances;   ///< null without; the last two: running ones
  Index channels, units;
  Divisor unit_channels;
  double epsilon;
  bool batch;
  explicit ChannelNorm(const Operands<T>& o)
      : statistics_data(o.statistics),
        sums_data(o.sums),
        channels(o.node->in.c),
        units(statistics_units(o.node->layer.norm, channels)),
        unit_channels(channels / units),
        epsilon(o.node->layer.norm.epsilon),
        batch(shares_statistics(o.node->layer.norm)) {
    const bool affine = o.node->layer.norm.affine, running = batch && !o.statistics;
    weights = affine ? o.parameters[0] : nullptr, biases = affine ? o.parameters[1] : nullptr;
    means = running ? o.parameters[affine ? 2 : 0] : nullptr, variances = running ? o.parameters[affine ? 3 : 1] : nullptr;
    assert(batch || o.statistics != nullptr);
  }
  Index sets(Index images) const { return batch ? 1 : images; }
  LRCNN_HOST_DEVICE Statistics statistics(Index set) const { return {statistics_data + set * Statistics::doubles(units), units}; }
  LRCNN_HOST_DEVICE Statistics sums(Index set) const { return {sums_data + set * Statistics::doubles(channels), channels}; }
  LRCNN_HOST_DEVICE double mean(Index set, Index c) const {
    return means == nullptr ? statistics(set).mean(unit_channels.quotient(c)) : static_cast<double>(means[c]);
  }
  /// 1 / sqrt(variance + epsilon)
  LRCNN_HOST_DEVICE double inverse(Index set, Index c) const {
    const double variance =
        variances != nullptr ? static_cast<double>(variances[c]) : statistics(set).deviations(unit_channels.quotient(c)) / statistics(set).count();
    return 1 / std::sqrt(variance + epsilon);
  }
  LRCNN_HOST_DEVICE double weight(Index c) const { return weights != nullptr ? static_cast<double>(weights[c]) : 1; }
  LRCNN_HOST_DEVICE double bias(Index c) const { return biases != nullptr ? static_cast<double>(biases[c]) : 0; }
};
/// Two numbers of a channel: mean and sum of squared deviations of some elements, or sums over dy and over dy times normalised x.
struct Two {
  double first, second;
};
/// mean and deviations of n elements, together with those of others. Source: layer/statistics.hpp
LRCNN_HOST_DEVICE inline Two merge(double n, const Two& a, double other_n, const Two& b) {
  if (other_n == 0) return a;
  if (n == 0) return b;
  const double share = other_n / (n + other_n), d = b.first - a.first;
  return {a.first + d * share, a.second + b.second + d * d * n * share};
}
/// How one round cuts the positions of each set into parts.
struct PartRound {
  static constexpr Index merged = 16;   ///< parts of a round that become one of the next
  Index sets = 1, positions = 0, part = 1;
  constexpr Index parts() const { return positions > part ? ceil_div(positions, part) : 1; }
  constexpr PartRound next() const { return {sets, positions, part * merged}; }
  constexpr Index doubles(Index channels) const { return sets * parts() * 2 * channels; }
  /// Positions of part k.
  LRCNN_HOST_DEVICE Index size(Index k) const {
    const Index left = positions - k * part;
    return left < part ? left : part;
  }
};
/// The first round keeps up to 2^15 threads busy.
constexpr PartRound first_part_round(Index sets, Index positions, Index channels) {
  const Index most = std::max<Index>(1, (Index{1} << 15) / (ceil_div(channels, Index{4}) * sets));
  return {sets, positions, std::max<Index>(32, ceil_div(positions, most))};
}
/// Bytes that the parts of all rounds take.
constexpr Index part_bytes(Index sets, Index positions, Index channels) {
  PartRound round = first_part_round(sets, positions, channels);
  Index doubles = round.doubles(channels);
  for (; round.parts() > 1; doubles += round.doubles(channels)) round = round.next();
  return doubles * static_cast<Index>(sizeof(double));
}
/// Where the parts of a round lie: the first numbers of a part's channels, then the second ones.
struct Parts {
  double* data = nullptr;
  Index channels = 0, count = 1;   ///< of a set
  LRCNN_HOST_DEVICE double* at(Index set, Index k) const { return data + (set * count + k) * 2 * channels; }
  LRCNN_HOST_DEVICE void put(Index set, Index k, Index c, const Two& two) const {
    at(set, k)[c] = two.first;
    at(set, k)[channels + c] = two.second;
  }
  LRCNN_HOST_DEVICE Two get(Index set, Index k, Index c) const { return {at(set, k)[c], at(set, k)[channels + c]}; }
};
/// What the loops have in common that make the parts of the first round: a few channels of one part each.
template <class T>
struct PartLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  PartRound round;
  Parts to;
  Divisor groups, parts, per_image;
  Index channels, stride_n;
  struct Place {
    Index set, part, channel;
    int count;
  };
  PartLoop(const View<const T>& view, const PartRound& r, const Parts& parts_of)
      : round(r),
        to(parts_of),
        groups(ceil_div(view.c, Index{V})),
        parts(r.parts()),
        per_image(std::max<Index>(1, view.rows * view.w)),
        channels(view.c),
        stride_n(view.stride_n) {}
  Index units() const { return groups.value() * parts.value() * round.sets; }
  LRCNN_HOST_DEVICE Place place(Index unit) const {
    Index number = groups.split(unit);
    const Index set = parts.split(number), left = channels - unit * V;
    return {set, number, unit * V, left < V ? static_cast<int>(left) : V};
  }
  /// Calls f(elements from a view's first, position of all images) for the positions of a part, in order.
  template <class F>
  LRCNN_HOST_DEVICE void each(const Place& place, F f) const {
    const Index begin = place.part * round.part, end = begin + round.size(place.part), before = place.set * round.positions;
    for (Index at = begin; at < end;) {
      Index position = at;
      const Index image = per_image.split(position) + place.set, left = per_image.value() - position;
      Index from = position * channels + place.channel;
      for (const Index stop = at + left < end ? at + left : end; at < stop; ++at, from += channels) f(image, from, before + at);
    }
  }
};
/// One part made of up to sixteen.
template <bool moments>
struct MergeLoop {
  PartRound from_round;
  Parts from, to;
  Divisor channels, to_parts;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index part = channels.split(unit);
    const Index set = to_parts.split(part), first = part * PartRound::merged, limit = first + PartRound::merged;
    to.put(set, part, unit, all(set, first, limit < from.count ? limit : from.count, unit));
  }
  LRCNN_HOST_DEVICE Two all(Index set, Index first, Index last, Index c) const {
    Two two = from.get(set, first, c);
    if constexpr (moments) {
      const double pivot = two.first;
      double n = 0, sum = 0;
      for (Index k = first; k < last; ++k) {
        const double size = static_cast<double>(from_round.size(k));
        n += size, sum += size * (from.get(set, k, c).first - pivot);
      }
      two = {pivot + sum / n, 0};
      for (Index k = first; k < last; ++k) {
        const Two part = from.get(set, k, c);
        const double d = part.first - two.first;
        two.second += part.second + static_cast<double>(from_round.size(k)) * d * d;
      }
    } else {
      for (Index k = first + 1; k < last; ++k) {
        const Two part = from.get(set, k, c);
        two.first += part.first, two.second += part.second;
      }
    }
    return two;
  }
};
/// Merges the parts of the first round, which lie at `memory`, until each set has one; returns where those lie.
template <bool moments, class Exec>
Parts merge_parts(const Exec& exec, PartRound round, Index channels, double* memory) {
  Parts parts{memory, channels, round.parts()};
  while (round.parts() > 1) {
    const PartRound next = round.next();
    const Parts to{parts.data + round.doubles(channels), channels, next.parts()};
    for_units(exec, round.sets * to.count * channels, MergeLoop<moments>{round, parts, to, Divisor(channels), Divisor(to.count)});
    round = next, parts = to;
  }
  return parts;
}
}   // namespace lrcnn::loops::detail
