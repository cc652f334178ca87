#pragma once
// Losses of maps: of networks whose output is [N,K,H,W], with labels for each pixel.
//
// A pixel's loss depends on that pixel's logits alone, so such a loss is local to rows: slabs of the output may go through it one by
// one. What it is divided by for the mean comes from the labels, total(), before the step; so the gradient of a row is known as soon
// as the row is. Each row of an image is added up on its own, in double, channel by channel, and rows are added in the order in which
// they come: gradients and counts do not depend on how rows are cut, on storage or threads, and the sum only in its last bits
// (1e-12 of it), where cuts bring rows in another order. A loss of the user's own has the same shape; see docs/extending.md.
#include <lrcnn/core/view.hpp>
#include <lrcnn/layer/class_balance.hpp>
#include <lrcnn/layer/loss.hpp>
#include <lrcnn/shape/shape.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>
namespace lrcnn {
/// A type that a Trainer can minimise over the pixels of a map, for dense prediction.
/// total(labels, output shape) is what the sum is divided by; it throws a DataError if the labels are none that the loss understands,
/// whose extents have been compared. One thread calls it. It looks at the rows of image after image, from the top: of labels by rows, some
/// rows are in memory at a time, and any other order reads them again and again.
/// loss(logits, labels, first, dx, scale, result) takes any rows of some images, `first` is the number of the first one; dx may be
/// empty. It looks at the labels of these rows alone, and keeps neither them nor a copy of `labels`. Several threads
/// call it at once, each for rows of its own.
/// If losses can be compared with ==, equal ones have equal totals: of labels by rows that are constant, the total is kept.
template <class L, class T>
concept DenseLoss = requires(const L& loss, const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale,
                             LossResult& result, const Shape& output) {
  { L::name } -> std::convertible_to<std::string_view>;
  { loss.total(labels, output) } -> std::convertible_to<double>;
  loss(logits, labels, first, dx, scale, result);
};
/// One that must see all pixels of an image before it knows the gradient of any: it says so by `whole_maps`. The call operator is given
/// whole maps, so the network's output and its gradient are kept in full height.
template <class L, class T>
concept WholeMapLoss = DenseLoss<L, T> && requires {
  requires L::whole_maps;
};
/// One that treats each row by itself: it may be given rows as they come, and the output need not exist in full.
template <class L, class T>
concept RowLocalLoss = DenseLoss<L, T> && !WholeMapLoss<L, T>;
/// What a trainer minimises: over images, or over pixels.
template <class L, class T>
concept TrainingLoss = Loss<L, T> || DenseLoss<L, T>;
/// Errors:  DataError if labels are not of the pixels of an output of that shape
inline void check_pixel_labels(std::string_view loss, const Labels& labels, const Shape& output) {
  const auto extents = [&](Index channels, Index height, Index width) {
    const std::string pixels = std::to_string(height) + 'x' + std::to_string(width);
    return labels.kind() == LabelKind::targets ? std::to_string(channels) + 'x' + pixels : pixels;
  };
  if (labels.kind() == LabelKind::images)
    throw DataError(error_text("one label for each image is given to the loss '" + std::string(loss) + "'",
                               "it wants one for each pixel of the network's output, " + extents(output.c, output.h, output.w),
                               "give Labels::of_pixels or Labels::of_targets, or train with a loss over images"));
  const bool targets = labels.kind() == LabelKind::targets;
  const std::string what = targets ? "targets" : "masks", each = targets ? "element" : "pixel";
  if (labels.size() != output.n)
    throw DataError(error_text(what + " of " + std::to_string(labels.size()) + " images are given for " + std::to_string(output.n) + " images",
                               "every image has its own", "give as many " + what + " as images"));
  if (labels.height() != output.h || labels.width() != output.w || (targets && labels.channels() != output.c))
    throw DataError(error_text(what + " of " + extents(labels.channels(), labels.height(), labels.width()) +
                                   " are given for the network's output of " + extents(output.c, output.h, output.w),
                               "every " + each + " of the output has one label", "make the " + what + " as large as the output"));
}
namespace detail {
/// Errors:  DataError unless `value`, which is not ignored, is from 0 to channels - 1, of one channel 0 or 1
inline void check_class(std::int32_t value, Index channels, Index image, Index row, Index column) {
  const Index classes = std::max<Index>(2, channels);
  if (value >= 0 && value < classes) return;
  const std::string what =
      "label " + std::to_string(value) + pixel_place(image, row, column) + " is outside the " + std::to_string(classes) + " classes";
  if (channels == 1)
    throw DataError(error_text(what, "the one channel of the output is the logit of class 1, so labels are 0 and 1",
                               "correct the mask, or end the network in a channel for each class and train with PixelCrossEntropy"));
  throw DataError(
      error_text(what, "labels are 0 .. classes - 1, or the one to ignore", "correct the mask, set the loss's `ignore`, or widen the last layer"));
}
/// Counts the pixels of each class as ClassCounter does, in masks that belong to an output.
/// Errors:  as check_class(); what LabelRows throws
inline auto count_classes(const Labels& labels, const Shape& output, std::optional<std::int32_t> ignore, std::span<Index> counts) {
  return ClassCounter::count(labels, output.n, ignore, counts,
                             [&](std::int32_t label, Index image, Index row, Index column) { check_class(label, output.c, image, row, column); });
}
/// What one element comes to.
struct ElementLoss {
  double loss, derivative;
  bool correct;
};
LRCNN_HOST_DEVICE inline double softplus(double z) { return (z > 0 ? z : 0) + std::log1p(std::exp(z > 0 ? -z : z)); }
LRCNN_HOST_DEVICE inline double sigmoid(double z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z)); }
/// Adds up loss.element(logit, target), an ElementLoss, over all elements of the logits.
template <class L, class T>
void each_element(const L& loss, const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale,
                  LossResult& result) {
  for (Index i = 0; i < logits.n; ++i)
    for (Index row = logits.row0; row < logits.row0 + logits.rows; ++row) {
      LossResult own;
      for (Index k = 0; k < logits.c; ++k) {
        const float* values = labels.kind() == LabelKind::targets ? labels.values(first + i, k, row) : nullptr;
        const std::int32_t* classes = values ? nullptr : labels.classes(first + i, row);
        for (Index x = 0; x < logits.w; ++x) {
          const double target = values ? static_cast<double>(values[x]) : static_cast<double>(classes[x]);
          const ElementLoss e = loss.element(static_cast<double>(logits(i, k, row, x)), target);
          own.sum += e.loss, own.correct += e.correct, ++own.count;
          if (dx.data != nullptr) dx(i, k, row, x) = static_cast<T>(scale * e.derivative);
        }
      }
      result += own;
      if (dx.data == nullptr) continue;
      for (Index k = dx.c; k < round_up(dx.c, dx.block); ++k)
        for (Index x = 0; x < dx.w; ++x) dx(i, k, row, x) = static_cast<T>(0);
    }
}
/// The number of elements of targets that `good` accepts.
/// Errors:  DataError if it does not accept one, or if they are classes
template <class F>
double count_targets(std::string_view loss, const Labels& labels, const Shape& output, std::string_view rule, F good) {
  if (labels.kind() != LabelKind::targets)
    throw DataError(error_text("a mask of classes is given to the loss '" + std::string(loss) + "'",
                               "it compares numbers, " + std::to_string(output.c) + " for each pixel", "give Labels::of_targets"));
  for (Index i = 0; i < output.n; ++i)
    for (Index row = 0; row < output.h; ++row)
      for (Index k = 0; k < output.c; ++k) {
        const float* values = labels.values(i, k, row);
        for (Index x = 0; x < output.w; ++x)
          if (!good(values[x]))
            throw DataError(error_text("target " + std::to_string(values[x]) + pixel_place(i, row, x) + ", channel " + std::to_string(k) +
                                           " cannot be used by the loss '" + std::string(loss) + "'",
                                       rule, "correct the targets"));
      }
  return static_cast<double>(output.count());
}
/// The number of elements of targets from 0 to 1; or of a mask of 0 and 1, for an output of one channel.
inline double count_binary(std::string_view loss, const Labels& labels, const Shape& output) {
  if (labels.kind() == LabelKind::targets)
    return count_targets(loss, labels, output, "targets are from 0 to 1", [](float t) { return t >= 0 && t <= 1; });
  if (output.c != 1)
    throw DataError(error_text(
        "a mask of classes is given to the loss '" + std::string(loss) + "' on an output of " + std::to_string(output.c) + " channels",
        "each channel says yes or no by itself, and a mask has one label for each pixel", "give Labels::of_targets, or use PixelCrossEntropy"));
  std::array<Index, 2> counts;
  count_classes(labels, output, {}, counts);
  return static_cast<double>(output.count());
}
inline double count_numbers(std::string_view loss, const Labels& labels, const Shape& output) {
  return count_targets(loss, labels, output, "targets are finite", [](float t) { return std::isfinite(t); });
}
}   // namespace detail
/// -log softmax(logits)[label] over the channels of each pixel, as torch's cross_entropy: the mean over pixels, each of the weight of
/// its class. Labels: a mask. Counts are of pixels that are not ignored; a pixel is correct if its label's logit is the first largest.
struct PixelCrossEntropy {
  static constexpr std::string_view name = "pixel_cross_entropy";
  static constexpr bool targets = false;   ///< labels are masks
  std::vector<double> weights{};           ///< of the classes, at least 0; none: all 1
  std::optional<std::int32_t> ignore{};    ///< label of pixels that do not count, whatever is there
  friend bool operator==(const PixelCrossEntropy&, const PixelCrossEntropy&) = default;
  /// The weights of all pixels that count.
  /// Errors:  DataError if a label is no class, weights are not as many as classes, one that a label has is negative or not finite, or the output
  ///          has one channel
  double total(const Labels& labels, const Shape& output) const {
    if (labels.kind() != LabelKind::pixels)
      throw DataError(error_text("targets are given to the loss '" + std::string(name) + "'", "it compares classes, one for each pixel",
                                 "give Labels::of_pixels"));
    if (output.c < 2)
      throw DataError(error_text("an output of 1 channel is given to the loss '" + std::string(name) + "'",
                                 "it compares the logits of classes, of which there are two at least",
                                 "end the network in a channel for each class, or train with PixelBinaryCrossEntropy"));
    if (!weights.empty() && static_cast<Index>(weights.size()) != output.c)
      throw DataError(error_text(std::to_string(weights.size()) + " weights are given for " + std::to_string(output.c) + " classes",
                                 "each class has one, or none has", "give as many weights as classes"));
    return detail::with_counts(output.c, [&](std::span<Index> counts) {
      detail::count_classes(labels, output, ignore, counts);
      double sum = 0;
      for (Index k = 0; k < output.c; ++k)
        if (const Index count = item(counts, k); count > 0) {   // 1 / 0 may be an absent class's
          if (!(weight(k) >= 0 && std::isfinite(weight(k))))
            throw DataError(
                error_text("class " + std::to_string(k) + " has the weight " + number_text(weight(k)) + " in the loss '" + std::string(name) + "'",
                           "the weight of a class is finite and not negative", "choose another one"));
          sum += weight(k) * static_cast<double>(count);
        }
      return sum;
    });
  }
  /// Labels that were read again since total() has seen them, before a device uses them as indices.
  /// Errors:  DataError if a label of these rows is no class
  void check_again(const Labels& labels, Index classes, Range images, Range rows) const {
    for (Index i = images.begin; i < images.end; ++i)
      for (Index row = rows.begin; row < rows.end; ++row) {
        const std::int32_t* label = labels.classes(i, row);
        for (Index x = 0; x < labels.width(); ++x)
          if (counts(label[x])) detail::check_class(label[x], classes, i, row, x);
      }
  }
  /// Source:  the maximum is taken off first, so that no exponential overflows
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    for (Index i = 0; i < logits.n; ++i)
      for (Index row = logits.row0; row < logits.row0 + logits.rows; ++row) {
        const std::int32_t* classes = labels.classes(first + i, row);
        LossResult own;
        for (Index x = 0; x < logits.w; ++x) {
          if (counts(classes[x])) detail::check_class(classes[x], logits.c, first + i, row, x);   // labels by rows may have changed
          pixel(logits, i, row, x, classes[x], dx, scale, own);
        }
        result += own;
      }
  }

 private:
  double weight(Index label) const { return weights.empty() ? 1 : item(weights, label); }
  bool counts(std::int32_t label) const { return !ignore || label != *ignore; }
  template <class T>
  void pixel(const View<const T>& logits, Index i, Index row, Index x, std::int32_t label, const View<T>& dx, double scale, LossResult& own) const {
    const bool counted = counts(label);
    const T* at = logits.row(i, 0, row) + x * logits.block;
    const auto logit = [&](Index k) { return static_cast<double>(at[k / logits.block * logits.stride_c + k % logits.block]); };
    detail::Softmax softmax;
    if (counted) {
      Index largest = 0;
      softmax = detail::softmax_of(logits.c, logit, largest);
      own.sum += weight(label) * softmax.loss(logit(label));
      own.correct += largest == label, ++own.count;
    }
    if (dx.data == nullptr) return;
    T* to = dx.row(i, 0, row) + x * dx.block;
    const double factor = counted ? scale * weight(label) : 0;
    for (Index k = 0; k < round_up(dx.c, dx.block); ++k) {
      const double g = counted && k < dx.c ? factor * softmax.derivative(logit(k), k == label) : 0;
      to[k / dx.block * dx.stride_c + k % dx.block] = static_cast<T>(g);
    }
  }
};
/// Whether each element is 1 rather than 0: the mean over elements of -w t log(sigmoid(z)) - (1 - t) log(1 - sigmoid(z)), as torch's
/// binary_cross_entropy_with_logits. Labels: targets from 0 to 1, or a mask of 0 and 1 for an output of one channel.
/// Counts are of elements; one is correct if its logit is positive where the target is above 0.5, and only there.
struct PixelBinaryCrossEntropy {
  static constexpr std::string_view name = "pixel_binary_cross_entropy";
  double positive_weight = 1;   ///< w above: of what is 1
  friend bool operator==(const PixelBinaryCrossEntropy&, const PixelBinaryCrossEntropy&) = default;
  double total(const Labels& labels, const Shape& output) const { return detail::count_binary(name, labels, output); }
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    detail::each_element(*this, logits, labels, first, dx, scale, result);
  }
  /// Of a logit z and its target t.
  LRCNN_HOST_DEVICE detail::ElementLoss element(double z, double t) const {
    const double yes = positive_weight * t, no = 1 - t;
    return {yes * detail::softplus(-z) + no * detail::softplus(z), no * detail::sigmoid(z) - yes * detail::sigmoid(-z), (z > 0) == (t > 0.5)};
  }
};
/// Binary cross entropy with less weight on elements that are right already, as torchvision's sigmoid_focal_loss: with p = sigmoid(z)
/// and q = t (1 - p) + (1 - t) p, the mean over elements of q^gamma times that loss. Labels, counts: as PixelBinaryCrossEntropy.
/// Source:  Lin et al., "Focal loss for dense object detection" (arXiv 1708.02002)
struct PixelFocal {
  static constexpr std::string_view name = "pixel_focal";
  double gamma = 2;
  double alpha = 0.25;   ///< weight of what is 1, 1 - alpha of what is 0; negative: all have weight 1
  friend bool operator==(const PixelFocal&, const PixelFocal&) = default;
  double total(const Labels& labels, const Shape& output) const { return detail::count_binary(name, labels, output); }
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    detail::each_element(*this, logits, labels, first, dx, scale, result);
  }
  /// Of a logit z and its target t.
  LRCNN_HOST_DEVICE detail::ElementLoss element(double z, double t) const {
    const double p = detail::sigmoid(z), not_p = detail::sigmoid(-z), q = t * not_p + (1 - t) * p;
    const double entropy = t * detail::softplus(-z) + (1 - t) * detail::softplus(z);
    const double slope = t == 0 ? not_p : t == 1 ? -p : p * not_p * (1 - 2 * t) / q;   // dq/dz / q, also where q vanishes
    const double weight = (alpha < 0 ? 1 : alpha * t + (1 - alpha) * (1 - t)) * std::pow(q, gamma);
    return {weight * entropy, weight * ((1 - t) * p - t * not_p + gamma * entropy * slope), (z > 0) == (t > 0.5)};
  }
};
/// The mean over elements of (z - t)^2. Labels: targets. Counts are of elements; none is correct.
struct MeanSquaredError {
  static constexpr std::string_view name = "mean_squared_error";
  friend bool operator==(const MeanSquaredError&, const MeanSquaredError&) = default;
  double total(const Labels& labels, const Shape& output) const { return detail::count_numbers(name, labels, output); }
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    detail::each_element(*this, logits, labels, first, dx, scale, result);
  }
  /// Of an output z and its target t.
  LRCNN_HOST_DEVICE detail::ElementLoss element(double z, double t) const { return {(z - t) * (z - t), 2 * (z - t), false}; }
};
/// The mean over elements of (z - t)^2 / 2 where |z - t| < delta, and of delta (|z - t| - delta / 2) beyond, as torch's huber_loss.
/// Labels, counts: as MeanSquaredError.
struct Huber {
  static constexpr std::string_view name = "huber";
  double delta = 1;   ///< above 0
  friend bool operator==(const Huber&, const Huber&) = default;
  double total(const Labels& labels, const Shape& output) const { return detail::count_numbers(name, labels, output); }
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    detail::each_element(*this, logits, labels, first, dx, scale, result);
  }
  /// Of an output z and its target t.
  LRCNN_HOST_DEVICE detail::ElementLoss element(double z, double t) const {
    const double d = z - t, size = d < 0 ? -d : d;
    if (!(size >= delta)) return {d * d / 2, d, false};   // also what is no number
    return {delta * (size - delta / 2), d < 0 ? -delta : delta, false};
  }
};
}   // namespace lrcnn
