// On a GPU: training as a whole, the memory it takes, and what a program may bring along.
#include "cudnn/device_run.hpp"
#include <lrcnn/backend/cudnn/plan_check.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Rows = Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, Workspace<16_MiB>>;
Index free_bytes(cudnn::Device& library) {
  cudnn::DeviceInfo info;
  REQUIRE(library.info(info).good());
  return info.free_bytes;
}
}   // namespace
TEST_CASE("gpu: a small network trains as the reference does, and what it learns can be saved and gone on with") {
  const Dataset data = make_shapes({.count = 256});
  const Loader<float> loader(data, {.batch = 32, .seed = 5});
  Trainer<LeNet<10>, Rows, Cudnn> device(loader.input(), AdamW{.lr = 0.002}, {.seed = 3});
  Trainer<LeNet<10>, Policy<Column>, Reference<float>> host(loader.input(), AdamW{.lr = 0.002}, {.seed = 3});
  double first = 0, last = 0;
  for (auto& batch : loader.epoch(0)) {
    last = device.step(batch).loss;
    if (first == 0) first = last;
    const double want = host.step(batch).loss;
    CHECK(std::abs(last - want) <= 1e-3 * want);
  }
  CHECK(last < first);
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_gpu_test.lrcnn";
  device.save(file);
  Trainer<LeNet<10>, Policy<Column>, Cudnn> again(loader.input(), AdamW{.lr = 0.002});
  again.load(file);
  CHECK(again.read_parameters() == device.read_parameters());
  std::filesystem::remove(file);
}
TEST_CASE("gpu: alone: a step takes the memory that the plan says, once the kernels are loaded") {
  const auto library = cudnn::open_library<float>();
  Cudnn backend(library);
  const Problem<float> tiny(Vgg16<10>::layers, {1, 3, 32, 32}, 1), large(Vgg16<10>::layers, {8, 3, 224, 224}, 1);
  const PolicySpec policy = Policy<Stages<Overlap<7>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, Workspace<64_MiB>>::value;
  DeviceRun warm(tiny, Policy<Column, Workspace<64_MiB>>::value, backend);
  warm();
  DeviceRun first(large, policy, backend, false);
  first();   // loads the kernels that large slabs want
  const Index before = free_bytes(*library);
  DeviceRun run(large, policy, backend, false);
  run();
  const Index parameters = 2 * static_cast<Index>(large.parameters.size()) * 4, taken = before - free_bytes(*library) - parameters;
  const Index planned = run.executor().plan().peak_bytes();
  MESSAGE("planned ", planned, " bytes, taken ", taken);
  CHECK(taken <= planned + planned / 50 + 4_MiB + 4_MiB);   // allocations are rounded up to 2 MiB, parameters and gradients too
  CHECK(taken >= planned - 4_MiB);
}
TEST_CASE("gpu: values that are not numbers pass through convolutions and their ReLU, to the loss, and nothing is updated") {
  const Input input{2, 3, 32, 32};
  std::vector<float> pixels(static_cast<std::size_t>(input.count()), 0.5f);
  pixels[700] = std::nanf("");
  Trainer<Vgg11<10>, Policy<Workspace<64_MiB>>, CudnnTf32> trainer(input, Sgd{.lr = 0.01});
  const auto before = trainer.read_parameters();
  const std::vector<std::int32_t> labels{1, 2};
  for (int i = 0; i < 3; ++i) {   // started step by step, recorded, started as a recording
    trainer.start_step(MemorySource<float>(pixels.data(), input), labels);
    CHECK_THROWS_AS(trainer.wait(), NumericError);
  }
  CHECK(trainer.read_parameters() == before);
}
TEST_CASE("gpu: steps that repeat are recorded, and give the bits of those that are not") {
  const Problem<float> problem(LeNet<10>::layers, {8, 1, 28, 28}, 4);
  Cudnn recording, plain(cudnn::DeviceOptions{.record = false});
  DeviceRun first(problem, Rows::value, recording), second(problem, Rows::value, plain);
  for (int i = 0; i < 4; ++i) {
    const Outcome<float> a = first(), b = second();
    CHECK(a.loss == b.loss);
    CHECK(a.gradients == b.gradients);
    CHECK(a.input_gradient == b.input_gradient);
  }
  CHECK(recording.recording_problem() == "");
}
TEST_CASE("gpu: engines are tuned once, kept, and give what the others give") {
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_gpu_engines.txt";
  std::filesystem::remove(file);
  const Problem<float> problem(LeNet<10>::layers, {8, 1, 28, 28}, 4);
  Cudnn plain, tuned(cudnn::DeviceOptions{.tuning = {.on = true, .file = file}});
  DeviceRun first(problem, Rows::value, plain), second(problem, Rows::value, tuned);
  CHECK(worst_difference(problem, second(), first()) <= 1e-5);
  CHECK(tuned.tuner().tried() > 5);
  Cudnn again(cudnn::DeviceOptions{.tuning = {.on = true, .file = file}});
  DeviceRun third(problem, Rows::value, again);
  CHECK(again.tuner().tried() == 0);
  CHECK(third().gradients == second().gradients);
  std::filesystem::remove(file);
}
TEST_CASE("gpu: an arena that the device has no memory for is refused with the figures") {
  Cudnn backend;
  CHECK_THROWS_WITH_AS(backend.allocate(Index{1} << 50, "the plan of this test"), doctest::Contains("the plan of this test needs "), PlanError);
  CHECK_THROWS_WITH_AS(backend.allocate(Index{1} << 50, "it"), doctest::Contains("of the memory of "), PlanError);
  CHECK(backend.allocate(1_MiB, "a small one").bytes() == 1_MiB);   // the device is as it was
}
TEST_CASE("gpu: the device describes itself, and engines for the description come first among those for the device") {
  const auto described = cudnn::describe_device(cudnn::device_description());
  const auto library = cudnn::open_library<float>();
  cudnn::DeviceInfo info;
  REQUIRE(library->info(info).good());
  CHECK(described->info().name == info.name);
  CHECK(described->info().compute_capability == info.compute_capability);
  const Plan plan = make_plan(make_table(LeNet<10>::layers, {8, 1, 28, 28}), Rows::value, Cudnn::target);
  const auto requests = cudnn::requests_of<Precision::fp32>(plan);
  CHECK(requests.size() > 5);
  for (const cudnn::Request& request : requests)
    for (const cudnn::Request& attempt : cudnn::attempts(request)) {
      if (attempt.workspace_bytes < 0) continue;
      INFO(to_string(attempt.problem), " within ", attempt.workspace_bytes, " bytes");
      std::vector<std::string> there, here;
      CHECK(described->engines(there, attempt.problem, attempt.workspace_bytes).text.empty() ==
            library->engines(here, attempt.problem, attempt.workspace_bytes).text.empty());
      REQUIRE(there.size() <= here.size());   // cuDNN 9.19 has one more for some gradients in fp32 on an H100, behind all others
      CHECK(std::equal(there.begin(), there.end(), here.begin()));
      cudnn::Engine engine;
      std::unique_ptr<cudnn::Convolution> made;
      const bool serves = described->engine(engine, attempt.problem, attempt.workspace_bytes).good();
      REQUIRE(library->convolution(made, attempt.problem, attempt.workspace_bytes, "").good() == serves);
      if (!serves) continue;
      CHECK(made->name() == engine.name);
      CHECK(made->workspace_bytes() == engine.workspace_bytes);
    }
}
