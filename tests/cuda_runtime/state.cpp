// The state of the pretended CUDA runtime, and the functions that concern devices and errors.
#include "cuda_runtime/state.hpp"
#include <cstring>
namespace lrcnn::testing {
CudaRuntime& cuda_runtime() { return pretended::state().runtime; }
bool CudaRuntime::error_is_left() { return pretended::last_error() != cudaSuccess; }
std::string CudaRuntime::left() {
  const auto& s = pretended::state();
  std::string text;
  const auto add = [&](std::size_t count, const char* what) {
    if (count > 0) text += std::to_string(count) + " " + what + "; ";
  };
  add(s.device.size(), "blocks of device memory"), add(s.pinned.size(), "blocks of pinned memory");
  add(s.streams.size() - s.default_streams.size(), "streams"), add(s.events.size(), "events");
  add(s.graphs.size() + s.executables.size(), "graphs"), add(s.handles.size(), "handles");
  return text;
}
Index CudaRuntime::device_bytes(int device) {
  Index bytes = 0;
  for (const auto& [memory, block] : pretended::state().device) bytes += block.device == device ? block.bytes : 0;
  return bytes;
}
Index CudaRuntime::pinned_bytes() {
  Index bytes = 0;
  for (const auto& [memory, block] : pretended::state().pinned) bytes += block.bytes;
  return bytes;
}
cudaStream_t CudaRuntime::make_stream(int device) {
  auto* const stream = new CUstream_st{.device = device};
  pretended::state().streams.insert(stream);
  return stream;
}
void CudaRuntime::forget_contexts() {
  pretended::contexts_above().clear();
  pretended::current_device() = 0;
  cuda_runtime().contexts.clear();
}
void CudaRuntime::finish() { pretended::wait_for_device(-1); }
void CudaRuntime::run_others(cudaStream_t busy) {
  for (bool moved = true; moved;) {
    moved = false;
    for (CUstream_st* stream : pretended::state().streams) {
      pretended::Queue& queue = *stream->queue;
      if (stream == busy || queue.work.empty()) continue;
      const pretended::Work& next = queue.work.front();
      if (next.other && next.other->done < next.position) continue;
      pretended::run(queue, queue.done + 1);
      moved = true;
    }
  }
}
}   // namespace lrcnn::testing
namespace lrcnn::testing::pretended {
State& state() {
  static State* const all = new State;   // kernels are unregistered after everything else has gone
  return *all;
}
cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}
std::vector<int>& contexts_above() {
  thread_local std::vector<int> devices;
  return devices;
}
int& current_device() {
  thread_local int device = 0;
  return contexts_above().empty() ? device : contexts_above().back();
}
cudaStreamCaptureMode& capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}
void use_device() { state().runtime.contexts.insert(current_device()); }
void violation(const std::string& text) { state().runtime.violations.push_back(text); }
void run(Queue& queue, Index position) {
  while (queue.done < position) {
    const Work work = std::move(queue.work.front());
    queue.work.pop_front();
    if (work.other) run(*work.other, work.position);
    if (work.act) work.act();
    ++queue.done;
  }
}
CUstream_st* known(cudaStream_t stream) {
  State& s = state();
  if (stream == nullptr) {
    CUstream_st*& own = s.default_streams[current_device()];
    if (!own) own = CudaRuntime::make_stream(current_device());
    return own;
  }
  if (!s.streams.contains(stream)) return violation("a stream that is not there"), nullptr;
  return stream;
}
cudaError_t enqueue(cudaStream_t stream, std::function<void()> act) {
  CUstream_st* const there = known(stream);
  if (!there) return cudaErrorInvalidResourceHandle;
  if (there->capture) {
    there->capture->work.push_back(std::move(act));
    ++there->capture->count[there];
  } else {
    there->queue->work.push_back({std::move(act), {}, 0});
    ++there->queue->started;
  }
  return cudaSuccess;
}
void wait_for_device(int device) {
  State& s = state();
  bool waited = false;
  for (CUstream_st* stream : std::set(s.streams)) {
    if (device >= 0 && stream->device != device) continue;
    waited = waited || stream->queue->done < stream->queue->started;
    run(*stream->queue, stream->queue->started);
  }
  s.runtime.waits += waited;
}
const Block* block_of(const Blocks& blocks, const void* memory, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(memory);
  auto block = blocks.upper_bound(begin);
  if (block == blocks.begin()) return nullptr;
  --block;
  return begin + bytes <= block->first + block->second.bytes ? &block->second : nullptr;
}
bool refused_by_capture() {
  bool refused = false;
  if (capture_mode() == cudaStreamCaptureModeRelaxed) return false;
  for (CUstream_st* stream : state().streams) {
    if (!stream->capture) continue;
    Capture& capture = *stream->capture;
    const bool own = capture.thread == std::this_thread::get_id(), for_all = capture.mode == cudaStreamCaptureModeGlobal;
    if (own ? capture.mode != cudaStreamCaptureModeRelaxed : for_all && capture_mode() == cudaStreamCaptureModeGlobal)
      capture.invalid = refused = true;
  }
  return refused;
}
}   // namespace lrcnn::testing::pretended
using namespace lrcnn::testing::pretended;
namespace {
bool there_is(int device) { return device >= 0 && device < state().runtime.devices; }
}   // namespace
extern "C" {
cudaError_t cudaGetLastError() { return std::exchange(last_error(), cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error(); }
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorDevicesUnavailable: return "cudaErrorDevicesUnavailable";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    default: return "cudaErrorPretended";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    default: return "pretended words";
  }
}
cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&] {
    *count = state().runtime.devices;
    return state().runtime.no_devices;
  });
}
cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] { return *device = current_device(), cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
  return last_call("cudaSetDevice", [&] {   // makes it current, and may fail when it opens it
    if (!there_is(device)) return cudaErrorInvalidDevice;
    current_device() = device;
    return use_device(), cudaSuccess;
  });
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return call("cudaInitDevice", [&] {
    if (!there_is(device)) return cudaErrorInvalidDevice;
    state().runtime.contexts.insert(device);
    return cudaSuccess;
  });
}
cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&] { return *version = state().runtime.driver, cudaSuccess; });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&] {
    if (!there_is(device)) return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name, "pretended device");
    properties->major = state().runtime.capability / 10, properties->minor = state().runtime.capability % 10;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&] {
    if (!there_is(device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrComputeMode: *value = state().runtime.prohibited ? cudaComputeModeProhibited : cudaComputeModeDefault; break;
      case cudaDevAttrComputeCapabilityMajor: *value = state().runtime.capability / 10; break;
      case cudaDevAttrComputeCapabilityMinor: *value = state().runtime.capability % 10; break;
      case cudaDevAttrPageableMemoryAccess: *value = 0; break;
      case cudaDevAttrMultiProcessorCount: *value = 132; break;
      case cudaDevAttrMaxPitch: *value = 0x7fffffff; break;
      default: *value = 1;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&] {
    const lrcnn::Index all = state().runtime.capacity;
    *free = static_cast<std::size_t>(all - lrcnn::testing::CudaRuntime::device_bytes(current_device())), *total = static_cast<std::size_t>(all);
    return cudaSuccess;
  });
}
}
