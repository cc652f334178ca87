// Devices, streams, drivers and libraries that cannot be used, and what is said then.
#include "cuda_runtime/run.hpp"
#include <thread>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
std::string opened(const cudnn::DeviceOptions& options) {
  return error_of<BackendError>([&] { static_cast<void>(cudnn::open_library<float>(options)); });
}
const std::string advice =
    "; the cuDNN backend runs on one CUDA device; choose another device, install a newer driver or cuDNN, or use a CPU backend";
}   // namespace
TEST_CASE("a device that is not there, is closed, or is too old") {
  const FreshRuntime runtime;
  CHECK(opened({.device = 2}) == "lrcnn: CUDA device 2 is asked for, and there are 2, from 0 on" + advice);
  runtime->prohibited = true;
  CHECK(opened({.device = 1}) == "lrcnn: CUDA device 1 (pretended device) is closed to programs (its compute mode is \"prohibited\")" + advice);
  runtime->prohibited = false;
  runtime->capability = 70;
  CHECK(opened({}) == "lrcnn: the device (pretended device) has compute capability 7.0, and 7.5 is the least" + advice);
  runtime->capability = 90;
  runtime->devices = 0;
  CHECK(opened({}) == "lrcnn: there is no CUDA device" + advice);
  runtime->no_devices = cudaErrorNoDevice;
  CHECK(cudnn::device_problem() == "no CUDA device can be used (cudaErrorNoDevice: pretended words)");
}
TEST_CASE("a driver that is too old for the toolkit, or not there") {
  const FreshRuntime runtime;
  runtime->no_devices = cudaErrorInsufficientDriver, runtime->driver = 12040;
  const std::string compiled = std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  CHECK(opened({}) ==
        "lrcnn: no CUDA device can be used (the driver serves CUDA 12.4 at most, and lrcnn::cudnn was compiled with " + compiled + ")" + advice);
  runtime->driver = 0;
  CHECK(cudnn::device_problem() == "no CUDA device can be used (no driver of NVIDIA's is installed)");
}
TEST_CASE("cuDNN of another major version, too old, or without its libraries") {
  const FreshRuntime runtime;
  runtime->cudnn_version = 100200;
  CHECK(opened({}).starts_with("lrcnn: cuDNN 10.2.0 is loaded, and lrcnn::cudnn was compiled with 9."));
  runtime->cudnn_version = 90100;
  CHECK(opened({}) == "lrcnn: cuDNN 9.1.0 is installed, and 9.8.0 is the least" + advice);
  runtime->cudnn_version = 0;
  runtime->cudnn_fault = 1008;   // CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED
  CHECK(opened({.device = 1}) ==
        "lrcnn: opening CUDA device 1 failed: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED; the libraries of cuDNN (libcudnn_graph.so and others) must "
        "lie beside libcudnn.so and have its version; the backend needs a stream, a cuDNN handle and a little memory; see whether another program "
        "has the device, or its memory, for itself, or choose another device");
}
TEST_CASE("a device that another program has for itself, or whose memory") {
  const FreshRuntime runtime;
  const std::string words =
      "; the backend needs a stream, a cuDNN handle and a little memory; see whether another program has the device, or its "
      "memory, for itself, or choose another device";
  runtime->capacity = 10;
  CHECK(opened({}) == "lrcnn: opening CUDA device 0 failed: cudaErrorMemoryAllocation: out of memory" + words);
  runtime->capacity = 1'000'000'000;
  for (const std::string opening : {"cudaInitDevice", "cudaSetDevice"}) {   // beside a device that nobody uses; that is used
    int calls = 0;                                                          // until a device is opened
    for (std::string text; calls < 25 && runtime->failed != opening; ++calls) {
      CudaRuntime::forget_contexts();
      if (opening == "cudaSetDevice") cudaSetDevice(0);
      runtime->fail_at = runtime->calls + calls, runtime->failure = cudaErrorDevicesUnavailable;
      text = opened({.device = 1});
      if (runtime->failed == opening)
        CHECK(text == "lrcnn: opening CUDA device 1 failed: cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable" + words);
    }
    CHECK(runtime->failed == opening);
  }
}
TEST_CASE("memory that others have taken since the plan was made: the figures, and training with less") {
  const FreshRuntime runtime;
  using Net = Sequential<Conv<4>, ReLU, MaxPool<>, Flatten, Linear<10>>;
  const auto train = [](const PolicySpec& policy) {
    const HostBatch batch;
    BasicTrainer<Cudnn> trainer(Net::layers, policy, small_input, Sgd{}, {}, {}, Cudnn());
    return trainer.step(batch.source(), batch.classes).loss;
  };
  const PolicySpec column = Policy<Column, Workspace<1_MiB>>::value, rows = Policy<Share<4>, RecomputeAll, Workspace<100'000>>::value;
  CHECK(train(column) == 2);
  runtime->capacity = 300'000;
  const std::string text = error_of([&] { train(column); });
  INFO(text);
  CHECK(text.find(" of the memory of pretended device, where ") != std::string::npos);
  CHECK(text.find(" are free (cudaErrorMemoryAllocation: out of memory); a plan's memory is taken at once") != std::string::npos);
  CHECK(train(rows) == 2);
}
TEST_CASE("a precision that lrcnn::cudnn was compiled without") {
  const FreshRuntime runtime;
  CHECK(error_of<BackendError>([] { const CudnnFp16 backend; }) ==
        "lrcnn: lrcnn::cudnn was compiled without fp16; LRCNN_CUDA_PRECISIONS says for which precisions it is compiled; add fp16 to that option of "
        "CMake's, or use another precision");
}
TEST_CASE("a stream of another device than the backend's") {
  const FreshRuntime runtime;
  cudaStream_t theirs = CudaRuntime::make_stream(1);
  CHECK(opened({.device = 0, .stream = theirs})
            .starts_with("lrcnn: opening CUDA device 0 failed: the stream in DeviceOptions is one of CUDA device 1; make it on device 0, or set "
                         "DeviceOptions::device to 1; "));
  CHECK(opened({.device = 1, .stream = theirs}) == "no error");
  cudaStreamDestroy(theirs);
}
TEST_CASE("an allocator of which one function is missing") {
  const FreshRuntime runtime;
  CHECK(opened({.allocate = [](Index, void*) -> void* {
          return nullptr;
        }}).starts_with("lrcnn: opening CUDA device 0 failed: DeviceOptions has `allocate` and no `release`; give both, or neither; "));
  CHECK(opened({.release = [](void*, void*) {
        }}).starts_with("lrcnn: opening CUDA device 0 failed: DeviceOptions has `release` and no `allocate`; give both, or neither; "));
}
TEST_CASE("two threads on one backend at once") {
  const FreshRuntime runtime;
  const auto library = cudnn::open_library<float>();
  std::string other;
  double seconds = 0;
  const auto work = [&] {   // within a call of this thread
    std::thread([&] { other = library->fill(nullptr, 0, 0).text; }).join();
    return library->wait();   // the thread itself may call again
  };
  CHECK(library->duration(seconds, 1, work).good());
  CHECK(other ==
        "two threads use one backend at the same time; one thread at a time may do so: give each thread a backend of its own, or use a lock");
  std::thread([&] { other = library->wait().text; }).join();   // one after the other
  CHECK(other == "");
}
