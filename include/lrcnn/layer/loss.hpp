#pragma once
// Losses: what a training step minimises, and the gradient it starts from.
//
// A loss is a type with one function for any element type. It sees logits in whatever layout the backend stores them,
// adds each image's loss to a double in image order (so the sum does not depend on how the batch is cut), and writes
// the gradient of scale * sum. A loss of the user's own has the same shape; see docs/extending.md.
#include <lrcnn/core/host_device.hpp>
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
namespace detail {
/// Softmax cross entropy of one sample, for the host and a device. The maximum is taken off first, so that no exponential overflows.
struct Softmax {
  double top = 0, sum = 0;   ///< the largest logit; the sum of exp(logit - top)
  /// -log softmax of a logit.
  LRCNN_HOST_DEVICE double loss(double logit) const { return std::log(sum) + (top - logit); }
  LRCNN_HOST_DEVICE double probability(double logit) const { return std::exp(logit - top) / sum; }
  /// The derivative of the label's loss by a logit.
  LRCNN_HOST_DEVICE double derivative(double logit, bool is_label) const { return probability(logit) - (is_label ? 1.0 : 0.0); }
};
struct NoExponentials {
  template <class I>
  LRCNN_HOST_DEVICE void operator()(I, double) const {}
};
/// Of logit(0) ... logit(count - 1). `largest`: which one is, the first of equals. each(k, exp(logit - top)) is called for all.
template <class I, class Logit, class Each = NoExponentials>
LRCNN_HOST_DEVICE Softmax softmax_of(I count, Logit logit, I& largest, Each each = {}) {
  largest = 0;
  for (I k = 1; k < count; ++k)
    if (logit(k) > logit(largest)) largest = k;
  Softmax softmax{logit(largest), 0};
  for (I k = 0; k < count; ++k) {
    const double e = std::exp(logit(k) - softmax.top);
    each(k, e), softmax.sum += e;
  }
  return softmax;
}
}   // namespace detail
/// -log softmax(logits)[label], averaged over the batch.
struct SoftmaxCrossEntropy {
  static constexpr std::string_view name = "softmax_cross_entropy";
  /// Shapes:  logits [N,K,1,1], labels [N] in [0,K) (the caller has checked), dx like logits or empty
  /// Post:    result grows by these images; dx = scale * (softmax - onehot), padded channels 0
  template <class T>
  void operator()(const View<const T>& logits, std::span<const std::int32_t> labels, const View<T>& dx, double scale, LossResult& result) const {
    for (Index i = 0; i < logits.n; ++i) {
      const Index label = item(labels, i);
      const auto logit = [&](Index k) { return static_cast<double>(logits(i, k, 0, 0)); };
      Index largest = 0;
      const detail::Softmax softmax = detail::softmax_of(logits.c, logit, largest);
      result.sum += softmax.loss(logit(label));
      result.correct += largest == label;
      ++result.count;
      if (dx.data == nullptr) continue;
      for (Index k = 0; k < round_up(logits.c, logits.block); ++k) {
        dx(i, k, 0, 0) = static_cast<T>(k < logits.c ? scale * softmax.derivative(logit(k), k == label) : 0);
      }
    }
  }
};
}   // namespace lrcnn
