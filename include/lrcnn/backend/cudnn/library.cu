// The thin call layer for CUDA: the one file of the library that nvcc compiles, once for a project (lrcnn::cudnn).
// Convolutions come from graphs.cpp.
#include <lrcnn/backend/cudnn/library.hpp>
#include <lrcnn/backend/cudnn/loops.hpp>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <thrust/execution_policy.h>
#include <array>
#include <cstring>
#include <vector>
namespace lrcnn::cudnn {
namespace {
Status status_of(cudaError_t error) {
  if (error == cudaSuccess) return {};
  return {std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error)};
}
Status status_of(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return {cudnnGetErrorString(status)};
}
std::string problem_of_device(int device) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
    return "no CUDA device can be used (" + status_of(error).text + ")";
  if (count == 0) return "there is no CUDA device";
  if (device >= count) return "CUDA device " + std::to_string(device) + " is asked for, and there are " + std::to_string(count);
  if (device < 0 && cudaGetDevice(&device) != cudaSuccess) return "the current CUDA device is not known";
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) return status_of(error).text;
  return fault_of(DeviceInfo{properties.name, 10 * properties.major + properties.minor, 0, 0, static_cast<Index>(cudnnGetVersion())});
}
/// Makes a device current while it lives, as a library must leave the caller's.
class Current {
 public:
  explicit Current(int device) {
    if (cudaGetDevice(&before_) != cudaSuccess || before_ == device) before_ = -1;
    else cudaSetDevice(device);
  }
  ~Current() {
    if (before_ >= 0) cudaSetDevice(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = -1;
};
/// A CUDA graph made by capturing a stream.
class GraphRecording final : public Recording {
 public:
  GraphRecording(cudaGraphExec_t graph, cudaStream_t stream, int device) : graph_(graph), stream_(stream), device_(device) {}
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;
  ~GraphRecording() override {
    const Current current(device_);
    cudaGraphExecDestroy(graph_);   // after its last launch has ended
  }
  Status start() override {
    const Current current(device_);
    return status_of(cudaGraphLaunch(graph_, stream_));
  }

 private:
  cudaGraphExec_t graph_;
  cudaStream_t stream_;
  int device_;
};
template <class T>
class CudaLibrary final : public Library<T> {
 public:
  explicit CudaLibrary(const DeviceOptions& options) : options_(options), device_(options.device) {
    if (const std::string problem = problem_of_device(device_); !problem.empty())
      throw BackendError(error_text(problem, "the cuDNN backend runs on one CUDA device",
                                    "choose another device, install a newer driver or cuDNN, or use a CPU backend"));
    if (device_ < 0) cudaGetDevice(&device_);
    const Current current(device_);
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
    void* sums = nullptr;
    if (status.good()) status = allocate(sums, sizeof(loops::LossSums));
    sums_ = static_cast<loops::LossSums*>(sums);
    if (status.good()) status = started([&](const auto& exec) { loops::reset_sums(exec, sums_); });
    void* key = nullptr;
    if (status.good()) status = allocate(key, sizeof(RunKey));
    key_ = static_cast<RunKey*>(key);
    if (status.good()) status = set_run_key(RunKey{});
    if (!status.good()) {
      close();
      throw BackendError(error_text("opening CUDA device " + std::to_string(device_) + " failed: " + status.text,
                                    "the backend needs a stream, a cuDNN handle and a little memory", "see whether the device is free"));
    }
  }
  CudaLibrary(const CudaLibrary&) = delete;
  CudaLibrary& operator=(const CudaLibrary&) = delete;
  ~CudaLibrary() override { close(); }
  Status info(DeviceInfo& info) override {
    const Current current(device_);
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
    const Current current(device_);
    if (!options_.allocate) return status_of(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
    memory = options_.allocate(bytes, options_.context);
    return memory ? Status{} : Status{"the program's own allocator has none"};
  }
  void release(void* memory) noexcept override {
    const Current current(device_);
    for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    if (options_.allocate) options_.release(memory, options_.context);
    else cudaFree(memory);
  }
  Status staging(void*& memory, Index bytes) override {
    const Current current(device_);
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
    const Current current(device_);
    const auto size = [](Index v) { return static_cast<std::size_t>(v); };
    const Status sent = status_of(cudaMemcpy2DAsync(to, size(to_pitch), from, size(from_pitch), size(bytes), size(rows),
                                                    cudaMemcpyHostToDevice, stream_));
    for (Staging& piece : staging_)
      if (piece.memory == from && sent.good()) return status_of(cudaEventRecord(piece.gone, stream_));
    return sent;
  }
  Status write(void* to, const void* from, Index bytes) override { return copy(to, from, bytes, cudaMemcpyHostToDevice); }
  Status read(void* to, const void* from, Index bytes) override { return copy(to, from, bytes, cudaMemcpyDeviceToHost); }
  Status fill(void* memory, std::uint8_t byte, Index bytes) override {
    const Current current(device_);
    return status_of(cudaMemsetAsync(memory, byte, static_cast<std::size_t>(bytes), stream_));
  }
  Status wait() override {
    const Current current(device_);
    Status status;
    for (const cudaStream_t stream : streams_)
      if (const Status s = status_of(cudaStreamSynchronize(stream)); status.good()) status = s;
    return status;
  }

  // ---- streams -----------------------------------------------------------------------------------------------------
  Status select(Index stream) override {
    const Current current(device_);
    while (static_cast<Index>(streams_.size()) <= stream) {
      cudaStream_t made = nullptr;
      if (const Status s = status_of(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking)); !s.good()) return s;
      streams_.push_back(made);
    }
    stream_ = streams_[static_cast<std::size_t>(stream)];
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
    return record(events_[static_cast<std::size_t>(number)]);
  }
  Status wait_for_event(Index number) override {
    const Current current(device_);
    return status_of(cudaStreamWaitEvent(stream_, events_[static_cast<std::size_t>(number)], 0));
  }

  // ---- work --------------------------------------------------------------------------------------------------------
  Status convolution(std::unique_ptr<Convolution>& made, const Problem& problem, Index workspace_bytes, const std::string& engine) override {
    const Current current(device_);
    return make_convolution(made, problem, handle_, workspace_bytes, engine);
  }
  Status engines(std::vector<std::string>& names, const Problem& problem, Index workspace_bytes) override {
    const Current current(device_);
    return list_engines(names, problem, handle_, workspace_bytes);
  }
  Status duration(double& seconds, int times, const std::function<Status()>& work) override {
    const Current current(device_);
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
  Status convert(const View<const float>& from, const View<T>& to) override {
    return started([&](const auto& exec) { loops::convert_rows(exec, from, to); });
  }
  Status run(const Operands<T>& o) override {
    Operands<T> there = o;
    if (o.run) there.run = key_;
    return started([&](const auto& exec) { loops::run(exec, there); });
  }
  Index workspace_bytes(const Operands<T>& o) const override { return loops::workspace_bytes(o); }
  Status activate(const View<const T>& x, const float* bias, const Activation* f, const View<T>& y, const View<std::uint8_t>& saved) override {
    return started([&](const auto& exec) { loops::activate<std::remove_cvref_t<decltype(exec)>, T>(exec, x, bias, f, y, saved); });
  }
  Index bias_gradient_bytes(const View<const T>& dy) const override { return loops::bias_gradient_bytes<T>(dy.n, dy.c, dy.rows, dy.w); }
  Status bias_gradient(const View<const T>& dy, float* db, bool accumulate, std::byte* workspace) override {
    return started([&](const auto& exec) { loops::bias_gradient(exec, dy, db, accumulate, workspace); });
  }
  Status pack_filter(const float* canonical, T* packed, const Node& node) override {
    return started([&](const auto& exec) { loops::pack_filter(exec, loops::filter_extents(node), canonical, packed); });
  }
  Status unpack_filter(const T* packed, float* canonical, const Node& node, bool accumulate) override {
    return started([&](const auto& exec) { loops::unpack_filter(exec, loops::filter_extents(node), packed, canonical, accumulate); });
  }
  Status begin_recording() override {
    const Current current(device_);
    return status_of(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  }
  Status end_recording(std::unique_ptr<Recording>& made) override {
    const Current current(device_);
    cudaGraph_t graph = nullptr;
    if (const Status s = status_of(cudaStreamEndCapture(stream_, &graph)); !s.good()) {
      cudaGetLastError();   // said here; not to be found again by the next call
      return s;
    }
    cudaGraphExec_t ready = nullptr;
    const Status s = status_of(cudaGraphInstantiate(&ready, graph, 0));
    cudaGraphDestroy(graph);
    if (s.good()) made = std::make_unique<GraphRecording>(ready, stream_, device_);
    return s;
  }
  Status labels(const Labels& labels) override {
    if (labels.on_device()) {
      device_labels_ = labels.data();
      return {};
    }
    const Index bytes = labels.elements() * Index{sizeof(std::int32_t)};
    if (const Status s = grow(labels_, bytes); !s.good()) return s;
    device_labels_ = static_cast<const std::int32_t*>(labels_.memory);
    const bool targets = labels.kind() == LabelKind::targets;
    pixel_labels_ = {targets ? nullptr : device_labels_, targets ? static_cast<const float*>(labels_.memory) : nullptr, labels.channels(),
                     labels.height(), labels.width()};
    return send_staged(labels_.memory, targets ? static_cast<const void*>(labels.values(0, 0, 0)) : labels.data(), bytes);
  }
  Status set_run_key(const RunKey& key) override { return send_staged(key_, &key, sizeof(RunKey)); }
  Status cross_entropy(const View<const T>& logits, Index first, const View<T>& dx, double scale) override {
    if (const Status s = grow(scratch_, loops::loss_bytes(logits.n, logits.c)); !s.good()) return s;
    return started([&](const auto& exec) {
      loops::softmax_cross_entropy(exec, logits, device_labels_ + first, dx, scale, sums_, static_cast<std::byte*>(scratch_.memory));
    });
  }
  Status pixel_loss(const DeviceLoss& loss, const View<const T>& logits, Index first, const View<T>& dx, double scale,
                    bool counts) override {
    if (const Status s = grow(scratch_, loops::pixel_loss_bytes); !s.good()) return s;
    return started([&](const auto& exec) {
      auto* workspace = static_cast<std::byte*>(scratch_.memory);
      loops::pixel_loss(exec, loss, logits, pixel_labels_, first, dx, scale, counts ? sums_ : nullptr, workspace);
    });
  }
  Status fetch(Sums& sums) override {
    loops::LossSums read_sums;
    if (const Status s = read(&read_sums, sums_, sizeof(loops::LossSums)); !s.good()) return s;
    sums = {loops::result_of(read_sums), loops::whole_images(read_sums), read_sums.invalid_labels};
    return started([&](const auto& exec) { loops::reset_sums(exec, sums_); });
  }
  Status finite(const View<const T>& view, bool& result) override {
    return verdict(result, [&](const auto& exec, int* flag) { loops::all_finite(exec, view, flag); });
  }
  Status all_finite(const float* elements, Index count, bool& result) override {
    return verdict(result, [&](const auto& exec, int* flag) { loops::all_finite(exec, elements, count, flag); });
  }
  Status sum_of_squares(const float* elements, Index count, double& result) override {
    if (const Status s = grow(scratch_, loops::squares_bytes); !s.good()) return s;
    auto* sums = static_cast<double*>(scratch_.memory);
    if (const Status s = started([&](const auto& exec) { loops::sum_of_squares(exec, elements, count, sums); }); !s.good()) return s;
    return read(&result, sums, sizeof(double));
  }
  Status update(const SgdUpdate<float>& f, float* w, const float* g, Index count) override {
    return update_all(f, w, g, nullptr, nullptr, count);
  }
  Status update(const MomentumUpdate<float>& f, float* w, const float* g, float* v, Index count) override {
    return update_all(f, w, g, v, nullptr, count);
  }
  Status update(const AdamWUpdate<float>& f, float* w, const float* g, float* m, float* v, Index count) override {
    return update_all(f, w, g, m, v, count);
  }

 private:
  struct Staging {
    void* memory = nullptr;
    Index bytes = 0;
    cudaEvent_t gone = nullptr;   ///< recorded behind the last copy from it
  };
  struct Piece {
    void* memory = nullptr;
    Index bytes = 0;
  };
  /// Starts loops on the stream.
  template <class F>
  Status started(F f) {
    const Current current(device_);
    f(thrust::cuda::par_nosync.on(stream_));
    return status_of(cudaPeekAtLastError());
  }
  template <class Update>
  Status update_all(const Update& f, float* w, const float* g, float* s0, float* s1, Index count) {
    return started([&](const auto& exec) { loops::update_elements(exec, f, w, g, s0, s1, count, &sums_->finite); });
  }
  /// Starts loops that clear a flag, and waits for it.
  template <class F>
  Status verdict(bool& result, F f) {
    if (const Status s = grow(scratch_, 256); !s.good()) return s;
    auto* flag = static_cast<int*>(scratch_.memory);
    int all = 1;
    if (const Status s = write(flag, &all, sizeof(int)); !s.good()) return s;
    if (const Status s = started([&](const auto& exec) { f(exec, flag); }); !s.good()) return s;
    const Status s = read(&all, flag, sizeof(int));
    result = all != 0;
    return s;
  }
  /// Records an event on the selected stream; makes it if it is not there.
  Status record(cudaEvent_t& event) {
    const Current current(device_);
    if (!event)
      if (const Status s = status_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); !s.good()) return s;
    return status_of(cudaEventRecord(event, stream_));
  }
  Status copy(void* to, const void* from, Index bytes, cudaMemcpyKind kind) {
    const Current current(device_);
    if (const Status s = status_of(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream_)); !s.good()) return s;
    return status_of(cudaStreamSynchronize(stream_));
  }
  /// Starts a copy through pinned memory; what is copied may be gone when this returns.
  Status send_staged(void* to, const void* from, Index bytes) {
    void* host = nullptr;
    if (const Status s = staging(host, bytes); !s.good()) return s;
    std::memcpy(host, from, static_cast<std::size_t>(bytes));
    return send(to, bytes, host, bytes, bytes, 1);
  }
  Status grow(Piece& piece, Index bytes) {
    if (piece.bytes >= bytes) return {};
    if (piece.memory) release(piece.memory);
    piece = {};
    const Status s = allocate(piece.memory, bytes);
    if (s.good()) piece.bytes = bytes;
    return s;
  }
  void close() noexcept {
    const Current current(device_);
    for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    if (sums_) release(sums_);
    if (key_) release(key_);
    if (labels_.memory) release(labels_.memory);
    if (scratch_.memory) release(scratch_.memory);
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
  Piece labels_{};    ///< of a batch that came from the host
  Piece scratch_{};   ///< what the loss keeps for each image; a verdict
  const std::int32_t* device_labels_ = nullptr;
  loops::PixelLabels pixel_labels_{};
  loops::LossSums* sums_ = nullptr;
  RunKey* key_ = nullptr;
};
}  // namespace
template <class T>
std::shared_ptr<Library<T>> open_library(const DeviceOptions& options) {
  return std::make_shared<CudaLibrary<T>>(options);
}
template std::shared_ptr<Library<float>> open_library<float>(const DeviceOptions&);
template std::shared_ptr<Library<float16>> open_library<float16>(const DeviceOptions&);
template std::shared_ptr<Library<bfloat16>> open_library<bfloat16>(const DeviceOptions&);
std::string device_problem() { return problem_of_device(-1); }
}  // namespace lrcnn::cudnn
