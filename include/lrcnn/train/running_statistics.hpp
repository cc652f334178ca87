#pragma once
// Running mean and variance of norms over a batch, from step to step.
//
// They are parameters without a gradient (ParameterShape::running). A training run leaves the batch's mean and unbiased variance where
// their gradient would be, overwriting what was there, also where gradients are added up; they are never scaled with the loss. Mixing
//     running = (1 - momentum) * running + momentum * value
// is an update like an optimizer's, so a device starts it without waiting, and leaves it out where it leaves out the optimizer's: from
// the first loss on that is not finite. So every batch that counts is mixed in once, also those of an accumulated update, as PyTorch
// does with every forward pass in training, and a step that is refused or taken back leaves no trace. A step that is skipped for
// gradients that overflow in 16 bits is mixed in: its forward pass was sound.
#include <lrcnn/backend/update.hpp>
#include <lrcnn/network/table.hpp>
#include <algorithm>
#include <limits>
#include <span>
#include <vector>
namespace lrcnn {
/// A stretch of the flat buffer whose running statistics are mixed alike.
struct RunningRange {
  Range elements{};
  double momentum = 0;
  friend bool operator==(const RunningRange&, const RunningRange&) = default;
};
/// w -= momentum * (w - g), which every backend has: gradient descent along -g with a weight decay of 1.
template <class T>
constexpr SgdUpdate<T> running_update(double momentum) {
  return {static_cast<T>(momentum), T{1}, {T{-1}, std::numeric_limits<T>::infinity()}};
}
/// The running statistics of a network that a training step changes: a stretch for each norm over a batch that is not frozen and has a
/// momentum other than 0. Pointers are to the flat buffers, in the backend's memory.
class RunningStatistics {
 public:
  RunningStatistics() = default;
  explicit RunningStatistics(const Table& table) {
    for (const Parameter& p : parameters_of(table)) {
      const auto& norm = table.node(p.layer).layer.norm;
      if (!p.shape.running || norm.frozen || norm.momentum == 0) continue;
      const bool joins = !ranges_.empty() && ranges_.back().elements.end == p.offset && ranges_.back().momentum == norm.momentum;
      if (joins) ranges_.back().elements.end = p.elements().end;
      else ranges_.push_back({p.elements(), norm.momentum});
    }
  }
  const std::vector<RunningRange>& ranges() const { return ranges_; }
  /// Mixes in what the last training run has left. Started, not waited for; a device leaves it out as it does updates.
  template <class B, class T>
  void mix(B& backend, T* parameters, const T* gradients) const {
    T* const none = nullptr;
    for (const auto& [r, momentum] : ranges_)
      backend.update(running_update<T>(momentum), parameters + r.begin, gradients + r.begin, none, none, r.size());
  }
  /// Copies them, one stretch after the other. Waits.
  template <class B, class T>
  std::vector<std::remove_const_t<T>> read(const B& backend, T* parameters) const {
    std::vector<std::remove_const_t<T>> values;
    for (const auto& [r, momentum] : ranges_) {
      values.resize(values.size() + static_cast<std::size_t>(r.size()));
      backend.read(std::span(values).last(static_cast<std::size_t>(r.size())), parameters + r.begin);
    }
    return values;
  }
  /// Writes back what read() has given. No values: nothing changes.
  template <class T, class B>
  void write(const B& backend, T* parameters, std::span<const T> values) const {
    if (values.empty()) return;
    for (const auto& [r, momentum] : ranges_) {
      backend.write(parameters + r.begin, values.first(static_cast<std::size_t>(r.size())));
      values = values.subspan(static_cast<std::size_t>(r.size()));
    }
  }
  /// The same in a copy of the parameters that the host has.
  template <class T>
  void put(std::span<T> parameters, std::span<const T> values) const {
    if (values.empty()) return;
    for (const auto& [r, momentum] : ranges_) {
      std::ranges::copy(values.first(static_cast<std::size_t>(r.size())), parameters.begin() + r.begin);
      values = values.subspan(static_cast<std::size_t>(r.size()));
    }
  }

 private:
  std::vector<RunningRange> ranges_;
};
}   // namespace lrcnn
