// Those functions of the pretended driver that the library finds through the runtime: contexts of devices, put above each other.
#include "cuda_runtime/state.hpp"
#include <cuda.h>
#include <cstring>
using namespace lrcnn::testing::pretended;
namespace {
/// A context is its device's number and one.
CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1); }
int device_of(CUcontext context) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1; }
/// The driver's errors do not stay in the runtime.
template <class F>
CUresult driver_call(const char* name, F f) {
  const bool good = call(name, [&] { return f(), cudaSuccess; }) == cudaSuccess;
  if (!good) cudaGetLastError();
  return good ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult state_of_context(CUdevice device, unsigned* flags, int* active) {
  return driver_call("cuDevicePrimaryCtxGetState", [&] { *flags = 0, *active = state().runtime.contexts.contains(device); });
}
CUresult retain(CUcontext* context, CUdevice device) {
  return driver_call("cuDevicePrimaryCtxRetain", [&] { *context = context_of(device), state().runtime.contexts.insert(device); });
}
CUresult release(CUdevice) { return CUDA_SUCCESS; }
CUresult push(CUcontext context) {
  return driver_call("cuCtxPushCurrent", [&] { contexts_above().push_back(device_of(context)); });
}
CUresult pop(CUcontext* context) {
  if (contexts_above().empty()) return violation("no context is there to be taken away"), CUDA_ERROR_INVALID_CONTEXT;
  *context = context_of(contexts_above().back());
  contexts_above().pop_back();
  return CUDA_SUCCESS;
}
CUresult context_of_stream(CUstream stream, CUcontext* context) {
  return driver_call("cuStreamGetCtx", [&] { *context = context_of(stream->device); });
}
CUresult device_of_current(CUdevice* device) {
  return driver_call("cuCtxGetDevice", [&] { *device = current_device(); });
}
const std::map<std::string, void*>& functions() {
  static const std::map<std::string, void*> all{{"cuDevicePrimaryCtxGetState", reinterpret_cast<void*>(state_of_context)},
                                                {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(retain)},
                                                {"cuDevicePrimaryCtxRelease", reinterpret_cast<void*>(release)},
                                                {"cuCtxPushCurrent", reinterpret_cast<void*>(push)},
                                                {"cuCtxPopCurrent", reinterpret_cast<void*>(pop)},
                                                {"cuStreamGetCtx", reinterpret_cast<void*>(context_of_stream)},
                                                {"cuCtxGetDevice", reinterpret_cast<void*>(device_of_current)}};
  return all;
}
}   // namespace
#if CUDART_VERSION >= 12050
extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                                        cudaDriverEntryPointQueryResult* result) {
#else
extern "C" cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, cudaDriverEntryPointQueryResult* result) {
#endif
  const auto found = functions().find(symbol);
  *function = found == functions().end() ? nullptr : found->second;
  *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
