#pragma once
// A cuDNN with one engine that does nothing, and a CUDA runtime with two devices, which note on which device they are called. To be included once.
#include <cuda_runtime.h>
#include <cudnn.h>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>
namespace lrcnn::testing {
struct Call {
  std::string what;
  int device;
  friend bool operator==(const Call&, const Call&) = default;
};
inline int current_device = 0;
inline std::vector<Call> calls;   ///< "build": of plans; "execute"; "destroy": of plans
/// Kinds of the descriptors that are there, by their address.
inline std::map<void*, cudnnBackendDescriptorType_t> descriptors;
}   // namespace lrcnn::testing
extern "C" {
cudaError_t cudaGetDevice(int* device) {
  *device = lrcnn::testing::current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  lrcnn::testing::current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }
const char* cudaGetErrorString(cudaError_t) { return "of CUDA"; }
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new char;
  lrcnn::testing::descriptors[*descriptor] = type;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  using namespace lrcnn::testing;
  if (descriptors.at(descriptor) == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) calls.push_back({"destroy", current_device});
  descriptors.erase(descriptor);
  delete static_cast<char*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  using namespace lrcnn::testing;
  if (descriptors.at(descriptor) == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) calls.push_back({"build", current_device});
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, std::int64_t,
                                       const void*) {
  return CUDNN_STATUS_SUCCESS;
}
/// Heuristics find one engine; numbers are 0; lists are empty.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t,
                                       std::int64_t* count, void* elements) {
  const bool number = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_INT32;
  if (count) *count = number || name == CUDNN_ATTR_ENGINEHEUR_RESULTS || name == CUDNN_ATTR_ENGINECFG_ENGINE ? 1 : 0;
  if (number && elements) std::memset(elements, 0, type == CUDNN_TYPE_INT64 ? 8 : 4);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  lrcnn::testing::calls.push_back({"execute", lrcnn::testing::current_device});
  return CUDNN_STATUS_SUCCESS;
}
}
