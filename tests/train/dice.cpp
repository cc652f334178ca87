// Dice loss in training: the same under every policy, in groups of images and in accumulated batches; plans keep the output in full.
#include "support/error_of.hpp"
#include "train/scenes.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/dice.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing::scenes;
using lrcnn::testing::error_of;
namespace {
using Net = Sequential<Conv<6>, ReLU, Conv<6>, GroupNorm<2>, ReLU, Conv<3, Window{.kernel = 1}>>;
using Trainee = BasicTrainer<Reference<double>, DiceLoss>;
}   // namespace
TEST_CASE("dice: a network learns where things are, under every policy alike") {
  const Scenes scenes;
  std::vector<double> expected;
  for (const PolicySpec& policy : {Policy<Column>::value, Policy<Overlap<3>, RecomputeAll>::value, Policy<Share<4>, Images<4>>::value,
                                   Policy<ByImages<2, Overlap<2>>, RecomputeCheap>::value, Policy<ExtraPasses<Overlap<3>>, RecomputeAll>::value}) {
    CAPTURE(to_string(policy));
    Trainee trainer(Net::layers, policy, input_of(images), Sgd{.lr = 0.5, .momentum = 0.9}, {.seed = 3});
    CHECK(check_plan(trainer.plan()).empty());
    CHECK_FALSE(trainer.plan().options.rows_loss);
    const double first = trainer.step(scenes.part(all), scenes.classes(all)).loss;
    for (int i = 0; i < 5; ++i) trainer.step(scenes.part(all), scenes.classes(all));
    const auto here = trainer.read_parameters();
    if (expected.empty()) expected = here;
    CHECK(worst(here, expected) < 1e-11);
    for (int i = 0; i < 30; ++i) trainer.step(scenes.part(all), scenes.classes(all));
    const LossResult last = trainer.evaluate(scenes.part(all), scenes.classes(all));
    CHECK(last.mean() < 0.4 * first);
    CHECK(last.count == images * height * width);
    CHECK(trainer.predict(scenes.part(all)).c == 3);
  }
}
TEST_CASE("dice: batches that are accumulated are one batch, and threads change no bit") {
  const Scenes scenes;
  const auto of = [&](std::vector<Range> batches, int threads) {
    Trainee trainer(Net::layers, Policy<Overlap<2>>::value, input_of(batches[0].size()), Sgd{.lr = 0.5}, {.seed = 3, .threads = threads});
    for (int step = 0; step < 3; ++step) {
      for (const Range r : batches) trainer.accumulate(scenes.part(r), scenes.classes(r));
      trainer.update();
    }
    return trainer.read_parameters();
  };
  const auto whole = of({all}, 1);
  CHECK(worst(of({{0, 2}, {2, 6}}, 1), whole) < 1e-13);
  CHECK(of({all}, 4) == whole);
}
TEST_CASE("dice: a plan that takes its output through the loss slab by slab is refused, and so is a batch without a pixel that counts") {
  const Scenes scenes;
  const Table table = make_table(Net::layers, input_of(images));
  Reference<double> backend(1);
  std::vector<double> parameters(static_cast<std::size_t>(parameter_count(table))), gradients(parameters.size());
  Executor<Reference<double>> run(make_plan(table, Policy<Overlap<2>>::value, backend.target, {.rows_loss = true}), backend, parameters.data(),
                                  gradients.data());
  const std::string text = error_of([&] { run.run(scenes.part(all), scenes.classes(all), DiceLoss{}); });
  CHECK(text.starts_with("lrcnn: the loss 'dice' over whole maps is given to the plan of "));
  CHECK(text.ends_with("; with rows_loss the output goes through the loss slab by slab; plan without rows_loss"));
  Trainee trainer(Net::layers, Policy<>::value, input_of(images), Sgd{}, {}, DiceLoss{.ignore = 0});
  const std::vector<std::int32_t> none(static_cast<std::size_t>(images * height * width), 0);
  CHECK(error_of([&] {
          trainer.step(scenes.part(all), Labels::of_pixels(none, height, width));
        }).starts_with("lrcnn: none of the 12x10 pixels of 6 images counts for the loss 'dice'"));
}
