#pragma once
// Labels for a network that is run on images that nobody has labelled, to see how long it takes (train/measure_costs.hpp).
//
// What labels a loss wants, it alone knows, and total() says: labels that it does not understand are refused there, and of those that it leaves
// out nothing counts. So labels are tried, simple ones first, until the loss finds something in them that counts.
#include <lrcnn/layer/pixel_loss.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <vector>
namespace lrcnn::detail {
/// Labels that a loss takes for a network's output.
class MadeLabels {
 public:
  MadeLabels() = default;
  /// Of elements T.
  /// Errors:  DataError, with what the loss says, if it takes none of those that are tried
  template <class T, TrainingLoss<T> L>
  static MadeLabels of(const L& loss, const Shape& output) {
    MadeLabels made;
    made.output_ = output, made.kind_ = DenseLoss<L, T> ? LabelKind::pixels : LabelKind::images;
    if constexpr (DenseLoss<L, T>) made.find(loss);
    else made.classes_.assign(static_cast<std::size_t>(output.n), 0);
    return made;
  }
  /// Valid as long as this object is.
  Labels labels() const {
    if (kind_ == LabelKind::targets) return Labels::of_targets(targets_, output_.c, output_.h, output_.w);
    return kind_ == LabelKind::pixels ? Labels::of_pixels(classes_, output_.h, output_.w) : Labels(classes_);
  }

 private:
  template <class L>
  void find(const L& loss) {
    const Index classes = std::max<Index>(2, output_.c);
    classes_.resize(static_cast<std::size_t>(output_.n * output_.h * output_.w));
    std::string of_masks, of_targets;   // what the loss says of the first ones
    for (Index k = 0; k <= classes; ++k) {
      for (std::size_t i = 0; i < classes_.size(); ++i)
        classes_[i] = static_cast<std::int32_t>(k < classes ? k : static_cast<Index>(i) % classes);   // of one class, then of all
      const auto fault = fault_of(loss);
      if (!fault) return;
      if (k == 0) of_masks = *fault;
    }
    kind_ = LabelKind::targets, classes_ = {}, targets_.resize(static_cast<std::size_t>(output_.count()));
    for (const float target : {0.5f, 1.0f, 0.0f}) {
      std::fill(targets_.begin(), targets_.end(), target);
      const auto fault = fault_of(loss);
      if (!fault) return;
      if (of_targets.empty()) of_targets = *fault;
    }
    throw DataError(error_text("none of the labels that were made up to measure costs with serves the loss '" + std::string(L::name) +
                                   "' on an output of " + to_string(output_),
                               "masks of one class and of all classes were tried, and targets of 0.5, 1 and 0",
                               "measure with a loss that takes some of these; of a mask this one says: " + of_masks + "; of targets: " + of_targets));
  }
  /// Why these labels do not serve; nothing if they do.
  template <class L>
  std::optional<std::string> fault_of(const L& loss) const {
    try {
      const double total = loss.total(labels(), output_);
      if (total > 0 && std::isfinite(total)) return std::nullopt;
      return "no pixel counts";
    } catch (const DataError& e) {
      const std::string text = e.what(), start = "lrcnn: ";
      return text.starts_with(start) ? text.substr(start.size()) : text;
    }
  }
  Shape output_{};
  LabelKind kind_ = LabelKind::images;
  std::vector<std::int32_t> classes_{};
  std::vector<float> targets_{};
};
}   // namespace lrcnn::detail
