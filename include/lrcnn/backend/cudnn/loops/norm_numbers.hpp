#pragma once
// What norms know of channels, and how they cut rows to add them up.
//
// Statistics and sums are doubles and are made in two steps: blocks of threads add up a few channels of a part of the positions each, and
// then the parts of a channel. How positions are cut depends on nothing but the shape, so bits repeat. Parts lie in the step's workspace.
#include <lrcnn/backend/cudnn/loops/tiles.hpp>
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
  /// y = scale * x + shift.
  LRCNN_HOST_DEVICE void scale_and_shift(Index set, Index c, A& scale_to, A& shift_to) const {
    const double scale = weight(c) * inverse(set, c);
    scale_to = static_cast<A>(scale), shift_to = static_cast<A>(bias(c) - mean(set, c) * scale);
  }
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
    const double count = statistics(set).count();
    down.across = -down.inverse * down.inverse * product / count;
    down.shift = -down.inverse * sum / count - down.across * mean(set, first);
    return down;
  }
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
/// Where parts lie: the first numbers of a part's channels, then the second ones.
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
/// The pieces of a workspace for parts.
struct PartSpace {
  Parts parts, whole;   ///< of all blocks; of sets
  double* counts;       ///< of sets, before
  PartSpace(const Tiles& tiles, Index channels, std::byte* workspace)
      : parts{reinterpret_cast<double*>(workspace), channels, tiles.parts()},
        whole{parts.at(tiles.sets, 0), channels, 1},
        counts(whole.at(tiles.sets, 0)) {}
};
/// Bytes that it takes.
template <class T>
constexpr Index part_bytes(Index sets, Index positions, Index channels) {
  return sets * ((tiles_of<T>(sets, positions, channels).parts() + 1) * 2 * channels + 1) * static_cast<Index>(sizeof(double));
}
/// What the loops have in common that make parts: each thread's two numbers of a few channels, added up over the block's threads.
template <class T>
struct PartLoop : TileLoop<T> {
  using TileLoop<T>::V, TileLoop<T>::tiles;
  static constexpr int phases = 1 + tree_phases;
  struct Shared {
    double first[V][block_threads], second[V][block_threads];
  };
  Parts to;
  PartLoop(const View<const T>& view, const Tiles& t, const Parts& parts_of) : TileLoop<T>(view, t), to(parts_of) {}
  LRCNN_HOST_DEVICE static void keep(Shared& shared, int thread, const double (&first)[V], const double (&second)[V]) {
    for (int v = 0; v < V; ++v) shared.first[v][thread] = first[v], shared.second[v][thread] = second[v];
  }
  template <int k>
  LRCNN_HOST_DEVICE void add_step(int thread, Shared& shared) const {
    tree_step<k>(thread, block_threads / 2, tiles.width, [&](int own, int other) {
      for (int v = 0; v < V; ++v) shared.first[v][own] += shared.first[v][other], shared.second[v][own] += shared.second[v][other];
    });
  }
};
/// A set's channels from its parts, handed on to then(set, channel, the two numbers).
template <bool moments, class Then>
struct FinishLoop {
  static constexpr int phases = 1 + tree_phases, width = 8, height = block_threads / width;
  struct Shared {
    double first[block_threads], second[block_threads];
  };
  Tiles tiles;
  Parts from;
  Divisor columns;
  Then then;
  FinishLoop(const Tiles& t, const Parts& parts, const Then& f) : tiles(t), from(parts), columns(ceil_div(parts.channels, Index{width})), then(f) {}
  Index blocks() const { return tiles.sets * columns.value(); }
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    Index c = block;
    const Index set = columns.split(c);
    c = c * width + thread % width;
    if constexpr (k == 0) {
      const Two own = c < from.channels ? sum(set, c, thread / width) : Two{0, 0};
      shared.first[thread] = own.first, shared.second[thread] = own.second;
    } else {
      tree_step<k - 1>(thread, block_threads / 2, width,
                       [&](int own, int other) { shared.first[own] += shared.first[other], shared.second[own] += shared.second[other]; });
      if constexpr (k == phases - 1)
        if (thread < width && c < from.channels) then(set, c, result(set, c, {shared.first[thread], shared.second[thread]}));
    }
  }

 private:
  /// What a thread's parts come to; of moments, sums about the first part's mean.
  LRCNN_HOST_DEVICE Two sum(Index set, Index c, int row) const {
    Two own{0, 0};
    const double pivot = moments ? from.at(set, 0)[c] : 0;
    for (Index k = row; k < from.count; k += height) {
      const Two part = from.get(set, k, c);
      if constexpr (moments) {
        const double d = part.first - pivot, n = static_cast<double>(tiles.size(k));
        own.first += n * d, own.second += part.second + n * d * d;
      } else {
        own.first += part.first, own.second += part.second;
      }
    }
    return own;
  }
  LRCNN_HOST_DEVICE Two result(Index set, Index c, const Two& all) const {
    if constexpr (!moments) return all;
    const double mean = all.first / static_cast<double>(tiles.positions), m2 = all.second - all.first * mean;
    return {from.at(set, 0)[c] + mean, m2 < 0 ? 0 : m2};
  }
};
template <bool moments, class Exec, class Then>
void finish_parts(const Exec& exec, const Tiles& tiles, const Parts& parts, const Then& then) {
  const FinishLoop<moments, Then> loop(tiles, parts, then);
  for_blocks(exec, loop.blocks(), loop);
}
/// Puts what a set's channel comes to into its place.
struct ToParts {
  Parts to;
  LRCNN_HOST_DEVICE void operator()(Index set, Index c, const Two& two) const { to.put(set, 0, c, two); }
};
}   // namespace lrcnn::loops::detail
