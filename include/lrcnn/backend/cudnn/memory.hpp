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
/// Page-locked memory of the host that the device reads and writes, at the same address.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  /// Errors:  MemoryError naming `who` and the bytes, if the host has too little memory or the device does not read it
  PinnedMemory(std::shared_ptr<Device> library, Index bytes, const std::string& who) : library_(std::move(library)), bytes_(bytes) {
    HostAccess access;
    check(library_->host_access(access), "asking what the device reads of the host's memory");
    const Status status = access.maps ? library_->share(memory_, bytes) : Status{"the device does not read page-locked memory"};
    if (!status.good())
      throw MemoryError(error_text(
          who + " needs " + format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes) of the host's memory, page-locked: " + status.text,
          "offloaded tensors lie in memory of the host that the device reads and writes",
          "use OffloadInput in fewer sections, fewer images, or a smaller input"));
  }
  PinnedMemory(PinnedMemory&& other) noexcept
      : library_(std::move(other.library_)), memory_(std::exchange(other.memory_, {})), bytes_(std::exchange(other.bytes_, 0)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(library_, other.library_), std::swap(memory_, other.memory_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PinnedMemory() {
    if (memory_.host) library_->unshare(memory_);
  }
  /// The device's address.
  std::byte* data() const { return static_cast<std::byte*>(const_cast<void*>(memory_.there)); }
  Index bytes() const { return bytes_; }

 private:
  std::shared_ptr<Device> library_{};
  HostMemory memory_{};
  Index bytes_ = 0;
};
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
      : library_(std::move(other.library_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        offloaded_(std::move(other.offloaded_)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(library_, other.library_), std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    std::swap(offloaded_, other.offloaded_);
    return *this;
  }
  ~Memory() {
    if (data_) library_->release(data_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  Index bytes() const { return bytes_; }
  /// The host's memory in which a plan's offloaded tensors lie; nothing unless it is set.
  const PinnedMemory& offloaded() const { return offloaded_; }
  void set_offloaded(PinnedMemory memory) { offloaded_ = std::move(memory); }

 private:
  std::shared_ptr<Device> library_;
  void* data_ = nullptr;
  Index bytes_ = 0;
  PinnedMemory offloaded_{};
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
