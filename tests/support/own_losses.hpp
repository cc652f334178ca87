#pragma once
// Losses as a program would write them for CPUs and GPUs at once, outside the library and against its documented interface alone.
#include <lrcnn/layer/sample_loss.hpp>
#include <cmath>
namespace lrcnn::testing {
/// Sum over classes of max(0, margin - t z)^2, t = 1 for the label's class and -1 for all others.
struct SquaredHinge {
  static constexpr std::string_view name = "squared_hinge";
  static constexpr bool on_device = true;
  double margin = 1;
  template <class S>
  LRCNN_HOST_DEVICE SampleLoss loss(const S& s) const {
    SampleLoss result{0, s.largest() == s.label};
    for (Index k = 0; k < s.channels; ++k) {
      const double t = k == s.label ? 1 : -1, gap = margin - t * s.logit(k);
      if (gap > 0) result.loss += gap * gap;
      s.gradient(k, gap > 0 ? -2 * t * gap : 0);
    }
    return result;
  }
  friend bool operator==(const SquaredHinge&, const SquaredHinge&) = default;
};
/// Cross entropy over three classes with weights; one label does not count: PixelCrossEntropy{.weights, .ignore}.
struct WeightedEntropy {
  static constexpr std::string_view name = "weighted_entropy";
  static constexpr bool on_device = true;
  double weights[3] = {0.5, 2, 1};
  std::int32_t ignored = -1;
  LRCNN_HOST_DEVICE bool counts(std::int32_t label) const { return label != ignored; }
  LRCNN_HOST_DEVICE double weight(std::int32_t label) const { return weights[label]; }
  template <class S>
  LRCNN_HOST_DEVICE SampleLoss loss(const S& s) const {
    const Index largest = s.largest();
    const double top = s.logit(largest);
    double sum = 0;
    for (Index k = 0; k < s.channels; ++k) sum += std::exp(s.logit(k) - top);
    const SampleLoss result{std::log(sum) + (top - s.logit(s.label)), largest == s.label};
    for (Index k = 0; k < s.channels; ++k) s.gradient(k, std::exp(s.logit(k) - top) / sum - (k == s.label ? 1.0 : 0.0));
    return result;
  }
};
/// The mean over channels of log(cosh(z - t)), for targets.
struct LogCosh {
  static constexpr std::string_view name = "log_cosh";
  static constexpr bool on_device = true, targets = true;
  template <class S>
  LRCNN_HOST_DEVICE SampleLoss loss(const S& s) const {
    SampleLoss result;
    const auto count = static_cast<double>(s.channels);
    for (Index k = 0; k < s.channels; ++k) {
      const double d = s.logit(k) - s.target(k), size = d < 0 ? -d : d;
      result.loss += (size + std::log1p(std::exp(-2 * size)) - 0.6931471805599453) / count;
      s.gradient(k, std::tanh(d) / count);
    }
    return result;
  }
};
}   // namespace lrcnn::testing
