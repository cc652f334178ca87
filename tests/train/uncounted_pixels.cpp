// Batches of whose pixels none counts. Accumulated, or in an epoch, they add nothing, and a round or epoch of nothing else is refused; alone they are
// refused.
#include "support/error_of.hpp"
#include "train/scenes.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/layer/dice.hpp>
#include <lrcnn/layer/layers.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing::scenes;
using lrcnn::testing::error_of;
namespace {
using ThreeMaps = Sequential<Conv<6>, ReLU, Conv<3>>;
using NormedMaps = Sequential<Conv<6>, BatchNorm, ReLU, Conv<3>>;
/// Scenes of which some images have no label but 255.
struct PartlyLabelled : Scenes {
  explicit PartlyLabelled(Range none) { std::fill(mask.begin() + none.begin * height * width, mask.begin() + none.end * height * width, 255); }
};
/// And no pixels either.
struct PartlyKnown : PartlyLabelled {
  explicit PartlyKnown(Range none) : PartlyLabelled(none) {
    std::fill(pixels.begin() + none.begin * height * width, pixels.begin() + none.end * height * width, NAN);
  }
};
const std::vector<PolicySpec> some_policies{Policy<Column>::value, Policy<Overlap<3>, RecomputeAll>::value, Policy<Share<4>, Images<2>>::value};
const std::vector<Range> in_twos{{0, 2}, {2, 4}, {4, 6}};
template <class L>
void check_update(const L& loss) {
  for (const PolicySpec& policy : some_policies)
    for (const Range none : in_twos) {
      INFO(to_string(policy));
      INFO(none.begin);
      const PartlyLabelled scenes(none);
      BasicTrainer<Reference<double>, L> whole(ThreeMaps::layers, policy, input_of(images), AdamW{.lr = 0.01}, {.seed = 2}, loss),
          parts(ThreeMaps::layers, policy, input_of(images), AdamW{.lr = 0.01}, {.seed = 2}, loss);
      for (int round = 0; round < 2; ++round) {
        const StepReport want = whole.step(scenes.part(all), scenes.classes(all));
        for (const Range r : in_twos) parts.accumulate(scenes.part(r), scenes.classes(r));
        const StepReport got = parts.update();
        CHECK(got.images == images);
        CHECK(got.loss == doctest::Approx(want.loss).epsilon(1e-12));
        CHECK(got.accuracy == want.accuracy);
        CHECK(worst(parts.read_gradients(), whole.read_gradients()) <= 1e-13);
        CHECK(worst(parts.read_parameters(), whole.read_parameters()) <= 1e-9);
      }
    }
}
/// Batches to evaluate, or to train on.
struct Parts {
  struct Batch {
    MemorySource<double> source;
    Labels of;
    operator const RowSource<double>&() const { return source; }
    Labels labels() const { return of; }
  };
  std::vector<Batch> parts;
  Input input() const { return parts.front().source.shape(); }
  Index batches() const { return static_cast<Index>(parts.size()); }
  std::vector<Batch> epoch(Index, Index first = 0) const { return {parts.begin() + first, parts.end()}; }
};
Parts parts_of(const Scenes& scenes, const std::vector<Range>& cut) {
  Parts loader;
  for (const Range r : cut) loader.parts.push_back({scenes.part(r), scenes.classes(r)});
  return loader;
}
template <class L>
void check_evaluation(const L& loss, const Scenes& scenes) {
  BasicTrainer<Reference<double>, L> trainer(ThreeMaps::layers, Policy<Share<4>>::value, input_of(images), Sgd{}, {.seed = 2}, loss);
  const double want = trainer.evaluate(scenes.part(all), scenes.classes(all)).mean();
  for (const auto& cut : {std::vector<Range>{all}, in_twos, std::vector<Range>{{0, 1}, {1, 6}}, std::vector<Range>{{0, 5}, {5, 6}}}) {
    const Metrics metrics = trainer.evaluate(parts_of(scenes, cut));
    CHECK(metrics.loss() == doctest::Approx(want).epsilon(1e-12));
  }
}
}   // namespace
TEST_CASE("an evaluation's loss is that of one batch of all images, whatever pixels weigh and however images are cut into batches") {
  Scenes scenes;
  for (std::size_t i = 0; i < scenes.mask.size() / 3; ++i)
    if (i % 5 != 0) scenes.mask[i] = 255;   // in the first images few pixels count
  check_evaluation(PixelCrossEntropy{.weights = {0.5, 3, 1}, .ignore = 255}, scenes);
  check_evaluation(PixelCrossEntropy{.ignore = 255}, scenes);
  check_evaluation(DiceLoss{.ignore = 255}, scenes);
  for (const Range none : in_twos) {   // in one of the batches none does
    const PartlyLabelled partly(none);
    check_evaluation(PixelCrossEntropy{.weights = {0.5, 3, 1}, .ignore = 255}, partly);
    check_evaluation(DiceLoss{.ignore = 255}, partly);
  }
  const PartlyKnown partly({2, 4});
  BasicTrainer<Reference<double>, PixelCrossEntropy> trainer(NormedMaps::layers, Policy<>::value, input_of(2), Sgd{}, {}, {.ignore = 255});
  CHECK(trainer.evaluate(parts_of(partly, in_twos)) == trainer.evaluate(parts_of(partly, {{0, 2}, {4, 6}})));
  Scenes first_class;
  std::fill(first_class.mask.begin(), first_class.mask.begin() + 2 * height * width, 0);
  check_evaluation(PixelCrossEntropy{.weights = {0, 3, 1}}, first_class);   // pixels that weigh nothing
}
TEST_CASE("an evaluation in which no pixel counts is refused") {
  const PartlyLabelled unlabelled(all);
  BasicTrainer<Reference<double>, PixelCrossEntropy> trainer(ThreeMaps::layers, Policy<>::value, input_of(images), Sgd{}, {}, {.ignore = 255});
  CHECK(error_of<DataError>([&] {
          trainer.evaluate(parts_of(unlabelled, in_twos));
        }).starts_with("lrcnn: none of the pixels of the 6 images that were evaluated counts for the loss 'pixel_cross_entropy'"));
}
TEST_CASE("fit passes over batches in which no pixel counts: they are steps without an update and without a loss") {
  for (const TrainerOptions& options : {TrainerOptions{.seed = 2}, TrainerOptions{.seed = 2, .clip = {.norm = 0.01}}})
    for (const Range none : in_twos) {
      INFO(none.begin);
      const PartlyKnown scenes(none);
      const auto make = [&] {
        return BasicTrainer<Reference<double>, PixelCrossEntropy>(NormedMaps::layers, Policy<Share<4>, RecomputeAll>::value, input_of(2),
                                                                  AdamW{.lr = 0.01}, options, {.ignore = 255});
      };
      auto trainer = make(), others = make();
      std::vector<Range> labelled = in_twos;
      std::erase_if(labelled, [&](Range r) { return r.begin == none.begin; });
      const auto got = trainer.fit(parts_of(scenes, in_twos), nullptr, {.epochs = 2});
      const auto want = others.fit(parts_of(scenes, labelled), nullptr, {.epochs = 2});
      CHECK(trainer.read_parameters() == others.read_parameters());   // with running statistics; AdamW's update depends on its number
      CHECK(got.back().train_loss == want.back().train_loss);
      CHECK(got.back().train_accuracy == want.back().train_accuracy);
      CHECK(trainer.steps_done() == 6);
      CHECK(trainer.state().updates == 4);
    }
}
TEST_CASE("an epoch in which no pixel counts is refused at its end") {
  const PartlyLabelled unlabelled(all);
  BasicTrainer<Reference<double>, PixelCrossEntropy> trainer(NormedMaps::layers, Policy<>::value, input_of(2), Sgd{.lr = 0.1}, {}, {.ignore = 255});
  CHECK(error_of<DataError>([&] {
          trainer.fit(parts_of(unlabelled, in_twos), nullptr, {.epochs = 2});
        }).starts_with("lrcnn: none of the pixels of the 6 images of epoch 1 counts for the loss 'pixel_cross_entropy'"));
  CHECK(trainer.state().updates == 0);
  const Scenes labelled;                                                                           // and then begins anew
  const auto epochs = trainer.fit(parts_of(labelled, {{0, 2}, {2, 4}}), nullptr, {.epochs = 2});   // of other batches
  CHECK(epochs.size() == 2);
  CHECK(trainer.state().updates == 4);
}
TEST_CASE("an accumulated batch of whose pixels none counts adds nothing, whichever of the round it is") {
  check_update(PixelCrossEntropy{.weights = {0.5, 3, 1}, .ignore = 255});
  check_update(DiceLoss{.ignore = 255});
}
TEST_CASE("an accumulated batch of whose pixels none counts may hold what is no number") {
  for (const Range none : in_twos) {
    const PartlyKnown scenes(none);
    const auto make = [] {
      return BasicTrainer<Reference<double>, PixelCrossEntropy>(NormedMaps::layers, Policy<Share<4>>::value, input_of(2), Sgd{.lr = 0.1}, {},
                                                                {.ignore = 255});
    };
    auto trainer = make(), others = make();
    for (const Range r : in_twos) {
      trainer.accumulate(scenes.part(r), scenes.classes(r));
      if (r.begin != none.begin) others.accumulate(scenes.part(r), scenes.classes(r));
    }
    CHECK(trainer.update().loss == others.update().loss);
    CHECK(trainer.read_parameters() == others.read_parameters());   // with running statistics
  }
}
TEST_CASE("a round in which no pixel counts is refused at its end, and leaves nothing behind") {
  const Scenes scenes;
  const PartlyLabelled unlabelled(all);
  BasicTrainer<Reference<double>, PixelCrossEntropy> trainer(NormedMaps::layers, Policy<Share<4>>::value, input_of(images), Sgd{.lr = 0.1}, {},
                                                             {.ignore = 255});
  const auto before = trainer.read_parameters();   // and running statistics
  trainer.start_step(scenes.part(all), scenes.classes(all));
  const auto after_step = trainer.read_parameters();
  CHECK(after_step != before);
  for (const Range r : in_twos) trainer.accumulate(unlabelled.part(r), unlabelled.classes(r));
  CHECK(trainer.read_parameters() == after_step);   // with running statistics
  for (const double g : trainer.read_gradients()) CHECK(std::isfinite(g));
  CHECK(error_of<DataError>([&] { trainer.update(); }) ==
        "lrcnn: none of the pixels of the 6 images that were accumulated counts for the loss 'pixel_cross_entropy'; the mean is over pixels that "
        "are not ignored and have a weight; correct the masks, or the loss's `ignore` or weights, or leave the batch out");
  CHECK(trainer.read_parameters() == after_step);
  CHECK(trainer.steps_done() == 1);
  CHECK(error_of([&] { trainer.update(); }).starts_with("lrcnn: an update without gradients"));
  CHECK(trainer.wait().count == images * height * width);   // of the step
  trainer.accumulate(scenes.part(all), scenes.classes(all));
  CHECK(trainer.update().images == images);
}
TEST_CASE("a single step, an evaluation and gradients of a batch of which no pixel counts are refused") {
  const PartlyLabelled unlabelled(all);
  BasicTrainer<Reference<double>, PixelCrossEntropy> trainer(ThreeMaps::layers, Policy<>::value, input_of(images), Sgd{.lr = 0.1}, {},
                                                             {.ignore = 255});
  const std::string text = "lrcnn: none of the 12x10 pixels of 6 images counts for the loss 'pixel_cross_entropy'";
  CHECK(error_of<DataError>([&] { trainer.step(unlabelled.part(all), unlabelled.classes(all)); }).starts_with(text));
  CHECK(error_of<DataError>([&] { trainer.evaluate(unlabelled.part(all), unlabelled.classes(all)); }).starts_with(text));
  CHECK(error_of<DataError>([&] { trainer.gradients_of(unlabelled.part(all), unlabelled.classes(all)); }).starts_with(text));
  CHECK(trainer.steps_done() == 0);
}
