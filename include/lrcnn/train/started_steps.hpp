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
  /// One more step. `images`: those that the device is given; `known`: of its losses, what is known without the device; `updates`: its update follows
  /// at once, before anybody waits for it.
  void add(Index images, const LossResult& known, bool updates) { steps_.push_back({images, known, updates}); }
  bool empty() const { return steps_.empty(); }
  Index size() const { return static_cast<Index>(steps_.size()); }
  /// Forgets which steps they were. Losses of which the device has no part are noted.
  void forget() {
    for (const Step& step : steps_)
      if (step.known.count > 0) note(step.known);
    steps_.clear();
  }
  /// Adds losses that are known at once.
  void note(const LossResult& result) { sum_ += result; }
  /// The losses that are known and were not taken.
  const LossResult& known() const { return sum_; }
  /// Takes the last step back, which nobody has waited for or whose losses are known: only `known` remain.
  void take_back(const LossResult& known) {
    if (!steps_.empty()) steps_.pop_back();
    sum_ = known;
  }
  /// Drops all losses that are known but those that take() gave earlier.
  void go_back(const LossResult& earlier) { sum_ = earlier; }
  /// Steps that do not count, and how many of them were counted as updates.
  struct Dropped {
    Index steps = 0, updates = 0;
  };
  /// Notes what the steps came to, together; where that is not finite nothing is noted. Returns those, the last ones, that do not count; then all
  /// steps are forgotten.
  Dropped settle(const LossResult& result) {
    Dropped dropped;
    if (std::isfinite(result.sum)) {
      note(result);
      for (const Step& step : steps_) note(step.known);
    } else {
      Index seen = 0;
      for (const Step& step : steps_)
        if ((seen += step.images) > result.count) ++dropped.steps, dropped.updates += step.updates;
    }
    steps_.clear();
    return dropped;
  }
  /// What all settled steps came to since it was last taken.
  LossResult take() { return std::exchange(sum_, {}); }

 private:
  struct Step {
    Index images = 0;
    LossResult known{};
    bool updates = true;
  };
  std::vector<Step> steps_;
  LossResult sum_;
};
}   // namespace lrcnn
