#pragma once
// What norms over a batch or over groups of channels, and others that add up rows, know of their rows while slabs go by.
//
// Forward, a set of statistics grows slab by slab: count, mean and sum of squared deviations of what was seen, merged by
//     d = mean_b - mean_a;  mean = mean_a + d * n_b / n;  m2 = m2_a + m2_b + d^2 * n_a * n_b / n,   n = n_a + n_b
// Backward, a set of sums does: over dy, and over dy times normalised x, for each channel. Both are kept in doubles, whatever the
// tensors are stored as, so that how a map is cut shows in the last bits only.
//   BatchNorm   one set for the batch, a unit for each channel
//   GroupNorm   a set for each image: of statistics with a unit for each group, of sums with one for each channel
// Layers that add up all rows of a map for each of its channels, a global pooling forward and a scale backward for its factors, have sums
// of slabs, too: a double for each channel of each image.
// Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979, eq. 2.1.
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/layer/layer.hpp>
#include <cmath>
namespace lrcnn {
/// Whether a norm's statistics are of more than one row of one image, so that they must be had before anything is normalised.
/// A frozen or evaluated BatchNorm, and LayerNorm, work on each pixel by itself; SlabBatchNorm on the rows that it is given.
constexpr bool has_statistics(const Layer& layer, bool training) {
  if (layer.kind != Kind::norm) return false;
  return layer.norm.over == Norm::Over::group || (layer.norm.over == Norm::Over::batch && training && !layer.norm.frozen);
}
/// One set in memory: [count, first of each unit, second of each unit].
struct Statistics {
  double* data = nullptr;
  Index units = 0;
  LRCNN_HOST_DEVICE double& count() const { return data[0]; }
  LRCNN_HOST_DEVICE double& mean(Index unit) const { return data[1 + unit]; }                 ///< statistics
  LRCNN_HOST_DEVICE double& deviations(Index unit) const { return data[1 + units + unit]; }   ///< statistics: sum of squares
  LRCNN_HOST_DEVICE double& sum(Index unit) const { return data[1 + unit]; }                  ///< sums: over dy
  LRCNN_HOST_DEVICE double& product(Index unit) const { return data[1 + units + unit]; }      ///< sums: over dy * normalised x
  LRCNN_HOST_DEVICE static constexpr Index doubles(Index units) { return 1 + 2 * units; }
};
/// Mean and sum of squared deviations of some elements.
struct Moments {
  double mean = 0, deviations = 0;
};
/// Those of n elements, together with those of others: the formula above, for the host and a device.
LRCNN_HOST_DEVICE inline Moments merged(double n, const Moments& own, double other_n, const Moments& other) {
  if (other_n == 0) return own;
  if (n == 0) return other;
  const double share = other_n / (n + other_n), d = other.mean - own.mean;
  return {own.mean + d * share, own.deviations + other.deviations + d * d * n * share};
}
// ---- what norms make of them, on the host and on a device --------------------------------------------------------------
/// What normalised elements are multiplied with: 1 / sqrt(variance + epsilon).
LRCNN_HOST_DEVICE inline double inverse_deviation(double variance, double epsilon) { return 1 / std::sqrt(variance + epsilon); }
/// y = scale * x + shift, of a channel.
struct ScaleAndShift {
  double scale = 1, shift = 0;
};
LRCNN_HOST_DEVICE inline ScaleAndShift scale_and_shift(double weight, double bias, double mean, double inverse) {
  const double scale = weight * inverse;
  return {scale, bias - mean * scale};
}
/// dx = inverse * g + across * x + shift, g: what comes back to the normalised elements.
struct AcrossAndShift {
  double across = 0, shift = 0;
};
/// From sums over `count` elements: of g, and of g times normalised x.
LRCNN_HOST_DEVICE inline AcrossAndShift across_and_shift(double inverse, double mean, double sum, double product, double count) {
  const double across = -inverse * inverse * product / count;
  return {across, -inverse * sum / count - across * mean};
}
/// From sums of g, and of g times x - mean.
LRCNN_HOST_DEVICE inline AcrossAndShift across_and_shift_of_centred(double inverse, double mean, double sum, double product, double count) {
  const double across = -inverse * inverse * inverse * product / count;
  return {across, -inverse * sum / count - across * mean};
}
/// Groups that a norm with statistics divides channels into; a BatchNorm's are single channels.
constexpr Index statistics_units(const Norm& norm, Index channels) {
  return norm.over == Norm::Over::group && norm.groups > 0 ? norm.groups : channels;
}
/// Whether all images of a step share one set; a SlabBatchNorm's step makes its own.
constexpr bool shares_statistics(const Norm& norm) { return norm.over == Norm::Over::batch || norm.over == Norm::Over::slab; }
/// Whether in training a norm with statistics would take some of a single value, on an input of this shape.
constexpr bool has_one_value(const Layer& layer, const Shape& in) {
  if (!has_statistics(layer, true)) return false;
  const Index across = layer.norm.over == Norm::Over::batch ? in.n : in.c / statistics_units(layer.norm, in.c);
  return across * in.h * in.w == 1;
}
/// Sets that a step for so many images has.
constexpr Index statistics_sets(const Norm& norm, Index images) { return shares_statistics(norm) ? 1 : images; }
/// Bytes of all sets of statistics, and of all sets of sums, for so many images.
constexpr Index statistics_bytes(const Norm& norm, Index channels, Index images) {
  return statistics_sets(norm, images) * Statistics::doubles(statistics_units(norm, channels)) * Index{sizeof(double)};
}
/// Doubles of a set of a layer's sums, and sets that a step for so many images has.
constexpr Index sums_doubles(const Layer& layer, Index channels) { return layer.kind == Kind::norm ? Statistics::doubles(channels) : channels; }
constexpr Index sums_sets(const Layer& layer, Index images) { return layer.kind == Kind::norm ? statistics_sets(layer.norm, images) : images; }
constexpr Index sums_bytes(const Layer& layer, Index channels, Index images) {
  return sums_sets(layer, images) * sums_doubles(layer, channels) * Index{sizeof(double)};
}
}   // namespace lrcnn
