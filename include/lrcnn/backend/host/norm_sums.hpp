#pragma once
// What norms add up over rows: statistics forward, sums and parameter gradients backward.
//
// Rows are cut into pieces by their extents alone, each piece is summed in doubles by one thread, and pieces are merged one after the
// other; so nothing depends on the number of threads, and what slabs are merged into differs from the whole map's in the last bits only.
#include <lrcnn/backend/host/put_gradient.hpp>
#include <lrcnn/backend/host/strips.hpp>
#include <lrcnn/layer/statistics.hpp>
namespace lrcnn::host {
namespace detail {
/// What is known of some channels, at most sixteen: of each so many elements, and two numbers.
struct ChannelPairs {
  double count = 0;
  Strip<double> first{}, second{};
};
/// mean and m2 (sum of squared deviations) of n elements become those of these and others.
inline void merge(double n, double& mean, double& m2, double other_n, double other_mean, double other_m2) {
  const Moments both = merged(n, {mean, m2}, other_n, {other_mean, other_m2});
  mean = both.mean, m2 = both.deviations;
}
/// What a norm does to channel c of image i of its view: from statistics where there are some, else from running ones.
template <class T>
struct ChannelNorm {
  const Operands<T>& o;
  const Norm& norm = o.node->layer.norm;
  Index channels = o.node->in.c, units = statistics_units(norm, channels), unit_channels = channels / units;
  bool batch = norm.over == Norm::Over::batch;
  std::size_t running = norm.affine ? 2 : 0;   ///< place of the running mean among the parameters, before the running variance
  explicit ChannelNorm(const Operands<T>& operands) : o(operands) { assert(norm.over != Norm::Over::channels && (batch || o.statistics != nullptr)); }
  Index set(Index i) const { return batch ? 0 : i; }
  Statistics statistics(Index i) const { return {o.statistics + set(i) * Statistics::doubles(units), units}; }
  Statistics sums(Index i) const { return {o.sums + set(i) * Statistics::doubles(channels), channels}; }
  Index unit(Index c) const { return c / unit_channels; }
  double mean(Index i, Index c) const { return o.statistics ? statistics(i).mean(unit(c)) : static_cast<double>(o.parameters[running][c]); }
  /// 1 / sqrt(variance + epsilon)
  double inverse(Index i, Index c) const {
    const double variance =
        o.statistics ? statistics(i).deviations(unit(c)) / statistics(i).count() : static_cast<double>(o.parameters[running + 1][c]);
    return inverse_deviation(variance, norm.epsilon);
  }
  double weight(Index c) const { return norm.affine ? static_cast<double>(o.parameters[0][c]) : 1; }
  double bias(Index c) const { return norm.affine ? static_cast<double>(o.parameters[1][c]) : 0; }
  ScaleAndShift scale_and_shift_of(Index i, Index c) const { return scale_and_shift(weight(c), bias(c), mean(i, c), inverse(i, c)); }
};
/// How a view is cut into pieces: channels in groups of lanes of a block, at most 16 each; images in sets; rows of a set in pieces.
struct Pieces {
  Index block, lane_groups, groups, sets, rows, pieces, elements;
  template <class V>
  Pieces(const V& x, bool batch)
      : block(x.block),
        lane_groups(ceil_div(x.block, 16)),
        groups(x.blocks() * lane_groups),
        sets(batch ? 1 : x.n),
        rows((batch ? x.n : 1) * x.rows),
        elements(x.w * std::min<Index>(x.block, 16)) {
    const Index most = std::max<Index>(1, rows * elements / 4096);
    pieces = std::clamp<Index>(std::min(most, ceil_div(64, groups * sets)), 1, std::max<Index>(1, rows));
  }
  Index tasks() const { return groups * sets * pieces; }
  Index group(Index task) const { return task / (sets * pieces); }
  Index set(Index task) const { return task / pieces % sets; }
  Range rows_of(Index task) const {
    const Index p = task % pieces;
    return {rows * p / pieces, rows * (p + 1) / pieces};
  }
  Index channel(Index group) const { return group / lane_groups * block + group % lane_groups * 16; }
  Index lanes(Index group) const { return std::min<Index>(16, block - group % lane_groups * 16); }
  /// A strip's place e holds lane e % places().
  std::size_t places() const { return 16 % block == 0 ? static_cast<std::size_t>(block) : 16; }
  /// Channels of a group that are not padding.
  Index channels(Index group, Index all) const { return std::clamp<Index>(all - channel(group), 0, lanes(group)); }
};
/// Calls f(row, at, size) for pieces of a task's rows: of the channels of its group, a whole row where strips of sixteen hold the same
/// channels, else one column. `row` is what row_of(image, channel block, row) gives. next_row() is called behind each row.
template <class V, class RowOf, class F, class Next>
void for_task(const Pieces& cut, const V& x, Index task, RowOf row_of, F f, Next next_row) {
  const Index group = cut.group(task), b = group / cut.lane_groups, lane = group % cut.lane_groups * 16;
  const Range rows = cut.rows_of(task);
  for (Index r = rows.begin; r < rows.end; ++r) {
    const auto row = row_of(cut.set(task) * (cut.rows / x.rows) + r / x.rows, b, x.row0 + r % x.rows);
    if (16 % cut.block == 0) {
      f(row, Index{0}, x.stride_row());
    } else {
      for (Index q = 0; q < x.w; ++q) f(row, q * cut.block + lane, cut.lanes(group));
    }
    next_row();
  }
}
/// Calls compute(task) for some tasks at a time, on threads, then take(task, result) for each in order.
template <class Compute, class Take>
void in_order(const Pieces& cut, int threads, Compute compute, Take take) {
  std::array<ChannelPairs, 64> results;
  const Index work = std::max<Index>(1, cut.rows / cut.pieces) * cut.elements;
  for (Index first = 0; first < cut.tasks(); first += 64) {
    const Index count = std::min<Index>(64, cut.tasks() - first);
    parallel_for(count, useful_threads(count * work, threads), [&](Index t) { item(results, t) = compute(first + t); });
    for (Index t = 0; t < count; ++t) take(first + t, item(results, t));
  }
}
/// Running mean and deviations of sixteen places.
template <class T>
class RunningMoments {
 public:
  /// Takes elements whose places are 0, 1, ... 15, 0, 1, ...
  void add(const T* x, Index size) {
    if (strips_ == 0) begin(x, std::min<Index>(size, 16));
    const Index whole = size / 16 * 16;
    Wide sum = sum_, squares = squares_;   // in registers
    const Wide pivot = pivot_;
    for (Index at = 0; at < whole; at += 16) {
      read_ahead(x + at);
      const Wide v = load_wide(x + at);
      for (std::size_t p = 0; p < v.size(); ++p) {
        const auto d = v[p] - pivot[p];
        sum[p] += d;
        squares[p] += d * d;
      }
    }
    sum_ = sum, squares_ = squares;
    strips_ += ceil_div(size, 16);
    if (whole < size) add_partly(x + whole, size - whole);
  }
  /// Takes what was added since the last time into count, mean and deviations; after at most so many strips that the pivot is near.
  void settle(Index at_least) {
    if (strips_ < at_least || strips_ == 0) return;
    Strip<double> pivot, sum, squares;
    std::memcpy(&pivot, &pivot_, sizeof(pivot));
    std::memcpy(&sum, &sum_, sizeof(sum));
    std::memcpy(&squares, &squares_, sizeof(squares));
    for (std::size_t e = 0; e < 16; ++e) {
      const double n = static_cast<double>(strips_ - (static_cast<Index>(e) < partial_size_ ? 0 : partial_));
      if (n == 0) continue;
      const double m2 = squares[e] - sum[e] * sum[e] / n;
      merge(count_[e], mean_[e], m2_[e], n, pivot[e] + sum[e] / n, m2 < 0 ? 0 : m2);
      count_[e] += n;
    }
    strips_ = partial_ = 0;
    sum_ = squares_ = Wide{};
  }
  /// Mean and deviations of lanes: every place holds lane place % lanes.
  ChannelPairs moments(std::size_t lanes) {
    settle(1);
    ChannelPairs m;
    for (std::size_t l = 0; l < lanes; ++l) {
      double n = 0;
      for (std::size_t e = l; e < 16; e += lanes) {
        merge(n, m.first[l], m.second[l], count_[e], mean_[e], m2_[e]);
        n += count_[e];
      }
      if (l == 0) m.count = n;
    }
    return m;
  }

 private:
  void begin(const T* x, Index size) {
    Strip<double> pivot = mean_;
    for (std::size_t e = 0; e < static_cast<std::size_t>(size); ++e)
      if (count_[e] == 0) pivot[e] = static_cast<double>(x[e]);
    std::memcpy(&pivot_, &pivot, sizeof(pivot));
  }
  void add_partly(const T* x, Index size) {
    ++partial_;
    partial_size_ = size;
    Strip<double> sum, squares, pivot;
    std::memcpy(&sum, &sum_, sizeof(sum));
    std::memcpy(&squares, &squares_, sizeof(squares));
    std::memcpy(&pivot, &pivot_, sizeof(pivot));
    for (std::size_t e = 0; e < static_cast<std::size_t>(size); ++e) {
      const double d = static_cast<double>(x[e]) - pivot[e];
      sum[e] += d;
      squares[e] += d * d;
    }
    std::memcpy(&sum_, &sum, sizeof(sum));
    std::memcpy(&squares_, &squares, sizeof(squares));
  }
  Wide pivot_{}, sum_{}, squares_{};
  Index strips_ = 0, partial_ = 0, partial_size_ = 0;   ///< since the last settle(); a task's partial strips are of one size
  Strip<double> count_{}, mean_{}, m2_{};
};
/// Sums over dy and dy * (x - mean) of a task.
template <class T>
ChannelPairs task_sums(const Pieces& cut, const Operands<T>& o, Index task, const Strip<double>& means) {
  struct Rows {
    const T *dy, *x;
  };
  const Wide mean = load_wide(means.data());
  Wide sum{}, product{};
  Strip<T> dy_copy, x_copy;
  Index columns = 0;
  for_task(
      cut, o.dy, task,
      [&](Index i, Index b, Index row) {
        return Rows{o.dy.row(i, b, row), o.x.row(i, b, row)};
      },
      [&](const Rows& rows, Index at, Index size) {
        Wide sums = sum, products = product;   // in registers
        for_strips(size, [&](Index e, Index some) {
          read_ahead(rows.dy + at + e);
          read_ahead(rows.x + at + e);
          const Wide dy = load_wide(whole_strip(rows.dy + at + e, some, dy_copy)), x = load_wide(whole_strip(rows.x + at + e, some, x_copy));
          for (std::size_t p = 0; p < dy.size(); ++p) {
            sums[p] += dy[p];
            products[p] += dy[p] * (x[p] - mean[p]);
          }
        });
        sum = sums, product = products;
      },
      [&] { columns += o.dy.w; });
  Strip<double> sums, products;
  std::memcpy(&sums, &sum, sizeof(sums));
  std::memcpy(&products, &product, sizeof(products));
  ChannelPairs m;
  m.count = static_cast<double>(columns);
  const std::size_t lanes = cut.places();
  for (std::size_t e = 0; e < 16; ++e) m.first[e % lanes] += sums[e], m.second[e % lanes] += products[e];
  return m;
}
/// Variance and mean of a whole batch go where the gradients of the running ones would.
template <class T>
void put_batch_statistics(const ChannelNorm<T>& n) {
  const Statistics set = n.statistics(0);
  const Shape& in = n.o.node->in;
  master_t<T>*const mean = n.o.d_parameters[n.running], *const variance = n.o.d_parameters[n.running + 1];
  if (mean == nullptr || variance == nullptr || set.count() != static_cast<double>(in.n * in.h * in.w)) return;
  for (Index c = 0; c < n.channels; ++c) {
    mean[c] = static_cast<master_t<T>>(set.mean(c));
    variance[c] = static_cast<master_t<T>>(set.count() > 1 ? set.deviations(c) / (set.count() - 1) : 0);
  }
}
/// Adds a task's rows to sums (unless they are null) and to the gradients of weight and bias, which are begun anew unless `accumulate`.
template <class T>
void add_sums(const Operands<T>& o, bool accumulate, int threads) {
  const ChannelNorm<T> n(o);
  const Pieces cut(o.dy, n.batch);
  Strip<double> bias{}, weight{};   // of the group that is being merged
  const auto compute = [&](Index task) {
    Strip<double> mean{};
    const Index first = cut.channel(cut.group(task)), count = cut.channels(cut.group(task), n.channels);
    for (Index l = 0; l < 16; ++l) {
      const Index lane = l % static_cast<Index>(cut.places());
      item(mean, l) = lane < count ? n.mean(cut.set(task), first + lane) : 0;
    }
    return task_sums(cut, o, task, mean);
  };
  in_order(cut, threads, compute, [&](Index task, const ChannelPairs& m) {
    const Index group = cut.group(task), set = cut.set(task), first = cut.channel(group);
    if (task % (cut.sets * cut.pieces) == 0) bias = weight = {};
    for (Index l = 0; l < cut.channels(group, n.channels); ++l) {
      const auto at = static_cast<std::size_t>(l);
      const Index c = first + l;
      const double product = m.second[at] * n.inverse(set, c);
      bias[at] += m.first[at], weight[at] += product;
      if (o.sums) n.sums(set).sum(c) += m.first[at], n.sums(set).product(c) += product;
      if (!n.norm.affine || o.d_parameters[0] == nullptr || (task + 1) % (cut.sets * cut.pieces) != 0) continue;
      put_gradient(o.d_parameters[0][c], weight[at], accumulate);
      put_gradient(o.d_parameters[1][c], bias[at], accumulate);
    }
  });
}
}   // namespace detail
/// Adds x's rows to the statistics of their images; with the last row of the batch, its mean and unbiased variance are written to
/// d_parameters in the places of the running ones, unless those are null (the variance of a single element is 0).
/// Shapes:  x [N,C,rows,W]; statistics: a set for the batch (Over::batch), or one for each of x's images, one behind the other
/// Pre:     a norm over batch or group; sets hold statistics of other rows of these images, or accumulate is false
/// Post:    counts are those of a unit's elements: pixels times channels of a group
template <class T>
void norm_statistics(const Operands<T>& o, int threads) {
  const detail::ChannelNorm<T> n(o);
  const Index sets = statistics_sets(n.norm, o.x.n);
  if (!o.accumulate) std::fill_n(o.statistics, sets * Statistics::doubles(n.units), 0.0);
  if (o.x.rows <= 0) return;
  const detail::Pieces cut(o.x, n.batch);
  detail::ChannelPairs all;   // of the group and set that is being merged
  const auto compute = [&](Index task) {
    detail::RunningMoments<T> running;
    detail::for_task(
        cut, o.x, task, [&](Index i, Index b, Index row) { return o.x.row(i, b, row); },
        [&](const T* row, Index at, Index size) { running.add(row + at, size); }, [&] { running.settle(1024); });
    return running.moments(cut.places());
  };
  detail::in_order(cut, threads, compute, [&](Index task, const detail::ChannelPairs& m) {
    if (task % cut.pieces == 0) all = {};
    for (std::size_t l = 0; l < cut.places(); ++l) detail::merge(all.count, all.first[l], all.second[l], m.count, m.first[l], m.second[l]);
    all.count += m.count;
    if ((task + 1) % cut.pieces != 0) return;
    const Statistics set = n.statistics(cut.set(task));
    for (Index l = 0; l < cut.channels(cut.group(task), n.channels); ++l) {
      const Index c = cut.channel(cut.group(task)) + l, u = n.unit(c);
      const double before = set.count() + static_cast<double>(c % n.unit_channels) * all.count;   // channels of the unit merged already
      detail::merge(before, set.mean(u), set.deviations(u), all.count, item(all.first, l), item(all.second, l));
    }
  });
  const Index pixels = (n.batch ? o.x.n : 1) * o.x.rows * o.x.w;
  for (Index s = 0; s < sets; ++s) n.statistics(s).count() += static_cast<double>(pixels * n.unit_channels);
  if (n.batch) detail::put_batch_statistics(n);
}
/// Adds, for each channel, dy and dy * normalised x of dy's rows to the sums of their images, and to the gradients of bias and weight.
/// Shapes:  dy, x [N,C,rows,W]; statistics as for norm_statistics, complete; sums: likewise, a unit for each channel
/// Pre:     x holds dy's rows; sums are begun anew unless accumulate, gradients unless accumulate_parameters
template <class T>
void norm_backward_sums(const Operands<T>& o, int threads) {
  const detail::ChannelNorm<T> n(o);
  const Index sets = statistics_sets(n.norm, o.dy.n);
  if (!o.accumulate) std::fill_n(o.sums, sets * Statistics::doubles(n.channels), 0.0);
  detail::add_sums(o, o.accumulate_parameters, threads);
  for (Index s = 0; s < sets; ++s) n.sums(s).count() += static_cast<double>((n.batch ? o.dy.n : 1) * o.dy.rows * o.dy.w);
}
}   // namespace lrcnn::host
