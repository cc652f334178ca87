#pragma once
// A CUDA device: its memory, streams and events, convolutions, recordings. Only cuda_library.hpp includes this header, and adds the loops.
//
// Every call makes the device of the options current and leaves the caller's as it was. A call that fails returns CUDA's or cuDNN's words
// for it as a Status, and leaves no error behind in the runtime.
#include <lrcnn/backend/cudnn/cuda_device_memory.hpp>
#include <lrcnn/backend/cudnn/cuda_device_recording.hpp>
#include <lrcnn/backend/cudnn/cuda_device_staging.hpp>
#include <lrcnn/core/error.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>
namespace lrcnn::cudnn {
/// Interface: the Library<T> to be implemented. This class implements those functions of Device that start no loops.
template <class Interface>
class CudaDevice : public Interface {
 public:
  /// Errors:  BackendError if there is no device to use, a library is too old, or there is no memory for a stream, a handle and events
  explicit CudaDevice(const DeviceOptions& options) : options_(options), device_(options.device) {
    if (const std::string problem = problem_of_device(device_); !problem.empty())
      throw BackendError(error_text(problem, "the cuDNN backend runs on one CUDA device",
                                    "choose another device, install a newer driver or cuDNN, or use a CPU backend"));
    Status status;
    if (device_ < 0) status = status_of(cudaGetDevice(&device_));
    if (status.good()) status = call([&] { return open(); });
    if (!status.good()) {
      close();
      throw opening_failed(status);
    }
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override { close(); }
  Status info(DeviceInfo& info) override {
    return call([&] {
      cudaDeviceProp properties;
      if (const Status s = status_of(cudaGetDeviceProperties(&properties, device_)); !s.good()) return s;
      std::size_t free = 0, total = 0;
      if (const Status s = status_of(cudaMemGetInfo(&free, &total)); !s.good()) return s;
      info = {properties.name,           10 * properties.major + properties.minor, static_cast<Index>(free),
              static_cast<Index>(total), static_cast<Index>(cudnnGetVersion()),    options_.ahead_bytes};
      return Status{};
    });
  }

  // ---- memory ------------------------------------------------------------------------------------------------------
  Status allocate(void*& memory, Index bytes) override {
    return call([&] {
      Status status = take(memory, bytes);
      for (SendingWay* const way : {&batches_way_, &labels_way_})   // what is wanted comes before what is faster
        if (!status.good() && way->landing.give_up()) status = take(memory, bytes);
      return status;
    });
  }
  void release(void* memory) noexcept override {
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    static_cast<void>(synchronize());
    if (options_.allocate) options_.release(memory, options_.context);
    else ignored(cudaFree(memory));
  }
  Status staging(void*& memory, Index bytes) override {
    return call([&] {
      const Status s = may_send("rows of a batch");
      return s.good() ? batches_way_.pinned.take(memory, bytes) : s;
    });
  }
  Status write(void* to, const void* from, Index bytes) override { return copy(to, from, bytes, cudaMemcpyHostToDevice); }
  Status read(void* to, const void* from, Index bytes) override { return copy(to, from, bytes, cudaMemcpyDeviceToHost); }
  Status host_access(HostAccess& access) override {
    return call([&] { return find_host_access(access, device_); });
  }
  Status share(HostMemory& memory, Index bytes) override {
    return call([&] { return share_host_memory(memory, bytes, device_); });
  }
  void unshare(const HostMemory& memory) noexcept override {
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    static_cast<void>(synchronize());
    unshare_host_memory(memory);
  }
  Status fill(void* memory, std::uint8_t byte, Index bytes) override {
    return call([&] { return status_of(cudaMemsetAsync(memory, byte, static_cast<std::size_t>(bytes), stream_)); });
  }
  Status wait() override {
    return call([&] { return synchronize(); });
  }

  // ---- streams -----------------------------------------------------------------------------------------------------
  Status select(Index stream) override {
    return call([&] {
      while (static_cast<Index>(streams_.size()) <= stream) {
        cudaStream_t made = nullptr;
        if (const Status s = status_of(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking)); !s.good()) return s;
        streams_.push_back(made);
      }
      stream_ = item(streams_, stream);
      return status_of(cudnnSetStream(handle_, stream_));
    });
  }
  Status fork(Index count) override {
    return call([&] {
      if (const Status s = select(0); !s.good()) return s;
      if (const Status s = record(begun_); !s.good()) return s;
      for (Index i = count - 1; i > 0; --i) {
        if (const Status s = select(i); !s.good()) return s;
        if (const Status s = status_of(cudaStreamWaitEvent(stream_, begun_, 0)); !s.good()) return s;
      }
      return select(0);
    });
  }
  Status join(Index count) override {
    return call([&] {
      Status first;
      for (Index i = 1; i < count; ++i) {   // all of them, also behind an error
        Status s = select(i);
        if (s.good()) s = record(ended_);
        if (s.good()) s = status_of(cudaStreamWaitEvent(streams_[0], ended_, 0));
        if (first.good()) first = s;
      }
      const Status back = select(0);
      return first.good() ? back : first;
    });
  }
  Status record_event(Index number) override {
    return call([&] {
      if (static_cast<Index>(events_.size()) <= number) events_.resize(static_cast<std::size_t>(number) + 1, nullptr);
      return record(item(events_, number));
    });
  }
  Status wait_for_event(Index number) override {
    return call([&] { return status_of(cudaStreamWaitEvent(stream_, item(events_, number), 0)); });
  }
  Status order_behind(void* stream) override {
    return call([&] { return order(static_cast<cudaStream_t>(stream), streams_[0]); });
  }
  Status order_before(void* stream) override {
    return call([&] { return order(streams_[0], static_cast<cudaStream_t>(stream)); });
  }

  // ---- convolutions and recordings ---------------------------------------------------------------------------------
  Status convolution(std::unique_ptr<Convolution>& made, const Problem& problem, Index workspace_bytes, const std::string& engine) override {
    return call([&] { return make_convolution(made, problem, handle_, workspace_bytes, engine); });
  }
  Status engines(std::vector<std::string>& names, const Problem& problem, Index workspace_bytes) override {
    return call([&] { return list_engines(names, problem, handle_, workspace_bytes); });
  }
  Status duration(double& seconds, int times, const std::function<Status()>& work) override {
    return call([&] {
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
      if (begin) ignored(cudaEventDestroy(begin));
      if (end) ignored(cudaEventDestroy(end));
      return status;
    });
  }
  Status find_program_capture(bool& captured) override {
    return call([&] { return find_capture(captured, stream_); });
  }
  Status begin_recording() override {
    return call([&] {
      const Status s = status_of(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
      recording_ = s.good();
      return s;
    });
  }
  Status end_recording(std::unique_ptr<Recording>& made) override {
    recording_ = false;
    const CurrentDevice current(device_);   // not call(), which does nothing if this fails: the capture has to end
    cudaGraph_t graph = nullptr;
    if (const Status s = status_of(cudaStreamEndCapture(stream_, &graph)); !s.good()) return s;
    cudaGraphExec_t ready = nullptr;
    const Status status = call([&] {
      const Status s = status_of(cudaGraphInstantiate(&ready, graph, 0));
      if (s.good()) made = std::make_unique<GraphRecording>(ready, stream_, device_);
      return s;
    });
    ignored(cudaGraphDestroy(graph));
    return status;
  }

 protected:
  /// Memory of the device, which grow() makes larger. The derived class releases it in its destructor.
  struct Piece {
    void* memory = nullptr;
    Index bytes = 0;
  };
  /// One call of the library, from one thread at a time, with the device current.
  template <class F>
  Status call(F f) {
    return one_thread_([&] {
      return on_device(device_, [&] {
        std::optional<BesideCaptures> beside;
        if (!recording_) beside.emplace();   // what the backend captures itself ends by what does not belong there
        return f();
      });
    });
  }
  /// Errors:  if the program captures the selected stream. `what`: "labels"
  Status may_send(const char* what) const { return recording_ ? Status{} : sending_fault(what, stream_); }
  /// Starts a copy of labels or keys through pinned memory; what is copied may be gone when this returns.
  Status send_staged(const char* what, void* to, const void* from, Index bytes) {
    return call([&] {
      if (const Status s = may_send(what); !s.good()) return s;
      void* host = nullptr;
      if (const Status s = labels_way_.pinned.take(host, bytes); !s.good()) return s;
      std::memcpy(host, from, static_cast<std::size_t>(bytes));
      return labels_way_.send(host, bytes, copies_, stream_, [&](const void* there, cudaMemcpyKind kind) {
        return status_of(cudaMemcpyAsync(to, there, static_cast<std::size_t>(bytes), kind, stream_));
      });
    });
  }
  /// Sends a batch's rows from staging() memory: use(there, kind) starts work on the selected stream that reads them, on the device
  /// (cudaMemcpyDeviceToDevice), where they have landed, or else in the host's memory (cudaMemcpyHostToDevice).
  template <class Use>
  Status send_batch(const void* from, Index bytes, Use use) {
    return call([&] {
      const Status s = may_send("rows of a batch");
      return s.good() ? batches_way_.send(from, bytes, copies_, stream_, use) : s;
    });
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
                                   "the backend needs a stream, a cuDNN handle and a little memory",
                                   "see whether another program has the device, or its memory, for itself, or choose another device"));
  }
  int device() const { return device_; }
  /// The one that is selected.
  cudaStream_t stream() const { return stream_; }

 private:
  Status open() {
    if ((options_.allocate == nullptr) != (options_.release == nullptr))
      return {std::string("DeviceOptions has ") + (options_.allocate ? "`allocate` and no `release`" : "`release` and no `allocate`") +
              "; give both, or neither"};
    stream_ = static_cast<cudaStream_t>(options_.stream);
    int of_stream = device_;
    if (stream_)
      if (const Status s = device_of(stream_, of_stream); !s.good()) return s;
    if (of_stream != device_)
      return {"the stream in DeviceOptions is one of CUDA device " + std::to_string(of_stream) + "; make it on device " + std::to_string(device_) +
              ", or set DeviceOptions::device to " + std::to_string(of_stream)};
    if (!stream_)
      if (const Status s = status_of(cudaStreamCreateWithFlags(&own_stream_, cudaStreamNonBlocking)); !s.good()) return s;
    if (!stream_) stream_ = own_stream_;
    streams_ = {stream_};
    if (const Status s = status_of(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking)); !s.good()) return s;
    auto* const theirs = static_cast<cudnnHandle_t>(options_.handle);
    if (const Status s = status_of(theirs ? cudnnGetStream(theirs, &stream_of_handle_) : cudnnCreate(&own_handle_)); !s.good()) return s;
    handle_ = theirs ? theirs : own_handle_;
    return status_of(cudnnSetStream(handle_, stream_));
  }
  /// What comes to the second stream from now on waits for what the first one has now. They may be of two devices.
  Status order(cudaStream_t first, cudaStream_t second) {
    int of_first = device_, of_second = device_;
    if (const Status s = device_of(first, of_first); !s.good()) return s;
    if (const Status s = device_of(second, of_second); !s.good()) return s;
    cudaEvent_t passed = nullptr;
    Status status = on_device(of_first, [&] {
      const Status s = status_of(cudaEventCreateWithFlags(&passed, cudaEventDisableTiming));
      return s.good() ? status_of(cudaEventRecord(passed, first)) : s;
    });
    if (status.good()) status = on_device(of_second, [&] { return status_of(cudaStreamWaitEvent(second, passed, 0)); });
    if (passed) ignored(cudaEventDestroy(passed));   // once it has passed
    return status;
  }
  /// Records an event on the selected stream; makes it if it is not there.
  Status record(cudaEvent_t& event) {
    if (!event)
      if (const Status s = status_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); !s.good()) return s;
    return status_of(cudaEventRecord(event, stream_));
  }
  Status take(void*& memory, Index bytes) {
    if (!options_.allocate) return status_of(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
    memory = options_.allocate(bytes, options_.context);
    return memory ? Status{} : Status{"the program's own allocator has none"};
  }
  /// Waits for all streams; returns the first error.
  Status synchronize() noexcept {
    Status status = copies_ ? status_of(cudaStreamSynchronize(copies_)) : Status{};
    for (const cudaStream_t stream : streams_)
      if (const Status s = status_of(cudaStreamSynchronize(stream)); status.good()) status = s;
    return status;
  }
  Status copy(void* to, const void* from, Index bytes, cudaMemcpyKind kind) {
    return call([&] {
      if (const Status s = status_of(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream_)); !s.good()) return s;
      return status_of(cudaStreamSynchronize(stream_));
    });
  }
  void close() noexcept {
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    static_cast<void>(synchronize());
    for (SendingWay* const way : {&batches_way_, &labels_way_}) way->landing.give_up(), way->pinned.close();
    events_.insert(events_.end(), {begun_, ended_});
    for (const cudaEvent_t event : events_)
      if (event) ignored(cudaEventDestroy(event));
    if (own_handle_) ignored(cudnnDestroy(own_handle_));   // before the stream that it has now is destroyed
    else if (handle_) ignored(cudnnSetStream(handle_, stream_of_handle_));
    for (std::size_t i = 1; i < streams_.size(); ++i) ignored(cudaStreamDestroy(streams_[i]));
    for (const cudaStream_t stream : {copies_, own_stream_})
      if (stream) ignored(cudaStreamDestroy(stream));
  }
  Landing landing_of(Index bytes) {
    return Landing(
        bytes, [this](void*& memory, Index size) { return take(memory, size); }, [this](void* memory) { release(memory); });
  }
  DeviceOptions options_;
  int device_ = -1;
  cudaStream_t stream_ = nullptr, own_stream_ = nullptr;   ///< selected; made here
  cudaStream_t copies_ = nullptr;                          ///< of batches, labels and keys from the host to the device, before their steps
  std::vector<cudaStream_t> streams_{};                    ///< the first is the program's, or made here
  std::vector<cudaEvent_t> events_{};
  cudaEvent_t begun_ = nullptr, ended_ = nullptr;
  cudnnHandle_t handle_ = nullptr, own_handle_ = nullptr;
  cudaStream_t stream_of_handle_ = nullptr;   ///< that a program's handle came with
  /// Labels and keys have a way of their own, so that none waits behind the rows of later batches: a quarter of the pinned memory.
  SendingWay batches_way_{PinnedPieces(options_.pinned_bytes - options_.pinned_bytes / 4), landing_of(options_.ahead_bytes)};
  SendingWay labels_way_{PinnedPieces(options_.pinned_bytes / 4), landing_of(options_.ahead_bytes / 4)};
  bool recording_ = false;
  OneThread one_thread_{};
};
}   // namespace lrcnn::cudnn
