#pragma once
// What every call of the CUDA runtime and of cuDNN goes through: its error as a Status, which does not stay behind in the runtime; the device that
// it is meant for; one thread at a time.
#include <lrcnn/backend/cudnn/library.hpp>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <atomic>
#include <exception>
#include <string>
#include <thread>
namespace lrcnn::cudnn {
inline Status status_of(cudaError_t error) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();   // said here; not to be found again by the next call
  return {std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error)};
}
inline Status status_of(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  std::string text = cudnnGetErrorString(status);
  if (status == CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED || status == CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH)
    text += "; the libraries of cuDNN (libcudnn_graph.so and others) must lie beside libcudnn.so and have its version";
  return {text};
}
/// Of calls that give something back: there is nothing to be done about an error, but it must not stay in the runtime.
template <class E>
void ignored(E error) noexcept {
  static_cast<void>(status_of(error));
}
/// Those functions of the driver that the runtime has no equal of. The runtime finds them, so nothing is linked with the driver itself. All are
/// there, or none.
struct DriverCalls {
  CUresult (*state)(CUdevice device, unsigned* flags, int* active) = nullptr;
  CUresult (*retain)(CUcontext* context, CUdevice device) = nullptr;
  CUresult (*release)(CUdevice device) = nullptr;
  CUresult (*push)(CUcontext context) = nullptr;
  CUresult (*pop)(CUcontext* context) = nullptr;
  CUresult (*of_stream)(CUstream stream, CUcontext* context) = nullptr;
  CUresult (*device)(CUdevice* device) = nullptr;
  explicit operator bool() const { return state && retain && release && push && pop && of_stream && device; }
  static const DriverCalls& all() {
    static const DriverCalls calls = [] {
      DriverCalls c;
      find(c.state, "cuDevicePrimaryCtxGetState"), find(c.retain, "cuDevicePrimaryCtxRetain"), find(c.release, "cuDevicePrimaryCtxRelease");
      find(c.push, "cuCtxPushCurrent"), find(c.pop, "cuCtxPopCurrent"), find(c.of_stream, "cuStreamGetCtx"), find(c.device, "cuCtxGetDevice");
      return c;
    }();
    return calls;
  }

 private:
  template <class F>
  static void find(F*& function, const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050   // without a version, the newest form of a function is found, which may take other arguments
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    if (status_of(error).good() && result == cudaDriverEntryPointSuccess) function = reinterpret_cast<F*>(found);
  }
};
/// What a call of the driver has come to.
inline Status status_of_driver(CUresult result, const char* call) {
  return result == CUDA_SUCCESS ? Status{} : Status{std::string(call) + " of the CUDA driver: error " + std::to_string(static_cast<int>(result))};
}
/// Makes a device current while it lives, as a library must leave the caller's.
///
/// cudaSetDevice() makes a context on the device, which takes hundreds of megabytes of its memory, and fails where another program has the device
/// for itself. So where nobody uses the device that was current, the other device's context is put above it instead, and taken away again.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : status_(status_of(cudaGetDevice(&before_))) {
    if (!status_.good() || before_ == device) before_ = -1;
    else if (is_used(before_)) status_ = status_of(cudaSetDevice(device));
    else put_above(device);
  }
  ~CurrentDevice() {
    if (above_ >= 0) {
      const DriverCalls& driver = DriverCalls::all();
      CUcontext popped = nullptr;
      static_cast<void>(driver.pop(&popped)), static_cast<void>(driver.release(above_));
    } else if (before_ >= 0) {
      ignored(cudaSetDevice(before_));
    }
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  /// Not good if the device could not be made current: then no call may follow.
  const Status& status() const { return status_; }

 private:
  /// Whether there is a context on a device; true if that is not known.
  static bool is_used(int device) {
    unsigned flags = 0;
    int active = 1;
    const DriverCalls& driver = DriverCalls::all();
    return !driver || driver.state(device, &flags, &active) != CUDA_SUCCESS || active != 0;
  }
  void put_above(int device) {
    before_ = -1;
    if (!is_used(device)) status_ = status_of(cudaInitDevice(device, 0, 0));   // the runtime keeps this context; nothing below can end it
    if (!status_.good()) return;
    const DriverCalls& driver = DriverCalls::all();
    CUcontext context = nullptr;
    status_ = status_of_driver(driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
    if (!status_.good()) return;
    status_ = status_of_driver(driver.push(context), "cuCtxPushCurrent");
    if (status_.good()) above_ = device;
    else static_cast<void>(driver.release(device));
  }
  int before_ = -1, above_ = -1;   ///< to be made current again; whose context was put above the caller's; -1: none
  Status status_;
};
/// Calls f with the device current; what it throws becomes a Status.
template <class F>
Status on_device(int device, F f) {
  const CurrentDevice current(device);
  if (!current.status().good()) return current.status();
  try {
    return f();
  } catch (const std::exception& e) {
    cudaGetLastError();
    return {e.what()};
  }
}
/// Post:    the device of a stream; as it was if the stream is the default one
inline Status device_of(cudaStream_t stream, int& device) {
  if (!stream) return {};
#if CUDART_VERSION >= 12080
  return status_of(cudaStreamGetDevice(stream, &device));
#else
  const DriverCalls& driver = DriverCalls::all();
  if (!driver) return {"the CUDA driver does not say of which device a stream is"};
  CUcontext context = nullptr, popped = nullptr;
  if (const Status s = status_of_driver(driver.of_stream(stream, &context), "cuStreamGetCtx"); !s.good()) return s;
  if (const Status s = status_of_driver(driver.push(context), "cuCtxPushCurrent"); !s.good()) return s;
  const Status found = status_of_driver(driver.device(&device), "cuCtxGetDevice");
  static_cast<void>(driver.pop(&popped));
  return found;
#endif
}
/// Post:    captured: whether the stream is being captured
inline Status find_capture(bool& captured, cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const Status status = status_of(cudaStreamIsCapturing(stream, &capture));
  captured = capture != cudaStreamCaptureStatusNone;
  return status;
}
/// While it lives, this thread may wait, take and give memory, and end graphs, though another thread captures a stream in CUDA's global mode, whose
/// capture that would end. Pre: the device is current, for the runtime makes a context on the one that is.
class BesideCaptures {
 public:
  BesideCaptures() { ignored(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~BesideCaptures() {
    if (mode_ != cudaStreamCaptureModeRelaxed) ignored(cudaThreadExchangeStreamCaptureMode(&mode_));
  }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;   ///< then the one that the thread had
};
/// Whether what was before an event is done: cudaSuccess, or cudaErrorNotReady, which is then gone from the runtime; or another error.
/// `waits`: until it is done.
inline cudaError_t state_of(cudaEvent_t event, bool waits = false) {
  const cudaError_t error = waits ? cudaEventSynchronize(event) : cudaEventQuery(event);
  if (error == cudaErrorNotReady) cudaGetLastError();
  return error;
}
/// Lets one thread at a time through. A thread that is within may enter again.
class OneThread {
 public:
  template <class F>
  Status operator()(F f) {
    const auto self = std::this_thread::get_id();
    std::thread::id within;
    const bool first = within_.compare_exchange_strong(within, self);
    if (!first && within != self)
      return {"two threads use one backend at the same time; one thread at a time may do so: give each thread a backend of its own, or use a lock"};
    const Leaves leaves{first ? &within_ : nullptr};
    return f();
  }

 private:
  struct Leaves {
    std::atomic<std::thread::id>* within;
    ~Leaves() {
      if (within) within->store(std::thread::id{});
    }
  };
  std::atomic<std::thread::id> within_{};
};
/// "13.0"
inline std::string cuda_version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }
/// Why a device cannot be used; empty if it can. `device`: CUDA ordinal; -1: the current one.
inline std::string problem_of_device(int device) {
  int count = 0, driver = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    if (!status_of(cudaDriverGetVersion(&driver)).good() || driver == 0) return "no CUDA device can be used (no driver of NVIDIA's is installed)";
    return "no CUDA device can be used (the driver serves CUDA " + cuda_version_text(driver) + " at most, and lrcnn::cudnn was compiled with " +
           cuda_version_text(CUDART_VERSION) + ")";
  }
  if (const Status s = status_of(counted); !s.good()) return "no CUDA device can be used (" + s.text + ")";
  if (count == 0) return "there is no CUDA device";
  if (device >= count) return "CUDA device " + std::to_string(device) + " is asked for, and there are " + std::to_string(count) + ", from 0 on";
  if (device < 0)
    if (const Status s = status_of(cudaGetDevice(&device)); !s.good()) return "the current CUDA device is not known (" + s.text + ")";
  cudaDeviceProp properties;
  int mode = 0;
  if (const Status s = status_of(cudaGetDeviceProperties(&properties, device)); !s.good()) return s.text;
  if (const Status s = status_of(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device)); !s.good()) return s.text;
  if (mode == cudaComputeModeProhibited)
    return "CUDA device " + std::to_string(device) + " (" + properties.name + ") is closed to programs (its compute mode is \"prohibited\")";
  const auto version = static_cast<Index>(cudnnGetVersion());
  if (version / 10000 != CUDNN_MAJOR)
    return "cuDNN " + version_text(version) + " is loaded, and lrcnn::cudnn was compiled with " + version_text(CUDNN_VERSION);
  return fault_of(DeviceInfo{properties.name, 10 * properties.major + properties.minor, 0, 0, version});
}
}   // namespace lrcnn::cudnn
