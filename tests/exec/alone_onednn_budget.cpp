// Trainers on oneDNN within a budget: what the process grows by, from before a trainer is made until it has done steps on batches of two sizes and
// an evaluation, is no more.
#include "exec/resident.hpp"
#include "support/error_of.hpp"
#include "support/thorough.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
#include <malloc.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// The fewest bytes of a budget, as the error for one of a byte names them.
template <class Net>
Index least_budget(const Input& input) {
  const std::string error =
      error_of<PlanError>([&] { Trainer<Net, Policy<>, Onednn>(input, Sgd{.momentum = 0.9}, {.threads = 2, .budget = Budget{1}}); });
  return std::stoll(error.substr(error.find("give a budget of ") + 17));
}
template <class Net>
void grows_within(const std::string& name, const Input& input) {
  std::vector<float> pixels(static_cast<std::size_t>(input.count()));
  const Random random(5, 1);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(random.normal(i));
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(input.n), 3);
  const MemorySource<float> source(pixels.data(), input);
  const Index least = least_budget<Net>(input);
  const auto path = std::filesystem::temp_directory_path() / ("lrcnn_budget_" + std::to_string(::getpid()) + ".txt");
  for (const Index bytes : {least, least + least / 4, 2 * least}) {
    if (bytes == least + least / 4 && !thorough()) continue;
    const auto train = [&] {
      Trainer<Net, Policy<>, Onednn> trainer(input, Sgd{.lr = 1e-6, .momentum = 0.9}, {.threads = 2, .budget = Budget{bytes}, .frontier_file = path});
      for (int i = 0; i < cases_to_do(3, 1); ++i) CHECK(std::isfinite(trainer.step(source, labels).loss));
      CHECK(std::isfinite(trainer.evaluate(source, labels).mean()));
      const MemorySource<float> last(pixels.data(), {1, input.c, input.h, input.w});   // an epoch's last batch
      const std::vector<std::int32_t> label(1, 3);
      CHECK(std::isfinite(trainer.step(last, label).loss));
      CHECK(std::isfinite(trainer.step(source, labels).loss));
    };
    if (bytes == least) train();   // so that frontiers are known: a search takes some tens of MB while it lasts
    malloc_trim(0);
    const Index grown = resident_growth(train);
    MESSAGE(name << " within " << format_bytes(bytes) << ": grown by " << format_bytes(grown));
    CHECK(grown <= bytes);
    CHECK(grown > bytes / 4);
  }
  std::filesystem::remove(path);
}
}   // namespace
TEST_CASE("the resident set stays within a budget") {
  unsetenv("LRCNN_FILL_ARENA");   // it would touch all of the arena
  if (has_turn(0, 2)) grows_within<Vgg16<10>>("VGG-16", {2, 3, 192, 192});
  if (has_turn(1, 2)) grows_within<ResNet18<10>>("ResNet-18", {2, 3, 320, 320});
  if (has_turn(0, 2)) grows_within<MobileNetV2<10>>("MobileNetV2", {4, 3, 160, 160});
  if (has_turn(1, 2)) grows_within<MobileNetV2<10>>("MobileNetV2", {32, 3, 64, 64});
}
