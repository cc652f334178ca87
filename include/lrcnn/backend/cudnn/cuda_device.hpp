#pragma once
// A CUDA device: its memory, streams and events, convolutions, recordings. Only library.cu includes this header, and adds the loops.
//
// Every call makes the device of the options current and leaves the caller's as it was. A call that fails returns CUDA's or cuDNN's words
// for it as a Status.
#include <lrcnn/backend/cudnn/cuda_device_memory.hpp>
#include <lrcnn/core/error.hpp>
#include <cudnn.h>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>
namespace lrcnn::cudnn {
inline Status status_of(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return {cudnnGetErrorString(status)};
}
/// Why a device cannot be used; empty if it can. `device`: CUDA ordinal; -1: the current one.
inline std::string problem_of_device(int device) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return "no CUDA device can be used (" + status_of(error).text + ")";
  if (count == 0) return "there is no CUDA device";
  if (device >= count) return "CUDA device " + std::to_string(device) + " is asked for, and there are " + std::to_string(count);
  if (device < 0 && cudaGetDevice(&device) != cudaSuccess) return "the current CUDA device is not known";
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) return status_of(error).text;
  return fault_of(DeviceInfo{properties.name, 10 * properties.major + properties.minor, 0, 0, static_cast<Index>(cudnnGetVersion())});
}
/// A CUDA graph made by capturing a stream.
class GraphRecording final : public Recording {
 public:
  GraphRecording(cudaGraphExec_t graph, cudaStream_t stream, int device) : graph_(graph), stream_(stream), device_(device) {}
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;
  ~GraphRecording() override {
    const CurrentDevice current(device_);
    cudaGraphExecDestroy(graph_);   // after its last launch has ended
  }
  Status start() override {
    const CurrentDevice current(device_);
    return status_of(cudaGraphLaunch(graph_, stream_));
  }

 private:
  cudaGraphExec_t graph_;
  cudaStream_t stream_;
  int device_;
};
/// Interface: the Library<T> to be implemented. This class implements those functions of Device that start no loops.
template <class Interface>
class CudaDevice : public Interface {
 public:
  /// Errors:  BackendError if there is no device to use, a library is too old, or there is no memory for a stream, a handle and events
  explicit CudaDevice(const DeviceOptions& options) : options_(options), device_(options.device) {
    if (const std::string problem = problem_of_device(device_); !problem.empty())
      throw BackendError(error_text(problem, "the cuDNN backend runs on one CUDA device",
                                    "choose another device, install a newer driver or cuDNN, or use a CPU backend"));
    if (device_ < 0) cudaGetDevice(&device_);
    const CurrentDevice current(device_);
    stream_ = static_cast<cudaStream_t>(options.stream);
    handle_ = static_cast<cudnnHandle_t>(options.handle);
    Status status;
    if (!stream_ && status.good()) status = status_of(cudaStreamCreateWithFlags(&own_stream_, cudaStreamNonBlocking));
    if (!stream_) stream_ = own_stream_;
    if (!handle_ && status.good()) status = status_of(cudnnCreate(&own_handle_));
    if (!handle_) handle_ = own_handle_;
    if (status.good()) status = status_of(cudnnSetStream(handle_, stream_));
    streams_ = {stream_};
    for (Staging& piece : staging_)
      if (status.good()) status = status_of(cudaEventCreateWithFlags(&piece.gone, cudaEventDisableTiming));
    if (!status.good()) {
      close();
      throw opening_failed(status);
    }
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override { close(); }
  Status info(DeviceInfo& info) override {
    const CurrentDevice current(device_);
    cudaDeviceProp properties;
    if (const Status s = status_of(cudaGetDeviceProperties(&properties, device_)); !s.good()) return s;
    std::size_t free = 0, total = 0;
    if (const Status s = status_of(cudaMemGetInfo(&free, &total)); !s.good()) return s;
    info = {properties.name, 10 * properties.major + properties.minor, static_cast<Index>(free), static_cast<Index>(total),
            static_cast<Index>(cudnnGetVersion())};
    return {};
  }

  // ---- memory ------------------------------------------------------------------------------------------------------
  Status allocate(void*& memory, Index bytes) override {
    const CurrentDevice current(device_);
    if (!options_.allocate) return status_of(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
    memory = options_.allocate(bytes, options_.context);
    return memory ? Status{} : Status{"the program's own allocator has none"};
  }
  void release(void* memory) noexcept override {
    const CurrentDevice current(device_);
    for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    if (options_.allocate) options_.release(memory, options_.context);
    else cudaFree(memory);
  }
  Status staging(void*& memory, Index bytes) override {
    const CurrentDevice current(device_);
    next_ = (next_ + 1) % staging_.size();
    Staging& piece = staging_[next_];
    if (const Status s = status_of(cudaEventSynchronize(piece.gone)); !s.good()) return s;
    if (piece.bytes < bytes) {
      cudaFreeHost(piece.memory);
      piece.memory = nullptr;
      piece.bytes = 0;
      if (const Status s = status_of(cudaMallocHost(&piece.memory, static_cast<std::size_t>(bytes))); !s.good()) return s;
      piece.bytes = bytes;
    }
    memory = piece.memory;
    return {};
  }
  Status send(void* to, Index to_pitch, const void* from, Index from_pitch, Index bytes, Index rows) override {
    const CurrentDevice current(device_);
    const Status sent =
        status_of(cudaMemcpy2DAsync(to, static_cast<std::size_t>(to_pitch), from, static_cast<std::size_t>(from_pitch),
                                    static_cast<std::size_t>(bytes), static_cast<std::size_t>(rows), cudaMemcpyHostToDevice, stream_));
    for (Staging& piece : staging_)
      if (piece.memory == from && sent.good()) return status_of(cudaEventRecord(piece.gone, stream_));
    return sent;
  }
  Status write(void* to, const void* from, Index bytes) override { return copy(to, from, bytes, cudaMemcpyHostToDevice); }
  Status read(void* to, const void* from, Index bytes) override { return copy(to, from, bytes, cudaMemcpyDeviceToHost); }
  Status host_access(HostAccess& access) override {
    const CurrentDevice current(device_);
    return find_host_access(access, device_);
  }
  Status share(HostMemory& memory, Index bytes) override {
    const CurrentDevice current(device_);
    return share_host_memory(memory, bytes, device_);
  }
  void unshare(const HostMemory& memory) noexcept override {
    const CurrentDevice current(device_);
    for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    unshare_host_memory(memory);
  }
  Status fill(void* memory, std::uint8_t byte, Index bytes) override {
    const CurrentDevice current(device_);
    return status_of(cudaMemsetAsync(memory, byte, static_cast<std::size_t>(bytes), stream_));
  }
  Status wait() override {
    const CurrentDevice current(device_);
    Status status;
    for (const cudaStream_t stream : streams_)
      if (const Status s = status_of(cudaStreamSynchronize(stream)); status.good()) status = s;
    return status;
  }

  // ---- streams -----------------------------------------------------------------------------------------------------
  Status select(Index stream) override {
    const CurrentDevice current(device_);
    while (static_cast<Index>(streams_.size()) <= stream) {
      cudaStream_t made = nullptr;
      if (const Status s = status_of(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking)); !s.good()) return s;
      streams_.push_back(made);
    }
    stream_ = item(streams_, stream);
    return status_of(cudnnSetStream(handle_, stream_));
  }
  Status fork(Index count) override {
    if (const Status s = select(0); !s.good()) return s;
    if (const Status s = record(begun_); !s.good()) return s;
    for (Index i = count - 1; i > 0; --i) {
      if (const Status s = select(i); !s.good()) return s;
      if (const Status s = status_of(cudaStreamWaitEvent(stream_, begun_, 0)); !s.good()) return s;
    }
    return select(0);
  }
  Status join(Index count) override {
    for (Index i = 1; i < count; ++i) {
      if (const Status s = select(i); !s.good()) return s;
      if (const Status s = record(ended_); !s.good()) return s;
      if (const Status s = status_of(cudaStreamWaitEvent(streams_[0], ended_, 0)); !s.good()) return s;
    }
    return select(0);
  }
  Status record_event(Index number) override {
    if (static_cast<Index>(events_.size()) <= number) events_.resize(static_cast<std::size_t>(number) + 1, nullptr);
    return record(item(events_, number));
  }
  Status wait_for_event(Index number) override {
    const CurrentDevice current(device_);
    return status_of(cudaStreamWaitEvent(stream_, item(events_, number), 0));
  }

  // ---- convolutions and recordings ---------------------------------------------------------------------------------
  Status convolution(std::unique_ptr<Convolution>& made, const Problem& problem, Index workspace_bytes, const std::string& engine) override {
    const CurrentDevice current(device_);
    return make_convolution(made, problem, handle_, workspace_bytes, engine);
  }
  Status engines(std::vector<std::string>& names, const Problem& problem, Index workspace_bytes) override {
    const CurrentDevice current(device_);
    return list_engines(names, problem, handle_, workspace_bytes);
  }
  Status duration(double& seconds, int times, const std::function<Status()>& work) override {
    const CurrentDevice current(device_);
    cudaEvent_t begin = nullptr, end = nullptr;
    Status status = status_of(cudaEventCreate(&begin));
    if (status.good()) status = status_of(cudaEventCreate(&end));
    if (status.good()) status = status_of(cudaEventRecord(begin, stream_));
    for (int i = 0; i < times && status.good(); ++i) status = work();
    if (status.good()) status = status_of(cudaEventRecord(end, stream_));
    if (status.good()) status = status_of(cudaEventSynchronize(end));
    float milliseconds = 0;
    if (status.good()) status = status_of(cudaEventElapsedTime(&milliseconds, begin, end));
    seconds = static_cast<double>(milliseconds) / 1000 / times;
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
    return status;
  }
  Status begin_recording() override {
    const CurrentDevice current(device_);
    return status_of(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  }
  Status end_recording(std::unique_ptr<Recording>& made) override {
    const CurrentDevice current(device_);
    cudaGraph_t graph = nullptr;
    if (const Status s = status_of(cudaStreamEndCapture(stream_, &graph)); !s.good()) return s;
    cudaGraphExec_t ready = nullptr;
    const Status s = status_of(cudaGraphInstantiate(&ready, graph, 0));
    cudaGraphDestroy(graph);
    if (s.good()) made = std::make_unique<GraphRecording>(ready, stream_, device_);
    return s;
  }

 protected:
  /// Memory of the device, which grow() makes larger. The derived class releases it in its destructor.
  struct Piece {
    void* memory = nullptr;
    Index bytes = 0;
  };
  /// Starts a copy through pinned memory; what is copied may be gone when this returns.
  Status send_staged(void* to, const void* from, Index bytes) {
    void* host = nullptr;
    if (const Status s = staging(host, bytes); !s.good()) return s;
    std::memcpy(host, from, static_cast<std::size_t>(bytes));
    return send(to, bytes, host, bytes, bytes, 1);
  }
  /// Post:    the piece has at least so many bytes; what it held is lost if it had fewer
  Status grow(Piece& piece, Index bytes) {
    if (piece.bytes >= bytes) return {};
    if (piece.memory) release(piece.memory);
    piece = {};
    const Status s = allocate(piece.memory, bytes);
    if (s.good()) piece.bytes = bytes;
    return s;
  }
  BackendError opening_failed(const Status& status) const {
    return BackendError(error_text("opening CUDA device " + std::to_string(device_) + " failed: " + status.text,
                                   "the backend needs a stream, a cuDNN handle and a little memory", "see whether the device is free"));
  }
  int device() const { return device_; }
  /// The one that is selected.
  cudaStream_t stream() const { return stream_; }

 private:
  struct Staging {
    void* memory = nullptr;
    Index bytes = 0;
    cudaEvent_t gone = nullptr;   ///< recorded behind the last copy from it
  };
  /// Records an event on the selected stream; makes it if it is not there.
  Status record(cudaEvent_t& event) {
    const CurrentDevice current(device_);
    if (!event)
      if (const Status s = status_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); !s.good()) return s;
    return status_of(cudaEventRecord(event, stream_));
  }
  Status copy(void* to, const void* from, Index bytes, cudaMemcpyKind kind) {
    const CurrentDevice current(device_);
    if (const Status s = status_of(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream_)); !s.good()) return s;
    return status_of(cudaStreamSynchronize(stream_));
  }
  void close() noexcept {
    const CurrentDevice current(device_);
    for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    for (Staging& piece : staging_) {
      if (piece.memory) cudaFreeHost(piece.memory);
      if (piece.gone) cudaEventDestroy(piece.gone);
    }
    for (const cudaEvent_t event : events_)
      if (event) cudaEventDestroy(event);
    for (const cudaEvent_t event : {begun_, ended_})
      if (event) cudaEventDestroy(event);
    for (std::size_t i = 1; i < streams_.size(); ++i) cudaStreamDestroy(streams_[i]);
    if (own_handle_) cudnnDestroy(own_handle_);
    if (own_stream_) cudaStreamDestroy(own_stream_);
  }
  DeviceOptions options_;
  int device_ = -1;
  cudaStream_t stream_ = nullptr, own_stream_ = nullptr;   ///< selected; made here
  std::vector<cudaStream_t> streams_{};                    ///< the first is the program's, or made here
  std::vector<cudaEvent_t> events_{};
  cudaEvent_t begun_ = nullptr, ended_ = nullptr;
  cudnnHandle_t handle_ = nullptr, own_handle_ = nullptr;
  std::array<Staging, 2> staging_{};
  std::size_t next_ = 0;
};
}   // namespace lrcnn::cudnn
