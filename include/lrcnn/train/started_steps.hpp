#pragma once
// Steps that a device was given and that nobody has waited for.
//
// A device adds up losses until it is asked, and leaves out every update from the first loss on that is not finite; it
// stops counting images there. So one sum tells which of several steps count.
#include <lrcnn/layer/loss.hpp>
#include <cmath>
#include <utility>
#include <vector>
namespace lrcnn {
class StartedSteps {
 public:
  void add(Index images) { images_.push_back(images); }
  bool empty() const { return images_.empty(); }
  Index size() const { return static_cast<Index>(images_.size()); }
  /// Forgets which steps they were.
  void forget() { images_.clear(); }
  /// Adds losses that are known at once.
  void note(const LossResult& result) { sum_ += result; }
  /// The losses that are known and were not taken.
  const LossResult& known() const { return sum_; }
  /// Takes the last step back, which nobody has waited for or whose losses are known: only `known` remain.
  void take_back(const LossResult& known) {
    if (!images_.empty()) images_.pop_back();
    sum_ = known;
  }
  /// Drops all losses that are known but those that take() gave earlier.
  void go_back(const LossResult& earlier) { sum_ = earlier; }
  /// Notes what the steps came to, together; where that is not finite nothing is noted. Returns how many of them, the last ones, do not
  /// count; then all steps are forgotten.
  Index settle(const LossResult& result) {
    Index bad = 0;
    if (std::isfinite(result.sum)) {
      note(result);
    } else {
      Index seen = 0;
      for (const Index n : images_) bad += (seen += n) > result.count;
    }
    images_.clear();
    return bad;
  }
  /// What all settled steps came to since it was last taken.
  LossResult take() { return std::exchange(sum_, {}); }

 private:
  std::vector<Index> images_;
  LossResult sum_;
};
}   // namespace lrcnn
