// Steps that do not count, of which a device tells late: labels in its memory that are no classes, losses that are not finite. Counts of steps
// and updates are of those whose update was applied. On the pretended device.
#include "cudnn/host_library.hpp"
#include "support/error_of.hpp"
#include "support/own_dice.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using SmallClassifier = Sequential<Conv<4>, BatchNorm, ReLU, GlobalAvgPool, Linear<5>>;
const Input four_images{4, 2, 6, 6};
/// A batch whose labels are in the device's memory: good ones, and some that are no classes; and labels on the host that are none.
struct BatchThere {
  std::vector<float> pixels, broken;
  const std::vector<std::int32_t> no_classes = std::vector<std::int32_t>(4, 5);
  std::vector<std::int32_t> classes{0, 1, 2, 3};
  std::shared_ptr<HostLibrary<>> library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> trainer;
  Cudnn::Buffer<std::int32_t> good_there, bad_there;
  explicit BatchThere(const TrainerOptions& options = {})
      : pixels(static_cast<std::size_t>(four_images.count())),
        trainer(SmallClassifier::layers, Policy<Share<2>, Workspace<1_MiB>>::value, four_images, AdamW{.lr = 0.01}, options, {}, Cudnn(library)),
        good_there(trainer.backend().buffer<std::int32_t>(4)),
        bad_there(trainer.backend().buffer<std::int32_t>(4)) {
    const Random random(7);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(random.normal(i));
    broken = pixels;
    broken[9] = NAN;
    trainer.backend().write(good_there.data(), std::span<const std::int32_t>(classes));
    trainer.backend().write(bad_there.data(), std::span<const std::int32_t>(std::vector<std::int32_t>{0, 1, 5, 3}));
  }
  MemorySource<float> images() const { return {pixels.data(), four_images}; }
  /// The same with a pixel that is not a number.
  MemorySource<float> not_finite() const { return {broken.data(), four_images}; }
  Labels good() const { return Labels::on_device(good_there.data(), 4); }
  Labels bad() const { return Labels::on_device(bad_there.data(), 4); }
  template <class F>
  void refused(F f) const {
    CHECK(error_of<DataError>(f) ==
          "lrcnn: 1 labels on the device are outside the network's classes; labels are 0 .. classes - 1; parameters were not changed by these "
          "steps; correct the labels, or widen the last layer");
  }
  void check_count(Index steps) {
    CHECK(trainer.steps_done() == steps);
    CHECK(trainer.state().updates == steps);
  }
};
template <class L = PixelCrossEntropy>
BasicTrainer<Cudnn, L> trainer_of_maps(const L& loss = {.ignore = 255}) {
  using Maps = Sequential<Conv<4>, ReLU, Conv<3>>;
  return {Maps::layers, Policy<Share<2>, Workspace<1_MiB>>::value, four_images, Sgd{.lr = 0.1}, {.seed = 3},
          loss,         Cudnn(std::make_shared<HostLibrary<>>())};
}
std::vector<std::int32_t> mask_of_maps() {
  std::vector<std::int32_t> mask(static_cast<std::size_t>(4 * 6 * 6));
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<std::int32_t>(i % 3);
  return mask;
}
const std::vector<TrainerOptions> with_and_without_waiting{{.seed = 3}, {.seed = 3, .clip = {.norm = 1}}};
}   // namespace
TEST_CASE("a step with labels on the device that are no classes does not count") {
  for (const TrainerOptions& options : with_and_without_waiting) {
    BatchThere there(options), same(options);
    auto& trainer = there.trainer;
    trainer.step(there.images(), there.good()), same.trainer.step(same.images(), same.good());
    there.refused([&] { trainer.step(there.images(), there.bad()); });
    there.check_count(1);
    CHECK(trainer.step(there.images(), there.good()).loss == same.trainer.step(same.images(), same.good()).loss);
    there.check_count(2);
    CHECK(trainer.read_parameters() == same.trainer.read_parameters());   // AdamW's update depends on its number
  }
}
TEST_CASE("of steps that were started, those from the first one on whose labels are no classes do not count") {
  BatchThere there({.seed = 3}), same({.seed = 3});
  auto& trainer = there.trainer;
  for (int i = 0; i < 2; ++i) trainer.start_step(there.images(), there.good()), same.trainer.start_step(same.images(), same.good());
  trainer.start_step(there.images(), there.bad());
  trainer.start_step(there.images(), there.good());
  there.refused([&] { trainer.wait(); });
  same.trainer.wait();
  there.check_count(2);
  CHECK(trainer.read_parameters() == same.trainer.read_parameters());
  CHECK(trainer.wait().count == 0);
  trainer.step(there.images(), there.good()), same.trainer.step(same.images(), same.good());
  CHECK(trainer.read_parameters() == same.trainer.read_parameters());
}
TEST_CASE("steps that were started and do not count are no error of a training file's that is read") {
  BatchThere there({.seed = 3}), same({.seed = 3});
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_uncounted_steps_test.train";
  for (BatchThere* each : {&there, &same}) each->trainer.step(each->images(), each->good());
  there.trainer.save(file);
  for (const bool labels : {false, true}) {
    there.trainer.start_step(labels ? there.images() : there.not_finite(), labels ? there.bad() : there.good());
    there.trainer.load(file);
    there.check_count(1);
    CHECK(there.trainer.wait().count == 0);
    CHECK(there.trainer.read_parameters() == same.trainer.read_parameters());
  }
  there.trainer.step(there.images(), there.good()), same.trainer.step(same.images(), same.good());
  CHECK(there.trainer.read_parameters() == same.trainer.read_parameters());
  std::filesystem::remove(file);
  there.trainer.start_step(there.not_finite(), there.good());   // if there is no file, they are told
  CHECK(error_of<NumericError>([&] { there.trainer.load(file); }).starts_with("lrcnn: in step 3 the loss is not finite"));
  there.check_count(2);
  CHECK(error_of<DataError>([&] { there.trainer.load(file); }) != "no error");
}
TEST_CASE("a round with labels on the device that are no classes is rolled back when that is found out") {
  for (const TrainerOptions& options : with_and_without_waiting) {
    BatchThere there(options);
    auto& trainer = there.trainer;
    trainer.step(there.images(), there.good());
    const auto before = trainer.read_parameters();
    const auto is_as_before = [&] {
      there.check_count(1);
      CHECK(trainer.read_parameters() == before);
      CHECK(error_of([&] { trainer.update(); }).starts_with("lrcnn: an update without gradients"));
    };
    trainer.accumulate(there.images(), there.good());
    trainer.accumulate(there.images(), there.bad());
    there.refused([&] { trainer.update(); });
    is_as_before();
    trainer.accumulate(there.images(), there.bad());   // an evaluation waits, so it finds out
    there.refused([&] { trainer.evaluate(there.images(), there.good()); });
    is_as_before();
  }
}
TEST_CASE("an evaluation on labels on the device that are no classes leaves counts and the round at hand as they are") {
  BatchThere there({.seed = 3}), same({.seed = 3});
  auto& trainer = there.trainer;
  for (BatchThere* each : {&there, &same}) each->trainer.step(each->images(), each->good());
  for (BatchThere* each : {&there, &same}) each->trainer.accumulate(each->images(), each->good());
  there.refused([&] { trainer.evaluate(there.images(), there.bad()); });
  there.check_count(1);
  CHECK(trainer.update().loss == same.trainer.update().loss);
  there.check_count(2);
  CHECK(trainer.read_parameters() == same.trainer.read_parameters());
}
TEST_CASE("a step that is refused before it is on the device leaves open which of those before it count") {
  BatchThere there({.seed = 3});
  auto& trainer = there.trainer;
  trainer.start_step(there.images(), there.good());
  trainer.start_step(there.not_finite(), there.good());
  CHECK(error_of<DataError>([&] { trainer.start_step(there.images(), there.no_classes); }).starts_with("lrcnn: label 5 of image 0 is outside"));
  CHECK(error_of<NumericError>([&] { trainer.wait(); }).starts_with("lrcnn: in step 2 the loss is not finite"));
  there.check_count(1);
  trainer.start_step(there.images(), there.good());
  CHECK(error_of<DataError>([&] { trainer.start_step(there.images(), there.no_classes); }) != "no error");
  CHECK(trainer.wait().count == 4);
  there.check_count(2);
}
TEST_CASE("a round that is rolled back leaves none of its losses on the device") {
  BatchThere there({.seed = 3});
  auto& trainer = there.trainer;
  const auto rolled_back = [&] {
    trainer.accumulate(there.images(), there.good());
    CHECK(error_of<DataError>([&] { trainer.accumulate(there.images(), there.no_classes); }).starts_with("lrcnn: label 5 of image 0 is outside"));
  };
  rolled_back();
  CHECK(trainer.wait().count == 0);
  trainer.start_step(there.images(), there.good());
  CHECK(trainer.wait().count == 4);
  rolled_back();
  trainer.start_step(there.not_finite(), there.good());
  CHECK(error_of<NumericError>([&] { trainer.wait(); }).starts_with("lrcnn: in step 2 the loss is not finite"));
  there.check_count(1);
}
TEST_CASE("on a device, too, an accumulated batch of whose pixels none counts adds nothing, and a round of nothing else is refused") {
  const BatchThere there;
  const std::vector<std::int32_t> mask = mask_of_maps(), none(mask.size(), 255);
  const Labels labels = Labels::of_pixels(mask, 6, 6), nothing = Labels::of_pixels(none, 6, 6);
  auto alone = trainer_of_maps();
  const double loss = alone.step(there.images(), labels).loss;
  for (const bool first : {true, false}) {
    auto trainer = trainer_of_maps();
    trainer.accumulate(there.images(), first ? nothing : labels);
    trainer.accumulate(there.images(), first ? labels : nothing);
    const StepReport report = trainer.update();
    CHECK(report.loss == loss);
    CHECK(report.images == 8);
    CHECK(trainer.read_gradients() == alone.read_gradients());
    CHECK(trainer.read_parameters() == alone.read_parameters());
    trainer.accumulate(there.images(), nothing);
    CHECK(error_of<DataError>([&] { trainer.update(); }).starts_with("lrcnn: none of the pixels of the 4 images that were accumulated counts"));
    CHECK(trainer.wait().count == 0);
    CHECK(trainer.steps_done() == 1);
    CHECK(trainer.read_parameters() == alone.read_parameters());
  }
}
TEST_CASE("means over pixels are those of the steps that count: what other steps weigh is in none") {
  const BatchThere there;
  const std::vector<std::int32_t> mask = mask_of_maps();
  const Labels labels = Labels::of_pixels(mask, 6, 6);
  auto trainer = trainer_of_maps(), same = trainer_of_maps();
  same.step(there.images(), labels);
  trainer.start_step(there.images(), labels);
  trainer.start_step(there.not_finite(), labels);
  CHECK(error_of<NumericError>([&] { trainer.wait(); }).starts_with("lrcnn: in step 2 the loss is not finite"));
  for (BasicTrainer<Cudnn, PixelCrossEntropy>* each : {&trainer, &same}) each->start_step(there.images(), labels);
  CHECK(trainer.wait() == same.wait());
  CHECK(trainer.read_parameters() == same.read_parameters());
}
TEST_CASE("losses that the host works out for a device are told, and stay when a later step fails") {
  struct Unreadable : RowSource<float> {
    Shape shape() const override { return four_images; }
    void read(Index, const View<float>&) const override { throw DataError("lrcnn: unreadable"); }
  };
  const BatchThere there;
  const std::vector<std::int32_t> mask = mask_of_maps();
  const Labels labels = Labels::of_pixels(mask, 6, 6);
  auto trainer = trainer_of_maps(OwnDice{{.ignore = 255}});
  const LossResult first = trainer.gradients_of(there.images(), labels);
  CHECK(first.mean() > 0);
  trainer.start_step(there.images(), labels);
  CHECK(trainer.wait() == first);
  const LossResult second = trainer.gradients_of(there.images(), labels);
  CHECK(trainer.step(there.images(), labels).loss == second.mean());
  const LossResult third = trainer.gradients_of(there.images(), labels);
  trainer.start_step(there.images(), labels);
  CHECK(error_of<DataError>([&] { trainer.start_step(Unreadable{}, labels); }) != "no error");
  CHECK(trainer.wait() == third);
  CHECK(trainer.steps_done() == 3);
}
TEST_CASE("steps whose losses could not be fetched are not taken for later ones") {
  BatchThere there({.seed = 3});
  auto& trainer = there.trainer;
  for (int i = 0; i < 3; ++i) trainer.start_step(there.images(), there.good());
  there.library->fail_at = there.library->calls;
  CHECK(error_of<BackendError>([&] { trainer.wait(); }) != "no error");
  there.library->fail_at = -1;
  CHECK(trainer.wait() == LossResult{});
  const Index known = trainer.steps_done();
  there.refused([&] { trainer.step(there.images(), there.bad()); });
  CHECK(trainer.steps_done() == known);
}
namespace {
struct LabelledThere : RowSource<float> {
  MemorySource<float> images;
  Labels own;
  LabelledThere(const MemorySource<float>& all, const Labels& of_all) : images(all), own(of_all) {}
  Shape shape() const override { return images.shape(); }
  void read(Index first, const View<float>& to) const override { images.read(first, to); }
  Labels labels() const { return own; }
};
/// Batches for fit().
struct LoaderThere {
  std::vector<LabelledThere> list;
  Index batches() const { return static_cast<Index>(list.size()); }
  Input input() const { return four_images; }
  std::vector<LabelledThere> epoch(Index, Index = 0) const { return list; }
};
/// The same images with each of these labels.
LoaderThere loader_of(const BatchThere& there, const std::vector<Labels>& labels) {
  LoaderThere loader;
  for (const Labels& each : labels) loader.list.emplace_back(there.images(), each);
  return loader;
}
}   // namespace
TEST_CASE("fit stands after the last batch that counts where labels on the device are no classes") {
  for (const TrainerOptions& options : with_and_without_waiting) {
    BatchThere there(options);
    there.refused([&] { there.trainer.fit(loader_of(there, {there.good(), there.good(), there.bad()}), nullptr, {.epochs = 1}); });
    there.check_count(2);
    CHECK(there.trainer.state().batch == 2);
  }
}
TEST_CASE("fit that ends at a batch it cannot start has settled those before it") {
  const auto ends = [&](BatchThere& there, const std::vector<Labels>& labels) {
    CHECK(error_of<DataError>([&] {
            there.trainer.fit(loader_of(there, labels), nullptr, {.epochs = 1});
          }).starts_with("lrcnn: label 5 of image 0 is outside"));
    CHECK(there.trainer.wait().count == 0);
  };
  for (const TrainerOptions& options : with_and_without_waiting) {
    BatchThere there(options);
    ends(there, {there.good(), there.good(), Labels(there.no_classes), there.good()});
    there.check_count(2);
    CHECK(there.trainer.state().batch == 2);
    CHECK(there.trainer.state().metrics.loss() > 0);
  }
  BatchThere there({.seed = 3});
  ends(there, {there.good(), there.bad(), there.good(), Labels(there.no_classes)});   // the second and third do not count
  there.check_count(1);
  CHECK(there.trainer.state().batch == 1);
}
TEST_CASE("on a device, too, fit passes over batches in which no pixel counts, also where the steps beside them do not count") {
  using Maps = Sequential<Conv<4>, ReLU, Conv<3>>;
  const BatchThere there;
  const std::vector<std::int32_t> mask = mask_of_maps(), none(mask.size(), 255);
  const Labels labels = Labels::of_pixels(mask, 6, 6), nothing = Labels::of_pixels(none, 6, 6);
  const LabelledThere good(there.images(), labels), unlabelled(there.not_finite(), nothing), broken(there.not_finite(), labels);
  for (const TrainerOptions& options : with_and_without_waiting) {
    const auto make = [&] {
      return BasicTrainer<Cudnn, PixelCrossEntropy>(Maps::layers, Policy<Share<2>, Workspace<1_MiB>>::value, four_images, AdamW{.lr = 0.01}, options,
                                                    {.ignore = 255}, Cudnn(std::make_shared<HostLibrary<>>()));
    };
    auto trainer = make(), others = make();
    const auto got = trainer.fit(LoaderThere{{good, unlabelled, good}}, nullptr, {.epochs = 1});
    const auto want = others.fit(LoaderThere{{good, good}}, nullptr, {.epochs = 1});
    CHECK(got.back().train_loss == want.back().train_loss);
    CHECK(trainer.read_parameters() == others.read_parameters());
    CHECK(trainer.steps_done() == 3);
    CHECK(trainer.state().updates == 2);
    CHECK(error_of<NumericError>([&] {
            trainer.fit(LoaderThere{{good, unlabelled, broken, unlabelled, good}}, nullptr, {.epochs = 2});
          }) != "no error");
    others.step(there.images(), labels);
    CHECK(trainer.steps_done() == 5);
    CHECK(trainer.state().updates == 3);
    CHECK(trainer.read_parameters() == others.read_parameters());
  }
}
