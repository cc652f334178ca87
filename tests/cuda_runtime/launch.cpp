// Kernels of the pretended CUDA runtime, which are counted and not run, and cuDNN's handles and convolutions on it.
#include "cuda_runtime/state.hpp"
#include <lrcnn/backend/cudnn/library.hpp>
using namespace lrcnn::testing::pretended;
namespace {
struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
Configuration& pushed() {
  thread_local Configuration configuration;
  return configuration;
}
cudaError_t launch(const char* name, cudaStream_t stream) {
  return call(name, [&] {
    const CUstream_st* const there = known(stream);
    if (!there || there->device != current_device()) return cudaErrorInvalidResourceHandle;
    use_device();
    ++state().runtime.kernels;
    if (stream == nullptr) state().runtime.violations.push_back(std::string(name) + " on the default stream, which the library never uses");
    return enqueue(stream, [] { ++state().runtime.kernels_run; });
  });
}
}   // namespace
extern "C" {
// What nvcc puts into programs that launch kernels (crt/host_runtime.h of the toolkit).
void** __cudaRegisterFatBinary(void* binary) { return static_cast<void**>(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
  pushed() = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = pushed().grid, *block = pushed().block, *shared = pushed().shared, *static_cast<cudaStream_t*>(stream) = pushed().stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t stream) { return launch("__cudaLaunchKernel", stream); }
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t stream) { return launch("cudaLaunchKernel", stream); }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void*, void**) { return launch("cudaLaunchKernelExC", how->stream); }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  return call("cudaFuncGetAttributes", [&] {
    *attributes = {};
    attributes->ptxVersion = attributes->binaryVersion = LRCNN_PRETENDED_PTX, attributes->maxThreadsPerBlock = 1024;
    return cudaSuccess;
  });
}
// cuDNN, as far as it is called beside convolutions.
std::size_t cudnnGetVersion() {
  const lrcnn::Index version = state().runtime.cudnn_version;
  return version > 0 ? static_cast<std::size_t>(version) : CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED ? "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED" : "CUDNN_STATUS_PRETENDED";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const cudaError_t error = call("cudnnCreate", [&] {
    if (state().runtime.cudnn_fault != 0) return cudaErrorUnknown;
    use_device();
    *handle = new cudnnContext{.device = current_device()};
    state().handles.insert(*handle);
    return cudaSuccess;
  });
  if (error == cudaSuccess) return CUDNN_STATUS_SUCCESS;
  cudaGetLastError();   // cuDNN has a runtime of its own
  return state().runtime.cudnn_fault != 0 ? static_cast<cudnnStatus_t>(state().runtime.cudnn_fault) : CUDNN_STATUS_INTERNAL_ERROR;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  state().handles.erase(handle);
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  const cudaError_t error = call("cudnnGetStream", [&] { return *stream = handle->stream, cudaSuccess; });
  if (error == cudaSuccess) return CUDNN_STATUS_SUCCESS;
  cudaGetLastError();
  return CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  const cudaError_t error = call("cudnnSetStream", [&] {
    const CUstream_st* const there = known(stream);
    if (!there || there->device != handle->device) return cudaErrorInvalidResourceHandle;
    handle->stream = stream;
    return cudaSuccess;
  });
  if (error == cudaSuccess) return CUDNN_STATUS_SUCCESS;
  cudaGetLastError();
  return CUDNN_STATUS_BAD_PARAM;
}
}
// The functions of graphs.cpp that the library calls: convolutions are launches on the handle's stream.
namespace lrcnn::cudnn {
namespace {
class Launched final : public Convolution {
 public:
  explicit Launched(cudnnHandle_t handle) : handle_(handle) {}
  Index workspace_bytes() const override { return 0; }
  std::string name() const override { return "pretended"; }
  Status run(void*, void*, void*, const void*, void*) override {
    const int before = std::exchange(current_device(), handle_->device);
    const cudaError_t error = launch("cudnnBackendExecute", handle_->stream);
    current_device() = before;
    if (error == cudaSuccess) return {};
    cudaGetLastError();
    return {"CUDNN_STATUS_EXECUTION_FAILED"};
  }

 private:
  cudnnHandle_t handle_;
};
}   // namespace
Status make_convolution(std::unique_ptr<Convolution>& made, const Problem&, void* handle, Index, const std::string&) {
  made = std::make_unique<Launched>(static_cast<cudnnHandle_t>(handle));
  return {};
}
Status list_engines(std::vector<std::string>& names, const Problem&, void*, Index) {
  names = {"pretended"};
  return {};
}
}   // namespace lrcnn::cudnn
