// Engines chosen by trying: on the pretended device, which says how long each takes.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "support/run_network.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = LeNet<10>;
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>>;
using Library = HostLibrary<>;
const Input input{4, 1, 28, 28};
struct Run {
  std::vector<float> gradients;
  LossResult loss;
  Index tried = 0, built = 0;
  bool operator==(const Run&) const = default;
};
Run run_with(const std::shared_ptr<Library>& library, const cudnn::TuningOptions& tuning, Index images = 4) {
  Input some = input;
  some.n = images;
  BasicTrainer<Cudnn> trainer(Net::layers, Rows::value, some, Sgd{}, {.seed = 3}, {}, Cudnn(library, tuning));
  std::vector<float> pixels(static_cast<std::size_t>(some.count()));
  const Random random(7);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(random.normal(i));
  Run run;
  run.loss = trainer.gradients_of(MemorySource<float>(pixels.data(), some), std::vector<std::int32_t>(static_cast<std::size_t>(images), 3));
  run.gradients = trainer.read_gradients();
  run.tried = trainer.backend().tuner().tried();
  run.built = library->built;
  return run;
}
}   // namespace
TEST_CASE("the fastest engine that can be had is taken, tried once for each problem, and the results are the same") {
  const Run plain = run_with(std::make_shared<Library>(), {});
  CHECK(plain.tried == 0);
  const auto library = std::make_shared<Library>();
  const Run tuned = run_with(library, {.on = true});
  CHECK(tuned.gradients == plain.gradients);
  CHECK(tuned.loss == plain.loss);
  CHECK(tuned.tried > 8);
  CHECK(tuned.tried <= plain.built);
  BasicTrainer<Cudnn> trainer(Net::layers, Rows::value, input, Sgd{}, {}, {}, Cudnn(library, {.on = true}));
  const auto& choices = trainer.backend().tuner().choices().all();
  const auto ways = std::count_if(choices.begin(), choices.end(), [](const auto& c) { return c.first.starts_with("way of "); });
  CHECK(ways > 8);
  CHECK(static_cast<Index>(choices.size()) == ways + trainer.backend().tuner().tried());
}
TEST_CASE("choices are kept in a file, and the next program on the same device tries nothing") {
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_tuning_test.txt";
  std::filesystem::remove(file);
  std::vector<std::string> heard;
  const cudnn::TuningOptions tuning{.on = true, .file = file, .notice = [&](const std::string& text) { heard.push_back(text); }};
  const Run first = run_with(std::make_shared<Library>(), tuning);
  CHECK(first.tried > 8);
  const Run second = run_with(std::make_shared<Library>(), tuning);
  CHECK(second.tried == 0);
  CHECK(second.built < first.built);
  CHECK(second.gradients == first.gradients);
  CHECK(heard.empty());
  const auto changed = std::make_shared<Library>();
  changed->seconds = {{"a", 3e-3}, {"d", 1e-3}};   // the engine that was best is not there any more
  const Run without = run_with(changed, tuning);
  constexpr Index untuned = 2;                      // gradients of the linear layers' weights, which go straight to the program's
  CHECK(without.tried == second.built - untuned);   // each engine that a known way needs is found anew
  CHECK(without.gradients == first.gradients);
  CHECK(heard.empty());
  std::ofstream(file, std::ios::app) << "more";
  CHECK(run_with(std::make_shared<Library>(), tuning).tried == first.tried);   // nothing is known
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].find("it is damaged") != std::string::npos);
  CHECK(run_with(std::make_shared<Library>(), tuning).tried == 0);   // replaced
  std::filesystem::remove(file);
}
TEST_CASE("the file names the device and the version of its library") {
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_tuning_machine_test.txt";
  ChoiceFile other(file, "NVIDIA H100, compute capability 90, cuDNN 91900");
  other.note("some problem", "a");
  other.save();
  std::vector<std::string> heard;
  const Run run =
      run_with(std::make_shared<Library>(), {.on = true, .file = file, .notice = [&](const std::string& text) { heard.push_back(text); }});
  CHECK(run.tried > 8);
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].find("it is for another machine or other libraries (NVIDIA H100, compute capability 90, cuDNN 91900)") != std::string::npos);
  std::filesystem::remove(file);
}
TEST_CASE("a device that fails while engines are timed is an error, with the parameters as they were; one that can go on is not") {
  Index failed = 0, alone = 0;
  for (Index k = 4; k < 400; k += 7) {
    const auto once = std::make_shared<Library>();   // a call of one engine's, behind which the device is sound
    once->fail_at = k;
    try {
      run_with(once, {.on = true}, 1);
    } catch (const Error&) {
      ++alone;
    }
    const auto fresh = std::make_shared<Library>();
    fresh->fail_from = k;
    try {
      run_with(fresh, {.on = true}, 1);   // many runs, so one image
    } catch (const Error& e) {
      CHECK(std::string(e.what()).find("the test says no") != std::string::npos);
      ++failed;
    }
    CHECK(fresh->used == 0);
  }
  CHECK(failed == 57);
  CHECK(alone < failed);
}
namespace {
/// What a step of a small network takes, tuned: convolutions that are run, and what was chosen.
template <class B>
struct TunedStep {
  std::shared_ptr<HostLibrary<typename B::element>> library = std::make_shared<HostLibrary<typename B::element>>();
  Index convolutions = 0;
  std::map<std::string, std::string> choices{};
  double difference = 0;   ///< of gradients, to those of a backend without tuning
  void run(const PolicySpec& policy, const cudnn::TuningOptions& tuning = {.on = true}) {
    using Small = Sequential<Conv<4>, ReLU, Conv<6>, ReLU, GlobalAvgPool, Linear<3>>;
    static const Problem<float> problem(Small::layers, {4, 3, 12, 10}, 4);
    B plain(std::make_shared<HostLibrary<typename B::element>>()), backend(library, tuning);
    const auto wanted = DeviceRun<B>(problem, policy, plain)();
    DeviceRun<B> step(problem, policy, backend);
    const Index before = library->convolved;
    difference = worst_difference(problem, step(), wanted);
    convolutions = library->convolved - before;
    choices = backend.tuner().choices().all();
  }
  /// Of the ways that were chosen for convolutions of a kind: "attempt pieces".
  std::set<std::string> ways(const std::string& kind) const {
    std::set<std::string> list;
    for (const auto& [problem, choice] : choices)
      if (problem.starts_with("way of " + kind)) list.insert(choice);
    return list;
  }
};
constexpr PolicySpec small_column = Policy<Column, Workspace<64_KiB>>::value;
}   // namespace
TEST_CASE("in full precision an engine that has no room for the whole is taken in pieces if that is faster, and only then") {
  TunedStep<Cudnn> whole;
  whole.run(small_column);
  CHECK(whole.ways("forward Fp32 x 4x3") == std::set<std::string>{"0 1"});
  TunedStep<Cudnn> pieces;
  pieces.library->seconds["w"] = 0.2e-3, pieces.library->wants["w"] = 3'000;   // 144 kB for the whole, 36 for an image
  pieces.run(small_column);
  CHECK(pieces.ways("forward Fp32 x 4x3") == std::set<std::string>{"0 4"});
  CHECK(pieces.ways("backward_data") == std::set<std::string>{"0 1", "0 4"});   // of the linear layer, and of the convolution
  CHECK(pieces.convolutions == whole.convolutions + 6 * 3);
  CHECK(pieces.difference <= 1e-5);
  TunedStep<Cudnn> slower;
  slower.library->seconds["w"] = 1.2e-3, slower.library->wants["w"] = 3'000;
  slower.run(small_column);
  CHECK(slower.convolutions == whole.convolutions);
  TunedStep<Cudnn> rows;
  rows.library->seconds["w"] = 0.2e-3, rows.library->wants["w"] = 12'000;   // 144 kB for an image
  rows.run(small_column);
  CHECK(rows.ways("forward Fp32 x 4x3") == std::set<std::string>{"0 12"});
  CHECK(rows.difference <= 1e-5);
  TunedStep<Cudnn> never;
  never.library->seconds["w"] = 0.2e-3, never.library->wants["w"] = 100'000;   // more than there is for a row
  never.run(small_column);
  CHECK(never.convolutions == whole.convolutions);
  TunedStep<CudnnTf32> others;   // on tensor cores engines take little workspace
  others.library->seconds["w"] = 0.2e-3, others.library->wants["w"] = 3'000;
  others.run(small_column);
  CHECK(others.convolutions == whole.convolutions);
  CHECK(others.ways("").empty());
}
TEST_CASE("in full precision a convolution whose pieces no engine serves runs whole, tuned or not") {
  for (const bool tuned : {false, true}) {
    TunedStep<Cudnn> step;
    step.library->copies_maps = true, step.library->tries_engines = true;   // "a" has no room for the whole, and makes wrong numbers of pieces
    step.library->seconds = {{"a", 1e-3}}, step.library->wrong = "a";
    step.run(Policy<Column, Workspace<3_KiB>>::value, {.on = tuned});
    CHECK(step.library->direct > 0);
    CHECK(step.difference <= 1e-5);
    CHECK(step.ways("forward Fp32 x 4x3") == (tuned ? std::set<std::string>{"0 1"} : std::set<std::string>{}));
  }
}
TEST_CASE("in full precision no more than five numbers of pieces are timed, whatever engines want") {
  cudnn::Request request{{.n = 32, .c = 8, .h = 16, .w = 16, .k = 8, .p = 16, .q = 16, .kernel = {3, 3}, .pad = 1}, 50'000};
  HostLibrary<> library;
  library.seconds.clear();
  for (int i = 0; i < 12; ++i) library.seconds["e" + std::to_string(i)] = 1e-3, library.wants["e" + std::to_string(i)] = 300 * (i + 1);
  const std::set<Index> counts = cudnn::counts_to_time(request, library);
  CHECK(counts.size() == 5);
  CHECK(*counts.begin() == 1);
  CHECK(*counts.rbegin() < 32);   // those that want the least come first
}
TEST_CASE("in full precision bias and activation are added behind a convolution if that is faster") {
  TunedStep<Cudnn> fused, apart;
  fused.run(small_column);
  apart.library->fused = 3;
  apart.run(small_column);
  CHECK(fused.ways("forward Fp32 x 4x3") == std::set<std::string>{"0 1"});
  CHECK(apart.ways("forward Fp32 x 4x3") == std::set<std::string>{"2 1"});
  CHECK(apart.difference <= 1e-6);
  CHECK(apart.library->loops_started > fused.library->loops_started);
}
TEST_CASE("the way of a convolution is kept in the file, and one that is not understood or not to be had any more is found anew") {
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_tuning_ways_test.txt";
  std::filesystem::remove(file);
  const auto pieces = [&] {
    TunedStep<Cudnn> step;
    step.library->seconds["w"] = 0.2e-3, step.library->wants["w"] = 3'000;
    step.run(small_column, {.on = true, .file = file});
    return step;
  };
  const auto first = pieces(), second = pieces();
  CHECK(second.choices == first.choices);
  CHECK(second.convolutions == first.convolutions);
  CHECK(second.library->built < first.library->built / 2);
  for (const std::string nonsense : {"7 1", "0 0", "0 -3", "0 1000", "0", "none", ""}) {
    ChoiceFile spoilt(file, "pretended device, compute capability 90, cuDNN 91900");
    for (const auto& [problem, choice] : first.choices)
      if (problem.starts_with("way of ")) spoilt.note(problem, nonsense);
    spoilt.save();
    const auto again = pieces();
    INFO("'", nonsense, "'");
    CHECK(again.choices == first.choices);
    CHECK(again.convolutions == first.convolutions);
  }
  std::filesystem::remove(file);
}
