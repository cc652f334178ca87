#pragma once
// What norms know of channels, and how they cut rows to add them up.
//
// Statistics and sums are doubles and are made in two steps: blocks of threads add up a few channels of a part of the positions each, and
// the last of them the parts of a channel. How positions are cut depends on nothing but the shape, so bits repeat. Parts lie in the step's workspace.
#include <lrcnn/backend/cudnn/loops/last_block.hpp>
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
    return inverse_deviation(variance, epsilon);
  }
  LRCNN_HOST_DEVICE double weight(Index c) const { return weights != nullptr ? static_cast<double>(weights[c]) : 1; }
  LRCNN_HOST_DEVICE double bias(Index c) const { return biases != nullptr ? static_cast<double>(biases[c]) : 0; }
  /// y = scale * x + shift.
  LRCNN_HOST_DEVICE void scale_and_shift(Index set, Index c, A& scale_to, A& shift_to) const {
    const ScaleAndShift numbers = lrcnn::scale_and_shift(weight(c), bias(c), mean(set, c), inverse(set, c));
    scale_to = static_cast<A>(numbers.scale), shift_to = static_cast<A>(numbers.shift);
  }
  /// y = scale * x + shift, rounded as it is stored.
  LRCNN_HOST_DEVICE static A normalised(A x, A scale, A shift) { return static_cast<A>(static_cast<T>(x * scale + shift)); }
  /// dx = weight * inverse * dy + across * x + shift, of the channels of a unit; the last two are 0 without sums.
  struct Down {
    double inverse, across = 0, shift = 0;
  };
  LRCNN_HOST_DEVICE Down down(Index set, Index unit) const {
    const Index size = unit_channels.value(), first = unit * size;
    Down down{inverse(set, first)};
    if (sums_data == nullptr) return down;
    double sum = 0, product = 0;
    for (Index c = first; c < first + size; ++c) {
      sum += weight(c) * sums(set).sum(c);
      product += weight(c) * sums(set).product(c);
    }
    const AcrossAndShift numbers = across_and_shift(down.inverse, mean(set, first), sum, product, statistics(set).count());
    down.across = numbers.across, down.shift = numbers.shift;
    return down;
  }
  /// Likewise of one channel, that is a unit of its own: dx = down * dy + across * x + shift.
  LRCNN_HOST_DEVICE void down_across_and_shift(Index set, Index c, A& down_to, A& across_to, A& shift_to) const {
    const Down numbers = down(set, c);
    down_to = static_cast<A>(weight(c) * numbers.inverse), across_to = static_cast<A>(numbers.across), shift_to = static_cast<A>(numbers.shift);
  }
};
/// Two numbers of a channel: mean and sum of squared deviations of some elements, or sums over dy and over dy times normalised x.
struct alignas(16) Two {
  double first, second;
};
/// Where parts lie, channel by channel.
struct Parts {
  Two* data = nullptr;
  Index channels = 0, count = 1;   ///< of a set
  LRCNN_HOST_DEVICE Two* at(Index set, Index k) const { return data + (set * count + k) * channels; }
  LRCNN_HOST_DEVICE void put(Index set, Index k, Index c, const Two& two) const { at(set, k)[c] = two; }
  LRCNN_HOST_DEVICE Two get(Index set, Index k, Index c) const { return at(set, k)[c]; }
};
/// The pieces of a workspace for parts.
struct PartSpace {
  Parts parts, whole;   ///< of all blocks; of sets
  double* counts;       ///< of sets, before
  PartSpace(const Tiles& tiles, Index channels, std::byte* workspace)
      : parts{reinterpret_cast<Two*>(workspace), channels, tiles.parts()},
        whole{parts.at(tiles.sets, 0), channels, 1},
        counts(reinterpret_cast<double*>(whole.at(tiles.sets, 0))) {}
};
/// Bytes that it takes.
template <class T>
constexpr Index part_bytes(Index sets, Index positions, Index channels) {
  return sets * ((tiles_of<T>(sets, positions, channels).parts() + 1) * 2 * channels + 1) * static_cast<Index>(sizeof(double));
}
/// How parts are added up: sums, or means and deviations, of which the sums are about the first part's mean.
template <bool moments>
struct TwoSum {
  using Value = Two;
  Parts parts;
  double positions;   ///< of all parts
  LRCNN_HOST_DEVICE Two get(Index set, Index k, Index c) const { return parts.get(set, k, c); }
  LRCNN_HOST_DEVICE void put(Index set, Index k, Index c, const Two& two) const { parts.put(set, k, c, two); }
  LRCNN_HOST_DEVICE double about(Index set, Index c) const { return moments ? parts.get(set, 0, c).first : 0; }
  LRCNN_HOST_DEVICE static void add(Two& own, const Two& part, Index size, double pivot) {
    if constexpr (moments) {
      const double d = part.first - pivot, n = static_cast<double>(size);
      own.first += n * d, own.second += part.second + n * d * d;
    } else {
      add(own, part);
    }
  }
  LRCNN_HOST_DEVICE static void add(Two& own, const Two& other) { own.first += other.first, own.second += other.second; }
  LRCNN_HOST_DEVICE Two result(const Two& all, double pivot) const {
    if constexpr (!moments) return all;
    const double mean = all.first / positions, m2 = all.second - all.first * mean;
    return {pivot + mean, m2 < 0 ? 0 : m2};
  }
};
/// What the loops have in common that make parts: each thread's two numbers of a few channels, added up over the block's threads.
template <class T, bool moments, class Then>
struct PartLoop : SummedTiles<T, TwoSum<moments>, Then> {
  using Base = SummedTiles<T, TwoSum<moments>, Then>;
  using Base::V, Base::tiles;
  using typename Base::Place;
  static constexpr int own_phases = 3, phases = own_phases + Base::end_phases;   ///< own_phases: those that make a part
  /// Statistics follow the kernel that makes a map. With room for one block more, each starts at once where that kernel's last ones still run.
  static constexpr int at_once_on_device = moments ? 3 : 2;
  union Shared {
    struct {
      double first[V][block_threads], second[V][block_threads], first_piece[block_threads], second_piece[block_threads];
      T pivot[V][block_threads / V];   ///< what the first row of threads has taken its numbers about
    } sum;
    typename Base::Turn turn;
  };
  PartLoop(const View<const T>& view, const Tiles& t, const Parts& parts_of, const Then& result, std::uint32_t* counted)
      : Base(view, t, {parts_of, static_cast<double>(t.positions)}, result, counted) {}
  LRCNN_HOST_DEVICE static void keep(Shared& shared, int thread, const double (&first)[V], const double (&second)[V]) {
    for (int v = 0; v < V; ++v) shared.sum.first[v][thread] = first[v], shared.sum.second[v][thread] = second[v];
  }
  /// The phase behind keep().
  LRCNN_HOST_DEVICE void add_rows(int thread, Shared& shared) const {
    const ThreadRows<V> rows{tiles.width};
    shared.sum.first_piece[thread] = rows.of_rows(shared.sum.first, thread),
    shared.sum.second_piece[thread] = rows.of_rows(shared.sum.second, thread);
  }
  /// The phase behind that: puts what a part's channels come to.
  LRCNN_HOST_DEVICE void put_part(Index block, int thread, const Shared& shared) const {
    const ThreadRows<V> rows{tiles.width};
    const int column = rows.column(thread), v = rows.number(thread);
    const Place place = this->place(block, column);
    if (thread >= rows.sums() || place.count <= v) return;
    Two sums{rows.of_pieces(shared.sum.first_piece, thread), rows.of_pieces(shared.sum.second_piece, thread)};
    if constexpr (moments) {
      const double mean = sums.first / static_cast<double>(tiles.size(place.part)), m2 = sums.second - sums.first * mean;
      sums = {static_cast<double>(shared.sum.pivot[v][column]) + mean, m2 < 0 ? 0 : m2};
    }
    this->of_parts.put(place.set, place.part, place.channel + v, sums);
  }
};
/// Puts what a set's channel comes to into its place.
struct ToParts {
  Parts to;
  LRCNN_HOST_DEVICE void operator()(Index set, Index c, const Two& two) const { to.put(set, 0, c, two); }
};
}   // namespace lrcnn::loops::detail
