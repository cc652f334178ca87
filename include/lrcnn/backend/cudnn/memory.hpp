#pragma once
// Memory of a device, owned.
#include <lrcnn/backend/cudnn/library.hpp>
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/error.hpp>
#include <utility>
namespace lrcnn::cudnn {
/// Throws if a call has failed. `what`: "copying the parameters to the device".
inline void check(const Status& status, const std::string& what) {
  if (!status.good())
    throw BackendError(error_text(what + " failed: " + status.text, "the device answers every call in order",
                                  "look at the message; parameters read before this step are still good"));
}
class Memory {
 public:
  Memory() = default;
  /// Errors:  PlanError with the bytes asked for and those free
  Memory(std::shared_ptr<Device> library, Index bytes, const std::string& who) : library_(std::move(library)), bytes_(bytes) {
    if (bytes == 0) return;
    if (const Status status = library_->allocate(data_, bytes); !status.good()) {
      DeviceInfo info;
      static_cast<void>(library_->info(info));
      throw MemoryError(error_text(who + " needs " + format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes) of the memory of " +
                                       (info.name.empty() ? "the device" : info.name) + ", where " + format_bytes(info.free_bytes) + " of " +
                                       format_bytes(info.total_bytes) + " are free (" + status.text + ")",
                                   "a plan's memory is taken at once, before the first step",
                                   "use more slabs, more checkpoints, RecomputeAll, fewer images, or a smaller input"));
    }
  }
  Memory(Memory&& other) noexcept
      : library_(std::move(other.library_)), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(library_, other.library_), std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Memory() {
    if (data_) library_->release(data_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  Index bytes() const { return bytes_; }

 private:
  std::shared_ptr<Device> library_;
  void* data_ = nullptr;
  Index bytes_ = 0;
};
/// Elements in a device's memory.
template <class E>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Memory memory, Index count) : memory_(std::move(memory)), count_(count) {}
  E* data() const { return reinterpret_cast<E*>(memory_.data()); }
  Index size() const { return count_; }

 private:
  Memory memory_{};
  Index count_ = 0;
};
}   // namespace lrcnn::cudnn
