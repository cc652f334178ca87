#pragma once
// The thin call layer: everything that the CUDA backend asks of a device and of the vendor's libraries.
//
// Plain C++, no vendor's header, so that a program's own files compile fast and with any compiler. The source files of this folder
// (one for each type of elements, graphs.cpp, library.cpp) implement it for CUDA; the target lrcnn::cudnn compiles them once for a project.
// Tests implement it in the host's memory, and make it fail on purpose. Work goes to the stream selected last, in order; only what says so
// waits.
#include <lrcnn/backend/cudnn/device_loss.hpp>
#include <lrcnn/backend/cudnn/host_memory.hpp>
#include <lrcnn/backend/cudnn/problem.hpp>
#include <lrcnn/backend/cudnn/together.hpp>
#include <lrcnn/backend/update.hpp>
#include <lrcnn/core/choice_file.hpp>
#include <lrcnn/data/direct_source.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>
namespace lrcnn::cudnn {
/// What a call has come to. Empty text: all is well.
struct Status {
  std::string text{};
  constexpr bool good() const { return text.empty(); }
};
struct DeviceInfo {
  std::string name{};           ///< "NVIDIA H200"
  int compute_capability = 0;   ///< 90 for 9.0
  Index free_bytes = 0;         ///< of the device's memory, now
  Index total_bytes = 0;
  Index cudnn_version = 0;   ///< 91900 for 9.19.0
  Index ahead_bytes = 0;     ///< DeviceOptions::ahead_bytes
};
inline constexpr int least_capability = 75;   ///< Turing: the oldest that CUDA 13 and cuDNN 9 serve
inline constexpr Index least_cudnn = 90800;   ///< the first that describes devices which are not there
/// "9.19.0"
inline std::string version_text(Index v) { return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100); }
/// Why a device cannot be used; empty if it can.
inline std::string fault_of(const DeviceInfo& info) {
  if (info.compute_capability < least_capability)
    return "the device (" + info.name + ") has compute capability " + std::to_string(info.compute_capability / 10) + "." +
           std::to_string(info.compute_capability % 10) + ", and 7.5 is the least";
  if (info.cudnn_version < least_cudnn)
    return "cuDNN " + version_text(info.cudnn_version) + " is installed, and " + version_text(least_cudnn) + " is the least";
  return "";
}
/// Engines are tried among those that give the same bits on every run, unless the policy says FastestConv.
using lrcnn::TuningOptions;
/// What a program may bring along. Null or negative: the library's own.
struct DeviceOptions {
  int device = -1;          ///< CUDA ordinal; -1: the current device
  void* stream = nullptr;   ///< cudaStream_t, the caller's to destroy
  void* handle = nullptr;   ///< cudnnHandle_t, the caller's to destroy. Its stream is `stream` until the library is closed, then again what it was
  void* (*allocate)(Index bytes, void* context) = nullptr;   ///< device memory, aligned to 256 bytes; null if there is none
  void (*release)(void* memory, void* context) = nullptr;    ///< given where `allocate` is
  void* context = nullptr;                                   ///< handed to the two
  TuningOptions tuning{};                                    ///< whether engines are timed
  Index pinned_bytes = Index{1} << 29;   ///< page-locked memory that batches from the host pass through, at most; but for one piece of any size
  Index ahead_bytes = Index{1} << 26;    ///< of the device's memory beside the plan's, at most, where two loads from the host wait for their steps
  bool try_engines = true;               ///< each convolution runs once, when it is made; engines whose numbers are wrong are passed over
  bool record = true;                    ///< steps that repeat become CUDA graphs, outside of the program's own captures (docs/cuda.md)
};
/// A convolution ready to run. One thread at a time.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual Index workspace_bytes() const = 0;
  /// The engine that was chosen, for people.
  virtual std::string name() const = 0;
  /// Starts it. x, y, w: device memory; which of them is written is the problem's op. bias: null without one.
  virtual Status run(void* x, void* y, void* w, const void* bias, void* workspace) = 0;
};
/// Where the operands of a convolution lie that is tried (trial_memory.hpp). bias: null without one.
template <class T>
struct TrialMemory {
  T *x = nullptr, *y = nullptr, *w = nullptr, *bias = nullptr;
  void* workspace = nullptr;
  bool draws_weights = false, draws_bias = false;   ///< else they are the network's parameters, which are read
};
/// Work that was written down instead of done, to be started as a whole, as often as wanted.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual Status start() = 0;
};
/// What the steps since the last fetch() have come to.
struct Sums {
  LossResult loss{};
  Index images = 0;           ///< whose losses, and those of all before, are finite
  Index invalid_labels = 0;   ///< that are no class; their images' losses are not numbers
};
/// What does not depend on the type of elements: the device, its memory, convolutions, updates.
class Device {
 public:
  virtual ~Device() = default;
  virtual Status info(DeviceInfo& info) = 0;

  // ---- memory ------------------------------------------------------------------------------------------------------
  /// Device memory, aligned to 256 bytes.
  virtual Status allocate(void*& memory, Index bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  /// Host memory for a batch's rows that the device reads fast, free to be written until send_rows() has them. Waits only where
  /// DeviceOptions::pinned_bytes are taken and nothing that was sent before has gone.
  virtual Status staging(void*& memory, Index bytes) = 0;
  /// Copies between any memory of the host and the device, and waits.
  virtual Status write(void* to, const void* from, Index bytes) = 0;
  virtual Status read(void* to, const void* from, Index bytes) = 0;
  /// Starts to set every byte to `byte`.
  virtual Status fill(void* memory, std::uint8_t byte, Index bytes) = 0;
  /// What the device reads of the host's memory by itself.
  virtual Status host_access(HostAccess& access) = 0;
  /// Makes or registers `bytes` of memory that both read, as memory.residence says. After an error there is nothing to give back.
  virtual Status share(HostMemory& memory, Index bytes) = 0;
  /// Gives back what share() has made; waits for everything first.
  virtual void unshare(const HostMemory& memory) noexcept = 0;
  // ---- streams -----------------------------------------------------------------------------------------------------
  /// Further work goes to that stream; 0 is the program's, or the one to begin with. Makes it if it is not there.
  virtual Status select(Index stream) = 0;
  /// Streams 1 ... count - 1 go on from where stream 0 is.
  virtual Status fork(Index count) = 0;
  /// Selects stream 0, which goes on when streams 1 ... count - 1 have come to their ends.
  virtual Status join(Index count) = 0;
  /// Records an event on the selected stream, under a number.
  virtual Status record_event(Index number) = 0;
  /// The selected stream waits for the event that was recorded last under the number.
  virtual Status wait_for_event(Index number) = 0;
  /// What is started from now on begins when `stream`, the cudaStream_t of a program, has done what it has now. Stream 0 waits, the host not.
  virtual Status order_behind(void* stream) = 0;
  /// What the program puts on `stream` from now on begins when all that was started on stream 0 is done.
  virtual Status order_before(void* stream) = 0;
  /// Waits for everything. Errors of earlier work come out here.
  virtual Status wait() = 0;

  // ---- work: started, not waited for -------------------------------------------------------------------------------
  /// `engine`: one of engines(); empty: the one that the vendor's library puts first.
  /// Errors:  the problem and what the vendor's library says if no engine serves it within the workspace
  virtual Status convolution(std::unique_ptr<Convolution>& made, const Problem& problem, Index workspace_bytes, const std::string& engine) = 0;
  /// Names of engines that may serve a problem, the likely fastest first; some may turn out not to.
  virtual Status engines(std::vector<std::string>& names, const Problem& problem, Index workspace_bytes) = 0;
  /// Seconds of the device's time that work takes, on average over `times` turns; waits.
  virtual Status duration(double& seconds, int times, const std::function<Status()>& work) = 0;
  /// Post:    captured: whether the program captures the selected stream, so that work which is started now becomes part of its graph.
  /// Pre:     not between begin_recording() and end_recording()
  virtual Status find_program_capture(bool& captured) { return captured = false, Status{}; }
  /// From here to end_recording() work is written down, not done. Nothing that waits, takes or gives memory may be asked for.
  virtual Status begin_recording() = 0;
  /// Errors:  if some of the work cannot be recorded; the device is as before begin_recording() then
  virtual Status end_recording(std::unique_ptr<Recording>& made) = 0;
  /// The labels of the batch that comes next, or those rows of masks or targets that are in memory, for the next loss. They are copied: 4
  /// bytes for each element. Of labels by rows none is copied: memory is made ready for as many as will be there at a time.
  virtual Status labels(const Labels& labels) = 0;
  /// What the masks of dropouts are drawn from in the run that comes next; to begin with, RunKey{}.
  virtual Status set_run_key(const RunKey& key) = 0;
  /// The loss of the images since the last call; waits. From the first that is not finite on, images are not counted.
  virtual Status fetch(Sums& sums) = 0;
  /// Whether `count` elements in a row are finite; waits.
  virtual Status all_finite(const float* elements, Index count, bool& result) = 0;
  /// In double, in a fixed order; waits.
  virtual Status sum_of_squares(const float* elements, Index count, double& result) = 0;
  /// Updates are left out, on the device, if the loss of an image since the last fetch() is not finite.
  virtual Status update(const SgdUpdate<float>& functor, float* w, const float* g, Index count) = 0;
  virtual Status update(const MomentumUpdate<float>& functor, float* w, const float* g, float* v, Index count) = 0;
  virtual Status update(const AdamWUpdate<float>& functor, float* w, const float* g, float* m, float* v, Index count) = 0;
};
/// A layer's filter to be packed, and its bias, which may be null. The node need not stay.
template <class T>
struct FilterPacking {
  const float* canonical = nullptr;
  T* packed = nullptr;
  const float* bias = nullptr;
  T* packed_bias = nullptr;
  const Node* node = nullptr;
};
/// A layer's filter gradient to be unpacked: written, or added if accumulate.
template <class T>
struct FilterUnpacking {
  const T* packed = nullptr;
  float* canonical = nullptr;
  const Node* node = nullptr;
  bool accumulate = false;
};
/// Work on tensors of elements T: float, float16 or bfloat16. Started, not waited for.
template <class T>
class Library : public Device {
 public:
  /// Rows of a batch from staging() memory, as elements. Shapes: the same, images dense, channels last. The host may ask for staging() again.
  /// They are copied to the device as soon as it can copy, and to their place when the selected stream comes to it.
  virtual Status send_rows(const View<const float>& from, const View<T>& to) = 0;
  /// Rows of a batch, as elements. Shapes: the same; from NCHW or channels last, to channels last.
  virtual Status convert(const View<const float>& from, const View<T>& to) = 0;
  /// Rows of a batch whose samples the device reads where they lie; rounds once. The source may be gone when this returns; its array is
  /// kept until the rows have been read and a call notices: the next gather(), fetch() or wait().
  /// Pre:     source.array().on_device() is an address of this device; to is channels last, and lies within the batch
  virtual Status gather(const DirectSource<float>& source, Index first, const View<T>& to) = 0;
  /// A step that is not a convolution. Pre: a custom layer has loops for it (custom_on_device()); it has workspace_bytes() of workspace
  /// Post:    a dropout draws from set_run_key()'s key, if operands.run is not null, whatever that points to
  virtual Status run(const Operands<T>& operands) = 0;
  /// The steps of a PointwiseRun, at once. `sums`: a step whose bias gradient is made along; null: none.
  virtual Status run_together(std::span<const PointwiseStep<T>> steps, const Operands<T>* sums) = 0;
  /// Bytes of workspace that such a step needs.
  virtual Index workspace_bytes(const Operands<T>& operands) const = 0;
  /// y = f(x + bias), by channels, and the bits x + bias > 0. Null: no bias, no function; y or saved may be empty, y may be x.
  virtual Status activate(const View<const T>& x, const T* bias, const Activation* f, const View<T>& y, const View<std::uint8_t>& saved) = 0;
  /// Bytes of workspace that bias_gradient() wants.
  virtual Index bias_gradient_bytes(const View<const T>& dy) const = 0;
  /// db (+)= the sums of dy's channels, in a fixed order.
  virtual Status bias_gradient(const View<const T>& dy, float* db, bool accumulate, std::byte* workspace) = 0;
  /// Runs a convolution on numbers that are drawn, and makes some numbers of its result again; waits. fault: what is wrong with it, or empty.
  /// Errors:  what the device says
  virtual Status try_out(std::string& fault, Convolution& convolution, const Problem& problem, const TrialMemory<T>& memory) = 0;
  /// Filters of different layers between the canonical [K][C][R][S] and the convolutions' [K][R][S][C]. Packing rounds, and takes biases along.
  virtual Status pack_filters(std::span<const FilterPacking<T>> filters) = 0;
  virtual Status unpack_filters(std::span<const FilterUnpacking<T>> filters) = 0;
  /// Softmax cross entropy of the batch's images from `first` on: adds to the sums, writes dx if it has memory.
  virtual Status cross_entropy(const View<const T>& logits, Index first, const View<T>& dx, double scale) = 0;
  /// A loss over pixels, of some rows of the batch's images from `first` on: adds to the sums if it counts, writes dx if it has memory.
  /// Pre: the loss's total() has found the labels good
  virtual Status pixel_loss(const DeviceLoss& loss, const View<const T>& logits, Index first, const View<T>& dx, double scale, bool counts) = 0;
  /// A loss of the program's own, over images or pixels, likewise. It is copied.
  /// Pre: labels that the host can read have been found good; those in the device's memory are looked at by the loop
  virtual Status custom_loss(const CustomLoss<T>& loss, const View<const T>& logits, Index first, const View<T>& dx, double scale, bool counts) = 0;
  virtual Status finite(const View<const T>& view, bool& result) = 0;
};
/// The library on a CUDA device, for T = float, float16, bfloat16.
/// Errors:  BackendError if there is no driver, no device, or one that is too old, or cuDNN is
template <class T>
std::shared_ptr<Library<T>> open_library(const DeviceOptions& options = {});
/// Why open_library() would fail; empty if it would not.
std::string device_problem();
/// A convolution on the current device, by a cudnnHandle_t, which must outlive it.
Status make_convolution(std::unique_ptr<Convolution>& made, const Problem& problem, void* handle, Index workspace_bytes, const std::string& engine);
Status list_engines(std::vector<std::string>& names, const Problem& problem, void* handle, Index workspace_bytes);
/// The engine that would carry a problem out.
struct Engine {
  std::string name{};
  Index workspace_bytes = 0;
  bool compiled_at_run_time = false;   ///< which takes seconds; without a CUDA driver cuDNN offers no such engine
};
/// A device that need not be there: engines are chosen and sized for it, nothing runs. Threads may share one.
class DescribedDevice {
 public:
  virtual ~DescribedDevice() = default;
  virtual DeviceInfo info() const = 0;
  /// Whether there is a CUDA driver. Without one cuDNN refuses engines that are compiled at run time, so a device may take others.
  virtual bool compiles_at_run_time() const = 0;
  /// `name`: one of engines(); empty: the one put first.
  virtual Status engine(Engine& engine, const Problem& problem, Index workspace_bytes, const std::string& name = {}) const = 0;
  virtual Status engines(std::vector<std::string>& names, const Problem& problem, Index workspace_bytes) const = 0;
};
/// `json`: as cuDNN 9.8 or later serialises a device's properties.
/// Errors:  BackendError if this cuDNN does not take it
std::shared_ptr<const DescribedDevice> describe_device(const std::string& json);
/// The description of the current device, to be used elsewhere. Errors: BackendError as open_library().
std::string device_description();
}   // namespace lrcnn::cudnn
