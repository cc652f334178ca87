// Each call of the CUDA runtime and of cuDNN made to fail in turn, from opening a device to closing it: an error with words, nothing left behind,
// no error in the runtime, the program's device current, and training that goes on.
#include "cuda_runtime/run.hpp"
#include "support/thorough.hpp"
#include <lrcnn/backend/cudnn/place_array.hpp>
#include <lrcnn/data/direct_loader.hpp>
#include <optional>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<4>, ReLU, Dropout<>, MaxPool<>, Flatten, Linear<10>>;
constexpr PolicySpec in_turn = Policy<Share<2>, RecomputeAll, Workspace<1_MiB>>::value;
constexpr PolicySpec side_by_side = Policy<Overlap<2>, RecomputeAll, Workspace<1_MiB>, Streams<2>, Prefetch>::value;
int current() {
  int device = -1;
  cudaGetDevice(&device);
  return device;
}
/// What a program does: opens, trains, lets go. Step by step at first, then recorded, then recorded steps alone.
template <class B>
struct Program {
  const Dataset data = make_shapes({.count = 8});
  HostBatch batch;
  std::optional<BasicTrainer<B>> trainer;
  void open(const PolicySpec& policy) {
    trainer.emplace(Net::layers, policy, small_input, Sgd{.lr = 0.01, .momentum = 0.9}, TrainerOptions{.seed = 3}, SoftmaxCrossEntropy{},
                    B(cudnn::DeviceOptions{.device = 1}));
  }
  void train() {
    for (int i = 0; i < 3; ++i) trainer->step(batch.source(), batch.classes);
    const auto placed = cudnn::place_array(trainer->backend(), SampleArray(data), {.only = cudnn::Residence::pinned});
    const DirectLoader<float> direct(placed.array, data.labels, {.batch = 4});
    trainer->start_step(direct.batch(0, 0));
    trainer->wait();
    trainer->backend().order_behind(nullptr), trainer->backend().order_before(nullptr);
  }
  void use(const PolicySpec& policy) {
    open(policy);
    train();
    trainer.reset();
  }
};
/// The sweep over the calls of a program's life.
template <class B>
void sweep(const PolicySpec& policy) {
  const FreshRuntime runtime;
  const Index begun = runtime->calls;
  Program<B>().use(policy);
  const Index calls = runtime->calls - begun;
  CHECK(calls > 300);
  CHECK(runtime->graphs_launched > 0);
  const Index stride = cases_to_do(1, 3);
  Index errors = 0;
  std::map<std::string, Index> functions;
  for (Index k = 0; k < calls; k += k < 150 ? 1 : stride) {
    Program<B> program;
    runtime->failed = "";
    runtime->fail_at = runtime->calls + k, runtime->failure = k % 2 == 0 ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure;
    const std::string text = error_of([&] { program.use(policy); });
    INFO("call ", k, ", ", runtime->failed, ": ", text);
    ++functions[runtime->failed];
    if (text != "no error") {
      CHECK(text.starts_with("lrcnn: "));
      CHECK(text.find("; ") != std::string::npos);   // a rule, and what to change
      ++errors;
    }
    CHECK(current() == 0);
    CHECK_FALSE(CudaRuntime::error_is_left());
    runtime->fail_at = -1;
    CHECK(error_of([&] {
            if (program.trainer) program.train();   // the device has come back
            else program.use(policy);
          }) == "no error");
    program.trainer.reset();
    REQUIRE(CudaRuntime::left() == "");
    CHECK(runtime->violations == std::vector<std::string>{});
    runtime->violations.clear();
  }
  CHECK(errors > cases_to_do(100, 50));
  CHECK(functions.size() > 25);
}
}   // namespace
TEST_CASE("each call that fails: steps on one stream, in 32 bits") { sweep<Cudnn>(in_turn); }
TEST_CASE("each call that fails: steps on several streams, in 16 bits") { sweep<CudnnBf16>(side_by_side); }
TEST_CASE("an error that the program has left in the runtime is not taken for a launch's") {
  const FreshRuntime runtime;
  HostBatch batch;
  Program<Cudnn> program;
  program.open(in_turn);
  cudaSetDevice(17);
  CHECK(CudaRuntime::error_is_left());
  CHECK(program.trainer->step(batch.source(), batch.classes).loss == 2);
}
