// What the library leaves of the program's own: devices that it does not use, the current device, the stream of a cuDNN handle.
#include "cuda_runtime/run.hpp"
#include <lrcnn/backend/cudnn/place_array.hpp>
#include <lrcnn/data/direct_loader.hpp>
#include <cudnn.h>
#include <thread>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<4>, ReLU, Dropout<>, MaxPool<>, Flatten, Linear<10>>;
constexpr PolicySpec rows = Policy<Share<2>, RecomputeAll, Workspace<1_MiB>>::value;
int current() {
  int device = -1;
  cudaGetDevice(&device);
  return device;
}
/// Opens device 1, trains, gathers, lets go.
void use_device_1() {
  const Dataset data = make_shapes({.count = 8});
  const HostBatch batch;
  const cudnn::DeviceOptions options{.device = 1};
  BasicTrainer<Cudnn> trainer(Net::layers, rows, small_input, Sgd{.lr = 0.01}, {.seed = 3}, {}, Cudnn(options));
  for (int i = 0; i < 3; ++i) trainer.step(batch.source(), batch.classes);
  const auto placed = cudnn::place_array(trainer.backend(), SampleArray(data), {.only = cudnn::Residence::pinned});
  trainer.start_step(DirectLoader<float>(placed.array, data.labels, {.batch = 4}).batch(0, 0));
  trainer.wait();
  CHECK(current() == 0);
}
}   // namespace
TEST_CASE("a program that uses one device has no context on another, and its current device stays") {
  const FreshRuntime runtime;
  CudaRuntime::forget_contexts();
  use_device_1();
  CHECK(runtime->contexts == std::set<int>{1});
  CHECK(current() == 0);
  std::thread([&] { use_device_1(); }).join();   // a thread that has not called CUDA
  CHECK(runtime->contexts == std::set<int>{1});
  cudaSetDevice(0);   // now it uses both
  use_device_1();
  CHECK(runtime->contexts == std::set<int>{0, 1});
  CHECK(current() == 0);
}
TEST_CASE("each call that fails while a device is used beside one that nobody uses") {
  const FreshRuntime runtime;
  CudaRuntime::forget_contexts();
  const Index begun = runtime->calls;
  use_device_1();
  const Index calls = std::min<Index>(runtime->calls - begun, 150);
  std::set<std::string> functions;
  for (Index k = 0; k < calls; ++k) {
    CudaRuntime::forget_contexts();
    runtime->failed = "";
    runtime->fail_at = runtime->calls + k;
    const std::string text = error_of(use_device_1);
    INFO("call ", k, ", ", runtime->failed, ": ", text);
    functions.insert(runtime->failed);
    CHECK((text == "no error" || text.starts_with("lrcnn: ")));
    CHECK(current() == 0);
    CHECK_FALSE(CudaRuntime::error_is_left());
    REQUIRE(CudaRuntime::left() == "");
  }
  for (const char* name : {"cudaInitDevice", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuDevicePrimaryCtxGetState"})
    CHECK(functions.contains(name));
}
TEST_CASE("a program's cuDNN handle has its stream again when the library has been closed") {
  const FreshRuntime runtime;
  cudaStream_t theirs = CudaRuntime::make_stream(0), found = nullptr;
  cudnnHandle_t handle = nullptr;
  REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
  const auto stream_of_handle = [&] { return cudnnGetStream(handle, &found), found; };
  for (cudaStream_t before : {theirs, cudaStream_t{}}) {
    REQUIRE(cudnnSetStream(handle, before) == CUDNN_STATUS_SUCCESS);
    {
      const auto library = cudnn::open_library<float>({.handle = handle});
      REQUIRE(library->select(1).good());
      CHECK(stream_of_handle() != before);
    }
    CHECK(stream_of_handle() == before);
    runtime->capacity = 10;   // opening fails
    CHECK(error_of([&] { static_cast<void>(cudnn::open_library<float>({.handle = handle})); }) != "no error");
    CHECK(stream_of_handle() == before);
    runtime->capacity = 1'000'000'000;
  }
  cudnnDestroy(handle), cudaStreamDestroy(theirs);
}
