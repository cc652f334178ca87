#pragma once
// What an epoch is judged by: mean loss and counts.
//
// Counts are integers and exact. The loss is a sum in double, added batch by batch in the order of the batches, so it is the same in every run; on
// a device, which adds up some batches itself, in all but its last bits where a training was saved or continued in mid-epoch. Both can be
// saved in mid-epoch and continued.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <lrcnn/layer/loss.hpp>
#include <algorithm>
#include <iomanip>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>
namespace lrcnn {
/// Mean loss and top-1 accuracy of the images seen so far. Regular. Of a loss over pixels the counts are of pixels.
struct Metrics {
  double loss_sum = 0;   ///< over images
  Index images = 0;
  Index correct = 0;
  double weight = 0;   ///< what loss_sum is divided by for the mean: images, or as LossResult::total
  /// Adds a batch by its mean loss, in which every image weighs the same.
  constexpr void add(double mean_loss, Index batch_images, Index batch_correct) {
    loss_sum += mean_loss * static_cast<double>(batch_images), weight += static_cast<double>(batch_images);
    images += batch_images, correct += batch_correct;
  }
  /// Adds what a batch came to, so that loss() is that of one batch of all images, however they are cut into batches. `weighed`: by a loss over
  /// pixels; batch.total is what the sum is divided by, also if it is 0.
  constexpr void add(const LossResult& batch, bool weighed = false) {
    loss_sum += batch.sum, weight += weighed || batch.total > 0 ? batch.total : static_cast<double>(batch.count);
    images += batch.count, correct += batch.correct;
  }
  /// NaN before the first image.
  constexpr double loss() const { return weight > 0 ? loss_sum / weight : std::numeric_limits<double>::quiet_NaN(); }
  /// In [0, 1]; NaN before the first image.
  constexpr double accuracy() const {
    return images == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(correct) / static_cast<double>(images);
  }
  friend constexpr bool operator==(const Metrics&, const Metrics&) = default;
};
/// The class with the largest score, the first of equals; -1 if any score is NaN.
template <class T>
constexpr Index predicted_class(std::span<const T> scores) {
  Index best = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] != scores[i]) return -1;
    if (scores[i] > item(scores, best)) best = static_cast<Index>(i);
  }
  return best;
}
/// Images whose predicted class is their label.
/// Shapes:  scores [N, classes], labels [N]
template <class T, class Label>
constexpr Index count_correct(std::span<const T> scores, std::span<const Label> labels) {
  if (labels.empty()) return 0;
  const std::size_t classes = scores.size() / labels.size();
  Index correct = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    correct += predicted_class<T>(scores.subspan(i * classes, classes)) == static_cast<Index>(labels[i]) ? 1 : 0;
  return correct;
}
/// How often images of each class were taken for each class.
class ConfusionMatrix {
 public:
  /// Errors: DataError if there is no class
  explicit ConfusionMatrix(Index classes) : classes_(classes) {
    if (classes < 1)
      throw DataError(error_text("a confusion matrix of " + std::to_string(classes) + " classes", "there is one at least", "give their number"));
    counts_.resize(static_cast<std::size_t>(classes * classes));
  }
  Index classes() const { return classes_; }
  /// Errors: DataError if either class does not exist.
  void add(Index label, Index predicted) {
    if (label < 0 || label >= classes_ || predicted < 0 || predicted >= classes_)
      throw DataError(error_text("confusion matrix given label " + std::to_string(label) + " and prediction " + std::to_string(predicted),
                                 "classes are 0 to " + std::to_string(classes_ - 1), "check the labels, and the scores for NaN"));
    ++item(counts_, label * classes_ + predicted);
  }
  Index operator()(Index label, Index predicted) const { return item(counts_, label * classes_ + predicted); }
  Index total() const {
    return sum([](Index, Index) { return true; });
  }
  double accuracy() const {
    return ratio(sum([](Index l, Index p) { return l == p; }), total());
  }
  /// Share of a class's images that were recognised; NaN if there were none.
  double recall(Index label) const {
    return ratio((*this)(label, label), sum([&](Index l, Index) { return l == label; }));
  }
  /// Share of the images taken for a class that belong to it; NaN if there were none.
  double precision(Index label) const {
    return ratio((*this)(label, label), sum([&](Index, Index p) { return p == label; }));
  }
  /// Intersection over union: images, or pixels, of the class that were taken for it, among those that either are of it or were taken
  /// for it; NaN if there were none.
  double iou(Index label) const {
    return ratio((*this)(label, label), sum([&](Index l, Index p) { return l == label || p == label; }));
  }
  /// The mean over classes that there were; NaN without any.
  double mean_iou() const {
    double sum = 0;
    Index seen = 0;
    for (Index l = 0; l < classes_; ++l)
      if (const double each = iou(l); each == each) sum += each, ++seen;
    return seen == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(seen);
  }
  friend bool operator==(const ConfusionMatrix&, const ConfusionMatrix&) = default;
 private:
  template <class Wanted>
  Index sum(Wanted wanted) const {
    Index s = 0;
    for (Index l = 0; l < classes_; ++l)
      for (Index p = 0; p < classes_; ++p) s += wanted(l, p) ? (*this)(l, p) : 0;
    return s;
  }
  static double ratio(Index part, Index whole) {
    return whole == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(part) / static_cast<double>(whole);
  }
  Index classes_;
  std::vector<Index> counts_;
};
/// One row per label, one column per prediction.
inline std::ostream& operator<<(std::ostream& out, const ConfusionMatrix& matrix) {
  Index largest = matrix.classes() - 1;
  for (Index l = 0; l < matrix.classes(); ++l)
    for (Index p = 0; p < matrix.classes(); ++p) largest = std::max(largest, matrix(l, p));
  const int width = static_cast<int>(std::to_string(largest).size()) + 1;
  out << "label \\ predicted\n" << std::setw(width) << "";
  for (Index p = 0; p < matrix.classes(); ++p) out << std::setw(width) << p;
  for (Index l = 0; l < matrix.classes(); ++l) {
    out << '\n' << std::setw(width) << l;
    for (Index p = 0; p < matrix.classes(); ++p) out << std::setw(width) << matrix(l, p);
  }
  return out << '\n';
}
}   // namespace lrcnn
