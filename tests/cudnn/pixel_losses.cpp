// Losses over pixels on the pretended device: slab by slab, with labels that are copied once, in the device's own loops or, where it has none,
// on the host; what the reference gives, step by step and recorded, on one stream and on several, and when a step's loss is not finite.
#include "cudnn/host_library.hpp"
#include "cudnn/pixel_loss_law.hpp"
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Cudnn pretended() { return Cudnn(std::make_shared<HostLibrary<>>()); }
}   // namespace
TEST_CASE("losses over pixels, with or without loops for a GPU, give what the reference gives") { pixel_loss_law(pretended); }
TEST_CASE("training with dropout draws new masks in each step, also when steps are recorded, and those of the reference") {
  const PixelNoise batch(6);
  const PixelCrossEntropy loss{.ignore = -1};
  const PolicySpec policy = with_workspace(Policy<Overlap<3>, RecomputeAll>::value);
  BasicTrainer<Reference32, PixelCrossEntropy> reference(PixelNet::layers, policy, pixel_input, Sgd{.lr = 1e-9}, {.seed = 3}, loss);
  BasicTrainer<Cudnn, PixelCrossEntropy> trainer(PixelNet::layers, policy, pixel_input, Sgd{.lr = 1e-9}, {.seed = 3}, loss, pretended());
  std::vector<double> losses;
  for (int i = 0; i < 5; ++i) {
    const double want = reference.step(batch.source(), batch.mask()).loss, got = trainer.step(batch.source(), batch.mask()).loss;
    CHECK(std::abs(got - want) <= 1e-5 * want);
    for (const double other : losses) CHECK(std::abs(got - other) > 1e-4 * want);
    losses.push_back(got);
  }
  CHECK(trainer.evaluate(batch.source(), batch.mask()).mean() ==
        doctest::Approx(reference.evaluate(batch.source(), batch.mask()).mean()).epsilon(1e-5));
}
TEST_CASE("steps that nobody waited for are taken back from the first whose loss is not finite") {
  PixelNoise batch(7);
  const PixelCrossEntropy loss{.ignore = -1};
  using NoDrop = Sequential<Conv<4>, ReLU, ConvTranspose<3>>;
  std::vector<std::int32_t> fine;
  for (Index i = 0; i < pixel_images * 4 * pixel_height * pixel_width; ++i) fine.push_back(static_cast<std::int32_t>(i % 3));
  const Labels labels = Labels::of_pixels(fine, 2 * pixel_height, 2 * pixel_width);
  BasicTrainer<Cudnn, PixelCrossEntropy> trainer(NoDrop::layers, with_workspace(Policy<Overlap<3>>::value), pixel_input, Sgd{.lr = 0.01}, {}, loss,
                                                 pretended());
  trainer.start_step(batch.source(), labels), trainer.start_step(batch.source(), labels);
  CHECK(trainer.wait().count == 2 * static_cast<Index>(fine.size()));
  const auto before = trainer.read_parameters();
  trainer.start_step(batch.source(), labels);
  PixelNoise bad = batch;
  bad.pixels[700] = NAN;
  trainer.start_step(bad.source(), labels), trainer.start_step(batch.source(), labels);
  const std::string text = error_of<NumericError>([&] { trainer.wait(); });
  CHECK(text.find("lrcnn: in step 4 the loss is not finite; nobody waited for this step, so its batch is gone; it and the 1 after it") == 0);
  CHECK(trainer.steps_done() == 3);
  CHECK(trainer.read_parameters() != before);   // by the third
  const auto after = trainer.read_parameters();
  CHECK(error_of<NumericError>([&] { trainer.step(bad.source(), labels); })
            .find("lrcnn: in step 4 the loss is not a number; the first values that "
                  "are not finite come from the input, images ") == 0);
  CHECK(trainer.read_parameters() == after);
  CHECK(std::isfinite(trainer.step(batch.source(), labels).loss));
}
TEST_CASE("of labels by rows a device has those of a slab; one that goes wrong in the middle of a run ends it, and leaves the training as it was") {
  const PixelNoise batch(9);
  const PixelCrossEntropy loss{.ignore = -1};
  const auto library = std::make_shared<HostLibrary<>>();
  const PolicySpec policy = with_workspace(Policy<Overlap<4>, RecomputeAll>::value);
  BasicTrainer<Cudnn, PixelCrossEntropy> trainer(PixelNet::layers, policy, pixel_input, Sgd{.lr = 0.05}, {.seed = 3}, loss, Cudnn(library)),
      undisturbed(PixelNet::layers, policy, pixel_input, Sgd{.lr = 0.05}, {.seed = 3}, loss, pretended());
  CountedLabels rows(batch.mask());
  trainer.step(batch.source(), Labels::from_rows(rows)), undisturbed.step(batch.source(), batch.mask());
  Index most = 0;
  for (const Step& step : trainer.plan().steps)
    if (step.op == Op::loss) most = std::max(most, step.x.images.size() * step.x.rows.size() * pixel_width);
  CHECK(library->most_labels == most);
  CHECK(2 * most < pixel_images * pixel_height * pixel_width);
  const auto before = trainer.read_parameters();
  rows.before = [](Index, Range r) {
    if (r.contains({pixel_height - 2, pixel_height - 1})) throw DataError("lrcnn: a tile of the mask is damaged");
  };
  CHECK(error_of<DataError>([&] { trainer.step(batch.source(), Labels::from_rows(rows)); }) == "lrcnn: a tile of the mask is damaged");
  PixelNoise other = batch;
  rows = CountedLabels(other.mask());
  trainer.evaluate(other.source(), Labels::from_rows(rows));   // the total is known from here on
  other.classes[(pixel_height - 2) * pixel_width + 3] = 70;    // a file that is changed while it is read
  CHECK(error_of<DataError>([&] {
          trainer.step(batch.source(), Labels::from_rows(rows));
        }).starts_with("lrcnn: label 70 of image 0, row 18, column 3 is outside the 3 classes; "));
  CHECK(trainer.read_parameters() == before);
  CHECK(trainer.steps_done() == 1);
  const CountedLabels good(batch.mask());
  CHECK(trainer.step(batch.source(), Labels::from_rows(good)).loss == undisturbed.step(batch.source(), batch.mask()).loss);
  CHECK(trainer.read_parameters() == undisturbed.read_parameters());
}
TEST_CASE("labels of pixels that are wrong are refused before anything is sent") {
  PixelNoise batch(8);
  const auto library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn, PixelCrossEntropy> trainer(PixelNet::layers, with_workspace(Policy<Column>::value), pixel_input, Sgd{}, {}, {}, Cudnn(library));
  const Index calls = library->calls;
  CHECK(error_of<DataError>([&] { trainer.step(batch.source(), batch.mask()); }).find("label -1") != std::string::npos);
  CHECK(error_of<DataError>([&] { trainer.step(batch.source(), std::vector<std::int32_t>(4, 0)); }).find("one label for each image") !=
        std::string::npos);
  CHECK(library->calls - calls <= 6);   // of reading sums and running statistics
}
