#pragma once
// Losses: what a training step minimises, and the gradient it starts from.
//
// A loss is a type with one function for any element type. It sees logits in whatever layout the backend stores them,
// adds each image's loss to a double in image order (so the sum does not depend on how the batch is cut), and writes
// the gradient of scale * sum. A loss of the user's own has the same shape; see docs/extending.md.
#include <lrcnn/core/view.hpp>
#include <concepts>
#include <cmath>
#include <span>
#include <string_view>
namespace lrcnn {
/// Sum of losses and hits over the images seen so far. Of a loss over pixels (layer/pixel_loss.hpp) the counts are of pixels.
struct LossResult {
  double sum = 0;      ///< of the losses of all images so far
  Index correct = 0;   ///< images whose largest logit is the label's; the first of equals counts as largest
  Index count = 0;
  double total = 0;   ///< what the sum is divided by for the mean, if not by the count: the weight of all pixels that count
  double mean() const { return total > 0 ? sum / total : count > 0 ? sum / static_cast<double>(count) : 0; }
  double accuracy() const { return count > 0 ? static_cast<double>(correct) / static_cast<double>(count) : 0; }
  /// Adds what other images, or other rows, came to.
  LossResult& operator+=(const LossResult& other) {
    sum += other.sum, correct += other.correct, count += other.count, total += other.total;
    return *this;
  }
  friend bool operator==(const LossResult&, const LossResult&) = default;
};
/// A type that a Trainer can minimise.
template <class L, class T>
concept Loss = requires(const L& loss, const View<const T>& logits, std::span<const std::int32_t> labels, const View<T>& dx, double scale,
                        LossResult& result) {
  { L::name } -> std::convertible_to<std::string_view>;
  loss(logits, labels, dx, scale, result);
};
/// -log softmax(logits)[label], averaged over the batch.
struct SoftmaxCrossEntropy {
  static constexpr std::string_view name = "softmax_cross_entropy";
  /// Shapes:  logits [N,K,1,1], labels [N] in [0,K) (the caller has checked), dx like logits or empty
  /// Post:    result grows by these images; dx = scale * (softmax - onehot), padded channels 0
  /// Source:  the maximum is taken off first, so that no exponential overflows
  template <class T>
  void operator()(const View<const T>& logits, std::span<const std::int32_t> labels, const View<T>& dx, double scale, LossResult& result) const {
    for (Index i = 0; i < logits.n; ++i) {
      const Index label = item(labels, i);
      Index largest = 0;
      for (Index k = 1; k < logits.c; ++k)
        if (logits(i, k, 0, 0) > logits(i, largest, 0, 0)) largest = k;
      const double top = static_cast<double>(logits(i, largest, 0, 0));
      double sum = 0;
      for (Index k = 0; k < logits.c; ++k) sum += std::exp(static_cast<double>(logits(i, k, 0, 0)) - top);
      result.sum += std::log(sum) + top - static_cast<double>(logits(i, label, 0, 0));
      result.correct += largest == label;
      ++result.count;
      if (dx.data == nullptr) continue;
      for (Index k = 0; k < round_up(logits.c, logits.block); ++k) {
        const double p = k < logits.c ? std::exp(static_cast<double>(logits(i, k, 0, 0)) - top) / sum : 0;
        dx(i, k, 0, 0) = static_cast<T>(scale * (p - (k == label ? 1.0 : 0.0)));
      }
    }
  }
};
}   // namespace lrcnn
