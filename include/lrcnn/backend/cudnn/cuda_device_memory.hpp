#pragma once
// Memory of the host that a CUDA device reads by itself, and the descriptions of batches that it gathers from there.
#include <lrcnn/backend/cudnn/cuda_device_calls.hpp>
#include <lrcnn/backend/cudnn/gather_blob.hpp>
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/memory.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>
namespace lrcnn::cudnn {
/// What a device can do with memory of the host. Pre: it is current.
inline Status find_host_access(HostAccess& access, int device) {
  Status status;
  const auto has = [&](cudaDeviceAttr attribute) {
    int value = 0;
    if (status.good()) status = status_of(cudaDeviceGetAttribute(&value, attribute, device));
    return value != 0;
  };
  std::size_t free = 0, total = 0;
  if (const Status s = status_of(cudaMemGetInfo(&free, &total)); !s.good()) return s;
  const bool maps = has(cudaDevAttrCanMapHostMemory) && has(cudaDevAttrUnifiedAddressing);
  access = {.device = device,
            .free_bytes = static_cast<Index>(free),
            .total_bytes = static_cast<Index>(total),
            .page_bytes = static_cast<Index>(sysconf(_SC_PAGESIZE)),
            .maps = maps,
            .registers = maps && has(cudaDevAttrHostRegisterSupported),
            .registers_read_only = has(cudaDevAttrHostRegisterReadOnlySupported),
            .managed = has(cudaDevAttrManagedMemory) && has(cudaDevAttrConcurrentManagedAccess),
            .pageable = has(cudaDevAttrPageableMemoryAccess)};
  return status;
}
/// Tells managed memory to stay on the host, where the device reads it without moving its pages.
inline Status keep_on_host(void* memory, Index bytes, int device) {
  const auto size = static_cast<std::size_t>(bytes);
#if CUDART_VERSION >= 13000
  const cudaMemLocation host{cudaMemLocationTypeHost, 0}, reader{cudaMemLocationTypeDevice, device};
#else
  const int host = cudaCpuDeviceId, reader = device;
#endif
  if (const Status s = status_of(cudaMemAdvise(memory, size, cudaMemAdviseSetPreferredLocation, host)); !s.good()) return s;
  return status_of(cudaMemAdvise(memory, size, cudaMemAdviseSetAccessedBy, reader));
}
inline void unshare_host_memory(const HostMemory& memory) noexcept {
  void* const host = const_cast<void*>(memory.host);
  if (memory.residence == Residence::registered) ignored(cudaHostUnregister(host));
  else if (memory.residence == Residence::managed) ignored(cudaFree(host));
  else ignored(cudaFreeHost(host));
}
/// Makes or registers memory that host and device read. Pre: the device is current.
/// Post:    after an error nothing is left behind
inline Status share_host_memory(HostMemory& memory, Index bytes, int device) {
  const auto size = static_cast<std::size_t>(bytes);
  void *host = const_cast<void*>(memory.host), *there = nullptr;
  Status status;
  if (memory.residence == Residence::managed) {
    status = status_of(cudaMallocManaged(&host, size));
    if (!status.good()) return status;
    there = host;
    status = keep_on_host(host, bytes, device);
  } else {
    if (memory.residence == Residence::registered) {
      HostAccess access;
      if (const Status s = find_host_access(access, device); !s.good()) return s;
      const unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped | (access.registers_read_only ? cudaHostRegisterReadOnly : 0u);
      status = status_of(cudaHostRegister(host, size, flags));
    } else {
      if (const Index available = available_memory(); bytes > available)   // else the system would have none left
        return {format_bytes(bytes) + " are asked for, and " + format_bytes(available) + " are available"};
      status = status_of(cudaHostAlloc(&host, size, cudaHostAllocPortable | cudaHostAllocMapped));
    }
    if (!status.good()) return status;
    status = status_of(cudaHostGetDevicePointer(&there, host, 0));
  }
  HostMemory made{memory.residence, host, there};
  if (status.good()) memory = made;
  else unshare_host_memory(made);
  return status;
}
/// Samples and tables of the batches that were gathered last, in the device's memory. A batch is sent once, however many slabs read it, and the
/// host waits for the device only where it is so many batches ahead that all places are in use. An array is kept until it has been read.
class GatheredBatches {
 public:
  using Release = std::function<void(void*)>;
  using Allocate = std::function<Status(void*&, Index)>;
  GatheredBatches(Allocate allocate, Release release) : allocate_(std::move(allocate)), release_(std::move(release)) {}
  GatheredBatches(const GatheredBatches&) = delete;
  GatheredBatches& operator=(const GatheredBatches&) = delete;
  /// Gives everything back. Pre: the device is current.
  void close() noexcept {
    for (Place& place : places_) {
      if (place.device) release_(place.device);   // which waits for the device
      if (place.host) ignored(cudaFreeHost(place.host));
      for (const auto& [stream, event] : place.used) ignored(cudaEventDestroy(event));
      if (place.sent) ignored(cudaEventDestroy(place.sent));
      place = {};
    }
  }
  /// Where a batch is; sends it if it is not there. Later work on `stream` finds it. Pre: the device is current; used() follows.
  Status find(GatheredBatch& there, const DirectSource<float>& source, cudaStream_t stream) {
    if (const Status s = forget_read(); !s.good()) return s;
    auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& p) { return p.serial == source.serial(); });
    if (place == places_.end()) {
      place = std::min_element(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.turn < b.turn; });
      if (const Status s = send(*place, source, stream); !s.good()) return s;
    } else if (const Status s = status_of(cudaStreamWaitEvent(stream, place->sent, 0)); !s.good()) {
      return s;
    }
    place->turn = ++turns_;
    last_ = &*place;
    there = GatherBlob::at(static_cast<const std::byte*>(place->device), source);
    return {};
  }
  /// Work on `stream` that reads what find() gave last, and the source's array, has been started. Post: the array is kept until that is done.
  Status used(const DirectSource<float>& source, cudaStream_t stream) {
    Status status = mark(stream);
    if (status.good()) last_->array = source.shared_array();
    else ignored(cudaStreamSynchronize(stream));   // nothing else says when it has been read
    return status;
  }
  /// Lets go of the arrays that have been read. Pre: the device is current.
  Status forget_read() {
    for (Place& place : places_) {
      if (!place.array) continue;
      bool read = true;
      for (const auto& [stream, event] : place.used) {
        const cudaError_t error = state_of(event);
        read = read && error != cudaErrorNotReady;
        if (error == cudaErrorNotReady) continue;
        if (const Status s = status_of(error); !s.good()) return s;
      }
      if (read) place.array = nullptr;
    }
    return {};
  }
  /// Lets go of all arrays. Pre: the device is done with them.
  void forget() {
    for (Place& place : places_) place.array = nullptr;
  }

 private:
  struct Place {
    std::uint64_t serial = 0;   ///< of the batch; 0: none
    Index turn = 0, bytes = 0;
    void *host = nullptr, *device = nullptr;
    cudaEvent_t sent = nullptr;
    std::vector<std::pair<cudaStream_t, cudaEvent_t>> used{};   ///< behind the last reader on each stream
    std::shared_ptr<const SampleArray> array{};                 ///< what they read
  };
  Status mark(cudaStream_t stream) {
    for (auto& [known, event] : last_->used)
      if (known == stream) return status_of(cudaEventRecord(event, stream));
    cudaEvent_t event = nullptr;
    if (const Status s = status_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); !s.good()) return s;
    last_->used.emplace_back(stream, event);
    return status_of(cudaEventRecord(event, stream));
  }
  /// Takes a place for a batch: waits for the last readers of what was there, and for its copy, which may have had no reader.
  Status send(Place& place, const DirectSource<float>& source, cudaStream_t stream) {
    for (const auto& [reader, event] : place.used)
      if (const Status s = status_of(state_of(event, true)); !s.good()) return s;
    if (place.sent)
      if (const Status s = status_of(state_of(place.sent, true)); !s.good()) return s;
    place.serial = 0;
    place.array = nullptr;
    if (const Index bytes = GatherBlob::bytes(source); place.bytes < bytes) {
      if (place.device) release_(std::exchange(place.device, nullptr));
      if (place.host) ignored(cudaFreeHost(std::exchange(place.host, nullptr)));
      place.bytes = 0;
      if (const Status s = status_of(cudaMallocHost(&place.host, static_cast<std::size_t>(bytes))); !s.good()) return s;
      if (const Status s = allocate_(place.device, bytes); !s.good()) return s;
      place.bytes = bytes;
    }
    if (!place.sent)
      if (const Status s = status_of(cudaEventCreateWithFlags(&place.sent, cudaEventDisableTiming)); !s.good()) return s;
    GatherBlob::write(source, static_cast<std::byte*>(place.host));
    const auto size = static_cast<std::size_t>(GatherBlob::bytes(source));
    if (const Status s = status_of(cudaMemcpyAsync(place.device, place.host, size, cudaMemcpyHostToDevice, stream)); !s.good()) return s;
    if (const Status s = status_of(cudaEventRecord(place.sent, stream)); !s.good()) return ignored(cudaStreamSynchronize(stream)), s;
    place.serial = source.serial();
    return {};
  }
  static constexpr std::size_t places = 32;   // fit() is at most 16 batches ahead
  Allocate allocate_;
  Release release_;
  std::vector<Place> places_ = std::vector<Place>(places);
  Place* last_ = nullptr;
  Index turns_ = 0;
};
}   // namespace lrcnn::cudnn
