#pragma once
// The labels of a batch: what a loss compares a network's output with.
#include <lrcnn/core/types.hpp>
#include <concepts>
#include <cstdint>
#include <span>
namespace lrcnn {
/// One label for each image, in the host's memory or a device's. Owned by somebody else, who leaves them alone during a run.
class Labels {
 public:
  Labels() = default;
  /// Labels that the host can read: anything that a span can be made of.
  template <class R>
    requires std::convertible_to<const R&, std::span<const std::int32_t>>
  Labels(const R& values) : Labels(std::span<const std::int32_t>(values)) {}
  Labels(std::span<const std::int32_t> values) : data_(values.data()), count_(static_cast<Index>(values.size())) {}
  /// `count` labels in the memory of the device that runs the step. Whether they are classes shows when they are used.
  static Labels on_device(const std::int32_t* values, Index count) {
    Labels labels(std::span<const std::int32_t>(values, static_cast<std::size_t>(count)));
    labels.on_device_ = true;
    return labels;
  }
  const std::int32_t* data() const { return data_; }
  Index size() const { return count_; }
  bool on_device() const { return on_device_; }
  /// Pre: !on_device().
  std::span<const std::int32_t> on_host() const { return {data_, static_cast<std::size_t>(count_)}; }

 private:
  const std::int32_t* data_ = nullptr;
  Index count_ = 0;
  bool on_device_ = false;
};
}  // namespace lrcnn
