#pragma once
// What the parts of the pretended CUDA runtime share: streams as queues, captures, memory, the thread's last error.
#include "cuda_runtime/runtime.hpp"
#include <cudnn.h>
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
namespace lrcnn::testing::pretended {
struct Queue;
/// A thing to be done, or another stream to be waited for.
struct Work {
  std::function<void()> act{};
  std::shared_ptr<Queue> other{};
  Index position = 0;   ///< of the other one
};
struct Queue {
  std::deque<Work> work{};
  Index started = 0, done = 0;
};
/// Work of some streams that is written down. Of each: how much there is, and how much of it another stream has waited for.
struct Capture {
  CUstream_st* origin = nullptr;
  std::thread::id thread{};
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool invalid = false;
  std::vector<std::function<void()>> work{};
  std::map<CUstream_st*, Index> count{}, joined{};
};
struct Block {
  Index bytes = 0;
  int device = 0;
};
using Blocks = std::map<const std::byte*, Block>;
struct State {
  CudaRuntime runtime{};
  std::recursive_mutex mutex{};
  std::set<CUstream_st*> streams{};
  std::set<CUevent_st*> events{};
  std::set<CUgraph_st*> graphs{};
  std::set<CUgraphExec_st*> executables{};
  std::set<cudnnContext*> handles{};
  Blocks device{}, pinned{};   ///< managed memory is in both
  std::map<int, CUstream_st*> default_streams{};
};
State& state();
cudaError_t& last_error();
/// That of the context put above others last; without one that of cudaSetDevice().
int& current_device();
/// Devices of the contexts that this thread has put above others.
std::vector<int>& contexts_above();
/// This thread's, as cudaThreadExchangeStreamCaptureMode() has it.
cudaStreamCaptureMode& capture_mode();
/// A context is made on the current device, if there is none.
void use_device();
/// Whether a call does that: all of the runtime's that need a device, also those that end a capture or give a graph back, as the code of libcudart 13
/// has it; not those that ask about devices or choose one, nor the driver's and cuDNN's.
inline bool makes_context(std::string_view name) {
  constexpr std::array<std::string_view, 8> others{"cudaGetDeviceCount",     "cudaGetDevice",        "cudaSetDevice",
                                                   "cudaInitDevice",         "cudaDriverGetVersion", "cudaGetDeviceProperties",
                                                   "cudaDeviceGetAttribute", "cudaStreamGetDevice"};
  return name.starts_with("cuda") && std::find(others.begin(), others.end(), name) == others.end();
}
void violation(const std::string& text);
/// Does the work of a queue up to a position.
void run(Queue& queue, Index position);
/// The stream, or the current device's default one; null if it is not there.
CUstream_st* known(cudaStream_t stream);
/// Puts work into a stream, or into the capture that the stream is part of.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> act);
/// Waits for all streams of a device; for all devices if it is negative.
void wait_for_device(int device);
/// The block in which a piece of memory lies; null if there is none.
const Block* block_of(const Blocks& blocks, const void* memory, std::size_t bytes);
/// Whether some calls are not allowed, because this thread captures, or another one for which nobody may make them; ends these captures.
bool refused_by_capture();
inline cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}
/// A call that may be made to fail.
template <class F>
cudaError_t call(const char* name, F f) {
  const std::lock_guard lock(state().mutex);
  CudaRuntime& runtime = state().runtime;
  if (makes_context(name)) use_device();
  if (runtime.calls++ == runtime.fail_at) return runtime.failed = name, noted(runtime.failure);
  return noted(f());
}
/// A call that is not allowed within a capture.
template <class F>
cudaError_t unsafe_call(const char* name, F f) {
  return call(name, [&] { return refused_by_capture() ? cudaErrorStreamCaptureUnsupported : f(); });
}
/// A call that gives something back: if it is made to fail, it has done so all the same, and tells of something earlier.
template <class F>
cudaError_t last_call(const char* name, F f) {
  const std::lock_guard lock(state().mutex);
  CudaRuntime& runtime = state().runtime;
  if (makes_context(name)) use_device();
  const bool fails = runtime.calls++ == runtime.fail_at;
  if (fails) runtime.failed = name;
  const cudaError_t error = f();
  return noted(fails ? runtime.failure : error);
}
}   // namespace lrcnn::testing::pretended
struct CUstream_st {
  int device = 0;
  std::shared_ptr<lrcnn::testing::pretended::Queue> queue = std::make_shared<lrcnn::testing::pretended::Queue>();
  std::shared_ptr<lrcnn::testing::pretended::Capture> capture{};
};
struct CUevent_st {
  int device = 0;
  std::shared_ptr<lrcnn::testing::pretended::Queue> queue{};   ///< that it was recorded in; null: never
  lrcnn::Index position = 0;
  std::shared_ptr<lrcnn::testing::pretended::Capture> capture{};   ///< within which it was recorded
  CUstream_st* stream = nullptr;                                   ///< likewise
};
struct CUgraph_st {
  std::vector<std::function<void()>> work{};
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<std::function<void()>>> work{};
};
struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};
