// On a GPU, compiled by nvcc: a program with a stream and an allocator of its own.
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/lrcnn.hpp>
#include <cuda_runtime.h>
#include <doctest/doctest.h>
using namespace lrcnn;
namespace {
struct Counter {
  Index taken = 0, given_back = 0;
};
void* take(Index bytes, void* context) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(bytes)) != cudaSuccess) return nullptr;
  ++static_cast<Counter*>(context)->taken;
  return memory;
}
void give_back(void* memory, void* context) {
  cudaFree(memory);
  ++static_cast<Counter*>(context)->given_back;
}
}   // namespace
TEST_CASE("gpu: a program's own stream and allocator are used, and left to it") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  Counter counter;
  {
    const Dataset data = make_shapes({.count = 16});
    const Loader<float> loader(data, {.batch = 8});
    Trainer<LeNet<10>, Policy<Share<3>, CheckpointAtPools, RecomputeAll>, CudnnTf32> trainer(
        loader.input(), Sgd{.lr = 0.01}, {}, {}, CudnnTf32({.stream = stream, .allocate = take, .release = give_back, .context = &counter}));
    for (auto& batch : loader.epoch(0)) CHECK(std::isfinite(trainer.step(batch).loss));
    CHECK(counter.taken > 3);
  }
  CHECK(counter.given_back == counter.taken);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}
