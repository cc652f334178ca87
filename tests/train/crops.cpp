// Training on crops of a large image: fit() goes on in the middle of an epoch, and tiles evaluate.
#include <lrcnn/data/crops.hpp>
#include <lrcnn/lrcnn.hpp>
#include "support/drawn_image.hpp"
#include <doctest/doctest.h>
#include <filesystem>
#include <unistd.h>
using namespace lrcnn;
using namespace lrcnn::test;
static_assert(BatchLoader<CropLoader<float>, float> && BatchLoader<Loader<double>, double>);
static_assert(!BatchLoader<Loader<float>, double> && !BatchLoader<CropLoader<double>, float> && !BatchLoader<Dataset, float>);
namespace {
using Net = Sequential<Conv<4>, ReLU, Conv<2>>;
using Training = Trainer<Net, Policy<Overlap<2>, RecomputeAll, Workspace<0>>, Reference<float>, PixelCrossEntropy>;
/// Noise, darker where the mask has class 1. Decoding fails at tile number `fails`, if that is not 0.
CropLoader<float> crops(CropOptions options, Index fails = 0) {
  const auto image = draw_image(60, 50, 1, 16, 16), mask = draw_image(60, 50, 1, 32, 32);
  mask->value = [](Index y, Index x, Index) { return (y / 10 + x / 10) % 3 == 0; };
  image->value = [mask](Index y, Index x, Index) { return static_cast<int>(100 + 11 * y % 37 - 80 * mask->value(y, x, 0)); };
  if (fails > 0)
    image->before = [fails, count = std::make_shared<Index>(0)](Index, Index) {
      if (++*count == fails) throw std::runtime_error("power cut");
    };
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 1024, .threads = 0});
  options.height = options.width = 16;
  return CropLoader<float>({{.image = {image, cache}, .mask = CachedImage(mask, cache)}}, options);
}
CropOptions training_options(Index threads) {
  CropOptions options{.crops = 24, .batch = 4, .prefetch = threads, .threads = threads};
  options.augmentation = {.flip_x = true, .quarter_turns = true, .jitter = {.brightness = 0.1}};
  options.focus = {.classes = {1}, .share = 0.5};
  return options;
}
Training training() { return Training({4, 1, 16, 16}, Sgd{.lr = 0.1, .momentum = 0.9}, {.seed = 3}); }
}   // namespace
TEST_CASE("crops: a training that is cut off in the middle of an epoch goes on to the same parameters") {
  const auto path = std::filesystem::temp_directory_path() / ("lrcnn-crops-" + std::to_string(::getpid()) + ".train");
  auto whole = training();
  whole.fit(crops(training_options(2)), nullptr, {.epochs = 2});
  auto cut = training();
  CHECK_THROWS_WITH_AS(cut.fit(crops(training_options(0), 120), nullptr, {.epochs = 2, .training_file = path, .save_every = 2}), "power cut",
                       std::runtime_error);
  auto resumed = training();
  resumed.load(path);
  CHECK(resumed.state().batch > 0);
  CHECK(resumed.read_parameters() != whole.read_parameters());
  resumed.fit(crops(training_options(1)), nullptr, {.epochs = 2});
  CHECK(resumed.read_parameters() == whole.read_parameters());
  // Another batch size would make other batches.
  resumed.load(path);
  CropOptions other = training_options(1);
  other.batch = 3;
  CHECK_THROWS_AS(resumed.fit(crops(other), nullptr, {.epochs = 2}), DataError);
  other = training_options(1);
  other.seed = 1;   // crops from other places
  CHECK_THROWS_AS(resumed.fit(crops(other), nullptr, {.epochs = 2}), DataError);
  std::filesystem::remove(path);
}
TEST_CASE("crops: what is learned shows on tiles") {
  auto trainer = training();
  CropOptions options = training_options(1);
  const auto history = trainer.fit(crops(options), nullptr, {.epochs = 6});
  CHECK(history.back().train_loss < history.front().train_loss);
  options.order = CropOrder::tiles, options.overlap = 3;
  const Metrics metrics = trainer.evaluate(crops(options));
  CHECK(metrics.images == crops(options).crops() * 16 * 16);   // pixels
  CHECK(metrics.accuracy() > 0.8);
}
