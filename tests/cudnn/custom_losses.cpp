// Losses of a program's own on the pretended device: in the program's loop, which nobody waits for, what the reference gives; labels on the device;
// steps and what they start.
#include "cudnn/host_library.hpp"
#include "cudnn/pixel_loss_law.hpp"
#include "support/error_of.hpp"
#include "support/own_losses.hpp"
#include <lrcnn/backend/cudnn/custom_loops.hpp>
#include <lrcnn/backend/cudnn/launches.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// As SquaredHinge, without loops for a device.
struct HostHinge {
  static constexpr std::string_view name = "host_hinge";
  template <class S>
  SampleLoss loss(const S& s) const {
    return SquaredHinge{}.loss(s);
  }
};
static_assert(cudnn::CompiledLoss<ImageLoss<SquaredHinge>> && cudnn::CompiledLoss<PixelLoss<LogCosh>>);
static_assert(!cudnn::CompiledLoss<ImageLoss<HostHinge>> && !cudnn::CompiledLoss<PixelCrossEntropy>);
using Net = LeNet<10>;
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>>;
constexpr Input input{4, 1, 28, 28};
struct Noise {
  std::vector<float> pixels;
  std::vector<std::int32_t> classes{1, 9, 0, 4};
  Noise() {
    const Random random(7);
    for (Index i = 0; i < input.count(); ++i) pixels.push_back(static_cast<float>(random.normal(static_cast<std::uint64_t>(i))));
  }
  MemorySource<float> source() const { return {pixels.data(), input}; }
};
template <class L>
BasicTrainer<Cudnn, L> trainer_on(const std::shared_ptr<HostLibrary<>>& library, const L& loss) {
  return {Net::layers, Rows::value, input, Sgd{.lr = 0.01}, {.seed = 3}, loss, Cudnn(library)};
}
}   // namespace
TEST_CASE("losses over pixels from functors give what the reference gives, by rows and on several streams") {
  const auto pretended = [] { return Cudnn(std::make_shared<HostLibrary<>>()); };
  as_the_reference(PixelLoss<WeightedEntropy>{}, false, pretended);
  as_the_reference(PixelLoss<LogCosh>{}, true, pretended);
}
TEST_CASE("a loss over images from a functor trains as on the reference, and nobody waits for it") {
  const Noise batch;
  const auto library = std::make_shared<HostLibrary<>>(), other = std::make_shared<HostLibrary<>>();
  const ImageLoss<SquaredHinge> loss{{.margin = 2}};
  auto trainer = trainer_on(library, loss);
  auto waits = trainer_on(other, ImageLoss<HostHinge>{});
  BasicTrainer<Reference<float, Target::all_channels>, ImageLoss<SquaredHinge>> reference(Net::layers, Rows::value, input, Sgd{.lr = 0.01},
                                                                                          {.seed = 3}, loss);
  for (int i = 0; i < 3; ++i) {
    const StepReport want = reference.step(batch.source(), batch.classes), got = trainer.step(batch.source(), batch.classes);
    CHECK(std::abs(got.loss - want.loss) <= 1e-5 * want.loss);
    CHECK(got.accuracy == want.accuracy);
  }
  waits.step(batch.source(), batch.classes);
  const auto counted = [&](auto& which, const auto& there) {
    const Index before = there->waits;
    which.start_step(batch.source(), batch.classes), which.start_step(batch.source(), batch.classes);
    return there->waits - before;
  };
  CHECK(counted(trainer, library) == 0);
  CHECK(counted(waits, other) > 0);   // on the host, on a copy of the logits
  CHECK(trainer.wait().count == 2 * input.n);
  CHECK(std::isfinite(trainer.evaluate(batch.source(), batch.classes).mean()));
}
TEST_CASE("labels on the device go to the functor; those that are no class end the steps, and nothing is updated by them") {
  Noise batch;
  const auto library = std::make_shared<HostLibrary<>>();
  auto trainer = trainer_on(library, ImageLoss<SquaredHinge>{});
  const auto there = trainer.backend().buffer<std::int32_t>(input.n);
  trainer.backend().write(there.data(), std::span<const std::int32_t>(batch.classes));
  auto same = trainer_on(std::make_shared<HostLibrary<>>(), ImageLoss<SquaredHinge>{});
  CHECK(trainer.step(batch.source(), Labels::on_device(there.data(), input.n)).loss == same.step(batch.source(), batch.classes).loss);
  CHECK(trainer.read_parameters() == same.read_parameters());
  const auto before = trainer.read_parameters();
  batch.classes[2] = 10;
  trainer.backend().write(there.data(), std::span<const std::int32_t>(batch.classes));
  CHECK(error_of<DataError>([&] { trainer.step(batch.source(), Labels::on_device(there.data(), input.n)); }) ==
        "lrcnn: 1 labels on the device are outside the network's classes; labels are 0 .. classes - 1; parameters were not changed by these steps; "
        "correct the labels, or widen the last layer");
  CHECK(trainer.read_parameters() == before);
}
TEST_CASE("a call that fails in a loss of the program's own names it, and training goes on") {
  const Noise batch;
  const auto library = std::make_shared<HostLibrary<>>();
  auto trainer = trainer_on(library, ImageLoss<SquaredHinge>{});
  trainer.step(batch.source(), batch.classes);
  bool named = false;
  for (Index k = 0; k < 4000 && !named; ++k) {
    library->fail_at = library->calls + k;
    const std::string text = error_of([&] { trainer.step(batch.source(), batch.classes); });
    named = text.starts_with("lrcnn: the loss 'squared_hinge' failed: the test says no; ");
  }
  CHECK(named);
  library->fail_at = -1;
  CHECK(std::isfinite(trainer.step(batch.source(), batch.classes).loss));
}
TEST_CASE("a list of launches has the loop of the program, and the sum behind it") {
  std::vector<cudnn::Launch> list;
  const auto library = cudnn::open_launch_list<bfloat16>(list);
  const std::vector<std::int32_t> mask(2 * 40 * 50, 0);
  REQUIRE(library->labels(Labels::of_pixels(mask, 40, 50)).good());
  list.clear();
  const auto logits = dense_view(reinterpret_cast<bfloat16*>(4096), 2, 3, {0, 40}, 50, 3);
  REQUIRE(library->custom_loss(cudnn::custom_loss<bfloat16>(WeightedEntropy{}), View<const bfloat16>(logits), 0, logits, 1, true).good());
  REQUIRE(list.size() == 2);
  CHECK(list[0].name == "custom loss");
  CHECK(list[0].blocks == 2 * 40 / 4);   // 64 threads a row
  CHECK(list[0].bytes == 2 * 2 * 40 * 50 * 3 * 2);
  CHECK(list[1].name == "TotalLoop");
}
