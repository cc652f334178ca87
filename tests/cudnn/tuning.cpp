// Engines chosen by trying: on the pretended device, which says how long each takes.
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
  const ChoiceFile& choices = trainer.backend().tuner().choices();
  CHECK(choices.size() == trainer.backend().tuner().tried());
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
  CHECK(run_with(changed, tuning).tried == first.tried);
  CHECK(heard.empty());
  std::ofstream(file, std::ios::app) << "more";
  CHECK(run_with(std::make_shared<Library>(), tuning).tried == first.tried);
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
