#include <cuda_runtime.h>
#include <lrcnn/backend/cudnn.hpp>
__global__ void add(int a, int b, int* sum) { *sum = a + b; }
int add_on_device(int a, int b) {
  int sum = 0, *on_device = nullptr;
  cudaMalloc(&on_device, sizeof(int));
  add<<<1, 1>>>(a, b, on_device);
  cudaMemcpy(&sum, on_device, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(on_device);
  return sum;
}
std::string problem_seen_by_nvcc() { return lrcnn::cudnn::device_problem(); }
