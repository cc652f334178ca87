// Memory of the pretended CUDA runtime: taken, given back, copied.
#include "cuda_runtime/state.hpp"
#include <lrcnn/core/checksum.hpp>
#include <cstdlib>
#include <cstring>
using namespace lrcnn::testing::pretended;
namespace {
constexpr std::size_t most_pitch = 0x7fffffff;
cudaError_t take(Blocks& blocks, void** memory, std::size_t bytes, lrcnn::Index free) {
  if (static_cast<lrcnn::Index>(bytes) > free) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(*memory, 0xff, bytes);
  blocks[static_cast<std::byte*>(*memory)] = {static_cast<lrcnn::Index>(bytes), current_device()};
  return cudaSuccess;
}
cudaError_t take_pinned(void** memory, std::size_t bytes) {
  return take(state().pinned, memory, bytes, state().runtime.pinned_capacity - lrcnn::testing::CudaRuntime::pinned_bytes());
}
cudaError_t give(Blocks& blocks, void* memory) {
  const auto block = blocks.find(static_cast<std::byte*>(memory));
  if (block == blocks.end()) return violation("memory is given back that was not taken"), cudaErrorInvalidValue;
  wait_for_device(-1);
  blocks.erase(block);
  std::free(memory);
  return cudaSuccess;
}
/// Starts a copy of rows within a device.
cudaError_t copy_within(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t bytes, std::size_t rows,
                        cudaStream_t stream) {
  const auto lies = [&](const void* memory, std::size_t pitch) { return block_of(state().device, memory, (rows - 1) * pitch + bytes) != nullptr; };
  if (!lies(to, to_pitch) || !lies(from, from_pitch)) return violation("a copy's memory is not where it says"), cudaErrorInvalidValue;
  return enqueue(stream, [=] {
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * to_pitch, static_cast<const std::byte*>(from) + i * from_pitch, bytes);
  });
}
/// Starts a copy of rows. Memory that is not page-locked is copied at once, when the stream has come so far.
cudaError_t copy(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t bytes, std::size_t rows, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  CUstream_st* const there = known(stream);
  if (!there) return cudaErrorInvalidResourceHandle;
  if (bytes == 0 || rows == 0) return cudaSuccess;
  if (kind == cudaMemcpyDeviceToDevice) return copy_within(to, to_pitch, from, from_pitch, bytes, rows, stream);
  const bool down = kind == cudaMemcpyHostToDevice;
  const auto whole = [&](std::size_t pitch) { return (rows - 1) * pitch + bytes; };
  const void *const device = down ? to : from, *const host = down ? from : to;
  const std::size_t device_bytes = whole(down ? to_pitch : from_pitch), host_bytes = whole(down ? from_pitch : to_pitch);
  const Block* const block = block_of(state().device, device, device_bytes);
  if (!block || block_of(state().device, host, 1)) return violation("a copy's memory is not where it says"), cudaErrorInvalidValue;
  if (block->device != there->device) violation("a stream of one device copies memory of another");
  const bool locked = block_of(state().pinned, host, host_bytes) != nullptr;
  const auto sum = [=] { return down ? lrcnn::crc32c({static_cast<const std::byte*>(from), host_bytes}) : 0u; };
  const auto act = [=, before = locked ? sum() : 0u] {
    if (locked && !block_of(state().pinned, host, host_bytes)) return violation("page-locked memory was given back before it was copied");
    if (locked && before != sum()) violation("page-locked memory was written before it was copied");
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * to_pitch, static_cast<const std::byte*>(from) + i * from_pitch, bytes);
    state().runtime.copied_down += down;
    const auto result = state().runtime.results.find(bytes);
    if (!down && rows == 1 && result != state().runtime.results.end()) result->second(to);
  };
  if (locked) return enqueue(stream, act);
  if (there->capture) return there->capture->invalid = true, cudaErrorStreamCaptureUnsupported;
  state().runtime.waits += there->queue->done < there->queue->started;
  run(*there->queue, there->queue->started);
  act();
  return cudaSuccess;
}
}   // namespace
extern "C" {
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return unsafe_call("cudaMalloc", [&] {
    return take(state().device, memory, bytes, state().runtime.capacity - lrcnn::testing::CudaRuntime::device_bytes(current_device()));
  });
}
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned) {
  return unsafe_call("cudaMallocManaged", [&] { return take(state().device, memory, bytes, state().runtime.capacity); });
}
cudaError_t cudaFree(void* memory) {
  return last_call("cudaFree", [&] { return refused_by_capture() ? cudaErrorStreamCaptureUnsupported : give(state().device, memory); });
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return unsafe_call("cudaMallocHost", [&] { return take_pinned(memory, bytes); });
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return unsafe_call("cudaHostAlloc", [&] { return take_pinned(memory, bytes); });
}
cudaError_t cudaFreeHost(void* memory) {
  return last_call("cudaFreeHost", [&] { return refused_by_capture() ? cudaErrorStreamCaptureUnsupported : give(state().pinned, memory); });
}
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  return unsafe_call("cudaHostRegister", [&] {
    state().pinned[static_cast<std::byte*>(memory)] = {static_cast<lrcnn::Index>(bytes), current_device()};
    return cudaSuccess;
  });
}
cudaError_t cudaHostUnregister(void* memory) {
  return last_call("cudaHostUnregister", [&] {
    wait_for_device(-1);
    return state().pinned.erase(static_cast<std::byte*>(memory)) == 1 ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  });
}
cudaError_t cudaHostGetDevicePointer(void** there, void* host, unsigned) {
  return call("cudaHostGetDevicePointer", [&] { return *there = host, block_of(state().pinned, host, 1) ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return call("cudaMemAdvise", [] { return cudaSuccess; });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] { return copy(to, bytes, from, bytes, bytes, 1, kind, stream); });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t bytes, std::size_t rows,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpy2DAsync", [&] {
    if (to_pitch > most_pitch || from_pitch > most_pitch || bytes > to_pitch || bytes > from_pitch) return cudaErrorInvalidPitchValue;
    return copy(to, to_pitch, from, from_pitch, bytes, rows, kind, stream);
  });
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] {
    if (!block_of(state().device, memory, bytes)) return violation("what is set is not the device's memory"), cudaErrorInvalidValue;
    return enqueue(stream, [=] { std::memset(memory, value, bytes); });
  });
}
}
