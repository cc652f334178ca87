// A program that captures a stream: its own, which the steps of a trainer go to, or one of another thread.
#include "cuda_runtime/run.hpp"
#include <lrcnn/backend/cudnn/place_array.hpp>
#include <lrcnn/data/direct_loader.hpp>
#include <thread>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<4>, ReLU, MaxPool<>, Flatten, Linear<10>>;
using DropNet = Sequential<Conv<4>, ReLU, Dropout<>, MaxPool<>, Flatten, Linear<10>>;
constexpr PolicySpec rows = Policy<Share<2>, RecomputeAll, Workspace<1_MiB>>::value;
template <class N>
BasicTrainer<Cudnn> trainer_on(cudaStream_t stream, bool records = false, const PolicySpec& policy = rows) {
  const cudnn::DeviceOptions options{.device = 0, .stream = stream, .record = records};
  return {N::layers, policy, small_input, Sgd{.lr = 0.01}, {.seed = 3}, {}, Cudnn(options)};
}
const std::string reason =
    " would be sent from the host, which a graph cannot do again; within a capture of the program's own, give batches in the "
    "device's memory (cudnn::DeviceSource) and labels there (Labels::on_device), and use no dropouts; ";
}   // namespace
TEST_CASE("within a program's own capture nothing can be sent from the host, which is said before anything is done") {
  const FreshRuntime runtime;
  cudaStream_t theirs = CudaRuntime::make_stream(0);
  {
    auto trainer = trainer_on<Net>(theirs);
    auto dropping = trainer_on<DropNet>(theirs);
    const HostBatch batch;
    const Dataset data = make_shapes({.count = 8});
    const auto placed = cudnn::place_array(trainer.backend(), SampleArray(data), {.only = cudnn::Residence::pinned});
    const auto pixels = trainer.backend().buffer<float>(small_input.count());
    const auto classes = trainer.backend().buffer<std::int32_t>(small_input.n);
    const cudnn::DeviceSource there(pixels.data(), small_input);
    const Labels labels = Labels::on_device(classes.data(), small_input.n);
    trainer.step(batch.source(), batch.classes), dropping.step(batch.source(), batch.classes);
    const std::vector<Index> samples{0, 1, 2, 3};
    const auto refused = [&](const std::string& what, auto step) {
      trainer.start_step(batch.source(), batch.classes);   // pieces are under way
      cudaGraph_t graph = nullptr;
      REQUIRE(cudaStreamBeginCapture(theirs, cudaStreamCaptureModeGlobal) == cudaSuccess);
      const Index kernels = runtime->kernels;
      const std::string text = error_of<BackendError>(step);
      CHECK(text.find(" failed: the program captures the stream of the step, and " + what + reason) != std::string::npos);
      CHECK(runtime->kernels <= kernels + 1);                       // filters may be packed before rows are loaded
      CHECK(cudaStreamEndCapture(theirs, &graph) == cudaSuccess);   // still a good capture
      cudaGraphDestroy(graph);
      CHECK(trainer.step(batch.source(), batch.classes).loss == 2);
      CHECK(dropping.step(batch.source(), batch.classes).loss == 2);
    };
    for (int i = 0; i < 2; ++i) {
      refused("labels", [&] { trainer.start_step(there, batch.classes); });
      refused("labels", [&] { trainer.start_step(batch.source(), batch.classes); });
      refused("rows of a batch", [&] { trainer.start_step(batch.source(), labels); });
      refused("what says which samples a batch has", [&] { trainer.start_step(DirectSource<float>(placed.array, samples, {}), labels); });
      refused("the number that dropouts draw from", [&] { dropping.start_step(there, labels); });
    }
    const Index kernels = runtime->kernels_run;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    REQUIRE(cudaStreamBeginCapture(theirs, cudaStreamCaptureModeGlobal) == cudaSuccess);
    trainer.start_step(there, labels);
    REQUIRE(cudaStreamEndCapture(theirs, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
    for (int i = 0; i < 2; ++i) cudaGraphLaunch(ready, theirs);
    CHECK(trainer.wait().mean() == 2);
    CHECK(runtime->kernels_run > kernels + 20);
    cudaGraphExecDestroy(ready), cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(theirs);
}
TEST_CASE("steps that have been recorded are started one by one within a program's own capture, and from their graphs after it") {
  const FreshRuntime runtime;
  cudaStream_t theirs = CudaRuntime::make_stream(0);
  {
    auto trainer = trainer_on<Net>(theirs, true);
    const auto pixels = trainer.backend().buffer<float>(small_input.count());
    const auto classes = trainer.backend().buffer<std::int32_t>(small_input.n);
    const cudnn::DeviceSource there(pixels.data(), small_input);
    const Labels labels = Labels::on_device(classes.data(), small_input.n);
    const auto launched = [&] {
      const Index before = runtime->graphs_launched;
      trainer.start_step(there, labels);
      return runtime->graphs_launched - before;
    };
    for (int turn = 0; turn < 2; ++turn) {   // the steps are warm; then they have graphs
      trainer.step(there, labels);
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t ready = nullptr;
      REQUIRE(cudaStreamBeginCapture(theirs, cudaStreamCaptureModeGlobal) == cudaSuccess);
      CHECK(launched() == 0);
      REQUIRE(cudaStreamEndCapture(theirs, &graph) == cudaSuccess);
      REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
      const Index kernels = runtime->kernels_run;
      cudaGraphLaunch(ready, theirs);
      CHECK(trainer.wait().mean() == 2);
      CHECK(runtime->kernels_run > kernels + 10);
      cudaGraphExecDestroy(ready), cudaGraphDestroy(graph);
    }
    trainer.step(there, labels);
    CHECK(launched() > 0);
    CHECK(trainer.backend().recording_problem().empty());
    CHECK(trainer.wait().mean() == 2);
  }
  cudaStreamDestroy(theirs);
}
TEST_CASE("a step that is refused brings its streams together again: the program's capture is still good") {
  const FreshRuntime runtime;
  cudaStream_t theirs = CudaRuntime::make_stream(0);
  {
    PolicySpec streams = rows;
    streams.streams = 2;
    auto trainer = trainer_on<Net>(theirs, false, streams);
    const HostBatch batch;
    trainer.step(batch.source(), batch.classes);
    const auto classes = trainer.backend().buffer<std::int32_t>(small_input.n);
    const auto pixels = trainer.backend().buffer<float>(small_input.count());
    const Labels labels = Labels::on_device(classes.data(), small_input.n);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(theirs, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(error_of<BackendError>([&] { trainer.start_step(batch.source(), labels); }).find("rows of a batch") != std::string::npos);
    CHECK(cudaStreamEndCapture(theirs, &graph) == cudaSuccess);
    cudaGraphDestroy(graph);
    CHECK(trainer.step(batch.source(), batch.classes).loss == 2);
  }
  cudaStreamDestroy(theirs);
}
TEST_CASE("what another thread captures in CUDA's global mode is not ended by steps") {
  const FreshRuntime runtime;
  cudaStream_t captured = CudaRuntime::make_stream(0);
  {
    auto trainer = trainer_on<DropNet>(nullptr);
    const HostBatch batch;
    const Dataset data = make_shapes({.count = 8});
    const auto placed = cudnn::place_array(trainer.backend(), SampleArray(data), {.only = cudnn::Residence::pinned});
    const DirectLoader<float> direct(placed.array, data.labels, {.batch = 4});
    for (int i = 0; i < 3; ++i) trainer.start_step(batch.source(), batch.classes), trainer.start_step(direct.batch(0, i % 2));
    trainer.wait();
    trainer.start_step(batch.source(), batch.classes), trainer.start_step(direct.batch(0, 0));   // under way
    cudaError_t begun = cudaErrorUnknown, ended = cudaErrorUnknown;
    cudaGraph_t graph = nullptr;
    std::thread([&] { begun = cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal); }).join();
    CHECK(error_of([&] { trainer.start_step(batch.source(), batch.classes), trainer.start_step(direct.batch(0, 1)); }) == "no error");
    CHECK(error_of([&] {   // plans, memory, waits and graphs that come and go
            trainer.wait();
            auto other = trainer_on<Net>(nullptr, true);
            for (int i = 0; i < 3; ++i) other.step(batch.source(), batch.classes);
            other.start_step(direct.batch(0, 0));
            other.wait();
          }) == "no error");
    std::thread([&] { ended = cudaStreamEndCapture(captured, &graph); }).join();
    CHECK(begun == cudaSuccess);
    CHECK(ended == cudaSuccess);
    if (graph) cudaGraphDestroy(graph);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;   // the thread has the one it had
    cudaThreadExchangeStreamCaptureMode(&mode);
    CHECK(mode == cudaStreamCaptureModeGlobal);
    cudaThreadExchangeStreamCaptureMode(&mode);
  }
  cudaStreamDestroy(captured);
}
