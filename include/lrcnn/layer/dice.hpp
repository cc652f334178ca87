#pragma once
// Dice loss: how little a map of classes overlaps with its mask.
//
// It is a ratio of sums over all pixels of an image, so the gradient of the first row depends on the last: a barrier. Unlike the losses
// local to rows (layer/pixel_loss.hpp) it therefore wants the logits, and their gradient, in full height: two tensors of the output's
// extents are part of the plan.
#include <lrcnn/layer/pixel_loss.hpp>
#include <algorithm>
#include <array>
namespace lrcnn {
namespace detail {
/// Whether a label is that of logit k.
template <class I>
LRCNN_HOST_DEVICE bool is_dice_class(I k, I classes, std::int32_t label) {
  return label == (classes == 1 ? 1 : static_cast<std::int32_t>(k));
}
/// What a class of an image comes to.
struct DiceClass {
  double loss = 0, absent = 0, present = 0;   ///< its share; its derivative by the class's probability, where the label is another, and where it is k
  DiceClass() = default;
  /// From I_k and P_k + T_k. Sums that are not numbers make a loss that is none.
  LRCNN_HOST_DEVICE DiceClass(double both, double either, double smooth, Index classes) {
    const double under = either + smooth, share = 1 / static_cast<double>(classes);
    if (under == 0) return;
    const double ratio = (2 * both + smooth) / under;
    loss = share * (1 - ratio), absent = share * ratio / under, present = absent - 2 * share / under;
  }
};
}   // namespace detail
/// Of each image 1 - mean over classes k of (2 I_k + smooth) / (P_k + T_k + smooth), with sums over its pixels: P_k of the probability of
/// class k, T_k of pixels whose label is k, I_k of the former where the latter. Probabilities are the softmax over channels; an output of
/// one channel is the logit of class 1, which then is the only class. The mean over images that have a pixel that counts, so neither groups
/// of images nor batches that are accumulated change it.
/// Labels: a mask. Counts are of pixels that are not ignored; one is correct as for PixelCrossEntropy, or PixelBinaryCrossEntropy.
/// Source:  Milletari, Navab and Ahmadi, "V-Net", arXiv 1606.04797, with denominators that are not squared
struct DiceLoss {
  static constexpr std::string_view name = "dice";
  static constexpr bool whole_maps = true;
  static constexpr bool targets = false;       ///< labels are masks
  static constexpr Index most_classes = 256;   ///< their sums are kept on the stack
  double smooth = 1;                           ///< at least 0; a class that is neither there nor predicted counts as found
  std::optional<std::int32_t> ignore{};        ///< label of pixels that do not count, whatever is there
  friend bool operator==(const DiceLoss&, const DiceLoss&) = default;
  /// Images with a pixel that counts.
  /// Errors:  DataError if a label is no class, if targets are given, or if there are too many classes
  double total(const Labels& labels, const Shape& output) const {
    if (labels.kind() != LabelKind::pixels)
      throw DataError(error_text("targets are given to the loss '" + std::string(name) + "'", "it compares classes, one for each pixel",
                                 "give Labels::of_pixels"));
    if (output.c > most_classes)
      throw DataError(error_text("an output of " + std::to_string(output.c) + " classes is given to the loss '" + std::string(name) + "'",
                                 "it has sums for at most " + std::to_string(most_classes), "use PixelCrossEntropy, or fewer classes"));
    return detail::with_counts(std::max<Index>(2, output.c), [&](std::span<Index> counts) {
      return static_cast<double>(detail::count_classes(labels, output, ignore, counts).images);
    });
  }
  /// Shapes:  logits [N,K,H,W], whole maps; dx likewise, or empty
  /// Post:    result grows by these images, dx = the gradient of scale times their sum, padded channels 0
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    for (Index i = 0; i < logits.n; ++i) image(logits, labels, first, i, dx, scale, result);
  }

 private:
  using Numbers = std::array<double, static_cast<std::size_t>(most_classes)>;
  /// Probabilities of a pixel's classes; returns whether the first largest is the label's.
  template <class T>
  static bool probabilities(const View<const T>& logits, Index i, Index row, Index x, std::int32_t label, Numbers& p) {
    const auto logit = [&](Index k) { return static_cast<double>(logits(i, k, row, x)); };
    if (logits.c == 1) {
      p[0] = detail::sigmoid(logit(0));
      return (logit(0) > 0) == (label == 1);
    }
    Index largest = 0;
    const double sum = detail::softmax_of(logits.c, logit, largest, [&](Index k, double e) { item(p, k) = e; }).sum;
    for (Index k = 0; k < logits.c; ++k) item(p, k) /= sum;
    return largest == label;
  }
  template <class T>
  void image(const View<const T>& logits, const Labels& labels, Index first, Index i, const View<T>& dx, double scale, LossResult& result) const {
    const auto classes = static_cast<std::size_t>(logits.c);
    const auto is = [&](std::size_t k, std::int32_t label) { return detail::is_dice_class(k, classes, label); };
    Numbers p{}, both{}, either{};   // I_k, and P_k + T_k
    const auto each_pixel = [&](auto f) {
      for (Index row = logits.row0; row < logits.row0 + logits.rows; ++row) {
        const std::int32_t* of_row = labels.classes(first + i, row);
        for (Index x = 0; x < logits.w; ++x) f(row, x, of_row[x]);
      }
    };
    Index count = 0;
    each_pixel([&](Index row, Index x, std::int32_t label) {
      if (ignore && label == *ignore) return;
      result.correct += probabilities(logits, i, row, x, label, p), ++count;
      for (std::size_t k = 0; k < classes; ++k) {
        either[k] += p[k] + (is(k, label) ? 1 : 0);
        if (is(k, label)) both[k] += p[k];
      }
    });
    result.count += count;
    std::array<detail::DiceClass, static_cast<std::size_t>(most_classes)> of;
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) of[k] = {both[k], either[k], smooth, logits.c}, sum += of[k].loss;
    if (count > 0) result.sum += sum;
    if (dx.data == nullptr) return;
    each_pixel([&](Index row, Index x, std::int32_t label) {
      const bool counts = !ignore || label != *ignore;
      double mean = 0;   // of the derivatives, by probability
      if (counts) probabilities(logits, i, row, x, label, p);
      const auto slope = [&](std::size_t k) { return is(k, label) ? of[k].present : of[k].absent; };
      for (std::size_t k = 0; counts && k < classes; ++k) mean += p[k] * slope(k);
      for (Index k = 0; k < round_up(dx.c, dx.block); ++k) {
        const auto at = static_cast<std::size_t>(k);
        const double g = !counts || k >= dx.c ? 0 : classes == 1 ? p[0] * (1 - p[0]) * slope(0) : p[at] * (slope(at) - mean);
        dx(i, k, row, x) = static_cast<T>(scale * g);
      }
    });
  }
};
}   // namespace lrcnn
