// Training with losses over pixels: maps of classes and of numbers, under policies that cut rows and images.
#include "support/error_of.hpp"
#include "train/scenes.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
#include <sstream>
using namespace lrcnn;
using namespace lrcnn::testing::scenes;
using lrcnn::testing::error_of;
namespace {
using Net = Sequential<Conv<6>, ReLU, Conv<6>, ReLU, Conv<3, Window{.kernel = 1}>>;
using OneMap = Sequential<Conv<4>, ReLU, Conv<1>>;
using Halved = Sequential<Conv<4>, ReLU, MaxPool<>, Conv<3>>;
template <class L = PixelCrossEntropy>
using Trainee = BasicTrainer<Reference<double>, L>;
const std::vector<PolicySpec> policies{Policy<Column>::value, Policy<Overlap<3>, RecomputeAll>::value, Policy<Share<4>, Images<4>>::value,
                                       Policy<ByImages<2, Overlap<2>>>::value};
/// Classes are of unequal weight, and class 2 is left out.
const PixelCrossEntropy uneven{.weights = {0.5, 3, 1}, .ignore = 2};
/// A loss of a user's own that throws at a row, on whichever thread.
struct Refuses : PixelCrossEntropy {
  static constexpr std::string_view name = "refuses";
  Index row = -1;
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    if (logits.range().contains({row, row + 1})) throw DataError("no such row");
    PixelCrossEntropy::operator()(logits, labels, first, dx, scale, result);
  }
};
}   // namespace
TEST_CASE("pixel losses: a network learns where things are, under every policy alike") {
  const Scenes scenes;
  std::vector<double> expected;
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    Trainee<> trainer(Net::layers, policy, input_of(images), AdamW{.lr = 0.02}, {.seed = 1});
    CHECK(trainer.plan().options.rows_loss);
    const double first = trainer.evaluate(scenes.part(all), scenes.classes(all)).mean();
    StepReport report;
    for (int i = 0; i < 40; ++i) report = trainer.step(scenes.part(all), scenes.classes(all));
    CHECK(report.loss < first / 4);
    CHECK(report.images == images);
    const LossResult after = trainer.evaluate(scenes.part(all), scenes.classes(all));
    CHECK(after.count == images * height * width);
    CHECK(after.accuracy() > 0.95);
    const View<const double> logits = trainer.predict(scenes.part(all));
    REQUIRE((logits.n == images && logits.c == 3 && logits.rows == height && logits.w == width));
    ConfusionMatrix matrix(3);
    for (Index i = 0; i < images; ++i)
      for (Index row = 0; row < height; ++row)
        for (Index x = 0; x < width; ++x) {
          const std::vector<double> scores{logits(i, 0, row, x), logits(i, 1, row, x), logits(i, 2, row, x)};
          matrix.add(scenes.mask[static_cast<std::size_t>((i * height + row) * width + x)], predicted_class<double>(scores));
        }
    CHECK(matrix.accuracy() == after.accuracy());
    CHECK(matrix.mean_iou() > 0.85);
    if (expected.empty()) expected = trainer.read_parameters();
    CHECK(worst(trainer.read_parameters(), expected) <= 1e-9);
  }
}
TEST_CASE("pixel losses: gradients are those of the weighted mean, under every policy") {
  const Scenes scenes;
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    Trainee<> trainer(Halved::layers, policy, input_of(images), Sgd{}, {.seed = 2}, uneven);
    std::vector<std::int32_t> mask;
    for (Index k = 0; k < images * (height / 2) * (width / 2); ++k) mask.push_back(static_cast<std::int32_t>(k * 5 % 7 % 3));
    const Labels labels = Labels::of_pixels(mask, height / 2, width / 2);
    const LossResult result = trainer.gradients_of(scenes.part(all), labels);
    const auto zeros = std::count(mask.begin(), mask.end(), 0), ones = std::count(mask.begin(), mask.end(), 1);
    CHECK(result.total == 0.5 * static_cast<double>(zeros) + 3.0 * static_cast<double>(ones));
    CHECK(result.mean() == result.sum / result.total);
    CHECK(trainer.evaluate(scenes.part(all), labels).mean() == doctest::Approx(result.mean()).epsilon(1e-12));
    const auto gradients = trainer.read_gradients(), parameters = trainer.read_parameters();
    for (std::size_t e = 0; e < parameters.size(); e += 7) {
      auto moved = parameters;
      const auto at = [&](double value) {
        moved[e] = value;
        trainer.write_parameters(moved);
        return trainer.evaluate(scenes.part(all), labels).mean();
      };
      const double step = 1e-6, slope = (at(parameters[e] + step) - at(parameters[e] - step)) / (2 * step);
      CHECK(std::abs(gradients[e] - slope) <= 1e-6 * std::max(1.0, std::abs(slope)));
    }
  }
}
TEST_CASE("pixel losses: batches that are accumulated weigh what their pixels do") {
  const Scenes scenes;
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    Trainee<> whole(Net::layers, policy, input_of(images), Sgd{.lr = 0.1}, {.seed = 2}, uneven),
        parts(Net::layers, policy, input_of(images), Sgd{.lr = 0.1}, {.seed = 2}, uneven);
    for (int round = 0; round < 2; ++round) {
      const StepReport want = whole.step(scenes.part(all), scenes.classes(all));
      for (const Range r : {Range{0, 2}, Range{2, 3}, Range{3, 6}}) parts.accumulate(scenes.part(r), scenes.classes(r));
      const StepReport got = parts.update();
      CHECK(got.images == images);
      CHECK(got.loss == doctest::Approx(want.loss).epsilon(1e-12));
      CHECK(got.accuracy == want.accuracy);
      CHECK(worst(parts.read_gradients(), whole.read_gradients()) <= 1e-13);
    }
  }
}
namespace {
/// Scenes two by two, as fit() wants batches.
struct Pairs {
  struct Pair : RowSource<double> {
    MemorySource<double> pixels;
    Labels mask;
    Pair(const Scenes& scenes, Range r) : pixels(scenes.part(r)), mask(scenes.classes(r)) {}
    Shape shape() const override { return pixels.shape(); }
    void read(Index first, const View<double>& to) const override { pixels.read(first, to); }
    Labels labels() const { return mask; }
  };
  const Scenes& scenes;
  Index batches() const { return images / 2; }
  Input input() const { return input_of(2); }
  std::vector<Pair> epoch(Index, Index first = 0) const {
    std::vector<Pair> list;
    for (Index i = first; i < batches(); ++i) list.emplace_back(scenes, Range{2 * i, 2 * i + 2});
    return list;
  }
};
}   // namespace
TEST_CASE("pixel losses: fit() counts images where it shows progress, and pixels in its metrics") {
  const Scenes scenes;
  const Pairs pairs{scenes};
  double now = 0;
  const ProgressOptions options{.line_seconds = 0, .clock = [&] { return now += 0.5; }};   // a step of two images takes half a second
  std::ostringstream out;
  Trainee<> trainer(Net::layers, policies[1], input_of(2), AdamW{.lr = 0.02}, {.seed = 1});
  trainer.fit(pairs, &pairs, {.epochs = 2, .progress = &out, .progress_options = options});
  const std::string text = out.str();
  CHECK(text.find("step 2/3: loss ") != std::string::npos);
  CHECK(text.find(", 4.00 images/s") != std::string::npos);
  for (std::size_t at = text.find(" images/s"); at != std::string::npos; at = text.find(" images/s", at + 1))
    CHECK(text.substr(text.rfind(' ', at - 1), at - text.rfind(' ', at - 1)) == " 4.00");
  CHECK(trainer.evaluate(pairs).images == images * height * width);
}
TEST_CASE("pixel losses: threads change no bit") {
  const Scenes scenes;
  const auto trained = [&](int threads) {
    Trainee<> trainer(Net::layers, policies[1], input_of(images), AdamW{.lr = 0.02}, {.seed = 1, .threads = threads}, uneven);
    double loss = 0;
    for (int i = 0; i < 3; ++i) loss = trainer.step(scenes.part(all), scenes.classes(all)).loss;
    auto state = trainer.read_parameters();
    state.push_back(loss);
    return state;
  };
  const auto once = trained(1);
  CHECK(trained(2) == once);
  CHECK(trained(3) == once);
}
TEST_CASE("pixel losses: what a loss throws comes out of the step, on any number of threads, and nothing has changed") {
  Scenes scenes;
  for (const int threads : {1, 2, 4}) {
    Refuses loss;
    loss.row = 5;
    BasicTrainer<Reference<double>, Refuses> trainer(Net::layers, policies[1], input_of(images), Sgd{.lr = 0.1}, {.seed = 1, .threads = threads},
                                                     loss);
    const auto before = trainer.read_parameters();
    CHECK(error_of([&] { trainer.step(scenes.part(all), scenes.classes(all)); }) == "no such row");
    CHECK(trainer.read_parameters() == before);
    CHECK(trainer.steps_done() == 0);
  }
}
TEST_CASE("pixel losses: numbers are learnt, too") {
  const Scenes scenes;
  Trainee<MeanSquaredError> trainer(OneMap::layers, policies[1], input_of(images), AdamW{.lr = 0.02}, {.seed = 1});
  const double first = trainer.step(scenes.part(all), scenes.targets()).loss;
  StepReport report;
  for (int i = 0; i < 30; ++i) report = trainer.step(scenes.part(all), scenes.targets());
  CHECK(report.loss < first / 4);
  CHECK(report.loss < 0.05);
}
TEST_CASE("pixel losses: labels that do not fit are refused, and change nothing") {
  const Scenes scenes;
  Trainee<> trainer(Net::layers, policies[1], input_of(images), AdamW{.lr = 0.02}, {.seed = 1}, {.ignore = 9});
  const auto before = trainer.read_parameters();
  const auto step = [&](const Labels& labels) { return error_of<DataError>([&] { trainer.step(scenes.part(all), labels); }); };
  std::vector<std::int32_t> mask = scenes.mask;
  CHECK(step(Labels::of_pixels(mask, width, height)) ==
        "lrcnn: masks of 10x12 are given for the network's output of 12x10; every pixel of the output has one label; make the masks as "
        "large as the output");
  CHECK(step(scenes.classes({0, 5})) == "lrcnn: masks of 5 images are given for 6 images; every image has its own; give as many masks as images");
  CHECK(step(std::vector<std::int32_t>(6)) ==
        "lrcnn: one label for each image is given to the loss 'pixel_cross_entropy'; it wants one for each pixel of the network's output, "
        "12x10; give Labels::of_pixels or Labels::of_targets, or train with a loss over images");
  mask[2 * 120 + 3 * 10 + 4] = 3;
  CHECK(step(Labels::of_pixels(mask, height, width)) ==
        "lrcnn: label 3 of image 2, row 3, column 4 is outside the 3 classes; labels are 0 .. classes - 1, or the one to ignore; correct "
        "the mask, set the loss's `ignore`, or widen the last layer");
  std::fill(mask.begin(), mask.end(), 9);
  CHECK(step(Labels::of_pixels(mask, height, width)) ==
        "lrcnn: none of the 12x10 pixels of 6 images counts for the loss 'pixel_cross_entropy'; the mean is over pixels that are not ignored "
        "and have a weight; correct the masks, or the loss's `ignore` or weights, or leave the batch out");
  CHECK(step(Labels::of_targets(scenes.numbers, 1, height, width)) ==
        "lrcnn: targets of 1x12x10 are given for the network's output of 3x12x10; every element of the output has one label; make the "
        "targets as large as the output");
  CHECK(trainer.read_parameters() == before);
  CHECK(trainer.steps_done() == 0);
  mask[719] = 2;   // one pixel that counts is enough
  CHECK(step(Labels::of_pixels(mask, height, width)) == "no error");
  CHECK(step(scenes.classes(all)) == "no error");
  Trainee<> weightless(Net::layers, policies[0], input_of(images), Sgd{}, {}, {.weights = {1, 0, 1}});
  std::fill(mask.begin(), mask.end(), 1);
  CHECK(error_of<DataError>([&] {
          weightless.step(scenes.part(all), Labels::of_pixels(mask, height, width));
        }).starts_with("lrcnn: none of the 12x10 pixels of 6 images counts for the loss "));
  for (const auto& [weight, text] :
       {std::pair{-2.0, "-2"}, {-0.1, "-0.1"}, {static_cast<double>(NAN), "nan"}, {static_cast<double>(INFINITY), "inf"}}) {
    Trainee<> unfit(Net::layers, policies[0], input_of(images), Sgd{}, {}, {.weights = {1, weight, 1}});
    CHECK(error_of<DataError>([&] { unfit.step(scenes.part(all), Labels::of_pixels(mask, height, width)); }) ==
          std::string("lrcnn: class 1 has the weight ") + text +
              " in the loss 'pixel_cross_entropy'; the weight of a class is finite and not negative; choose another one");
  }
  BasicTrainer<Reference<double>> of_images(Sequential<Net, GlobalAvgPool>::layers, policies[0], input_of(images), Sgd{});
  CHECK(!of_images.plan().options.rows_loss);
  CHECK(error_of<DataError>([&] { of_images.step(scenes.part(all), scenes.classes(all)); }) ==
        "lrcnn: masks are given to the loss 'softmax_cross_entropy'; it wants one label for each image; give a label for each image, or "
        "train with a loss over pixels");
}
TEST_CASE("pixel losses: values that are not finite are found") {
  Scenes scenes;
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    Trainee<> trainer(Net::layers, policy, input_of(images), AdamW{.lr = 0.02}, {.seed = 1});
    const auto before = trainer.read_parameters();
    scenes.pixels[3 * 120 + 7 * 10] = NAN;
    const std::string text = error_of<NumericError>([&] { trainer.step(scenes.part(all), scenes.classes(all)); });
    CHECK(text.starts_with("lrcnn: in step 1 the loss is not a number; the first values that are not finite come from the input, images "));
    CHECK(trainer.read_parameters() == before);
    scenes.pixels[3 * 120 + 7 * 10] = 0;
    CHECK(trainer.step(scenes.part(all), scenes.classes(all)).loss > 0);
  }
}
TEST_CASE("pixel losses: a plan whose output goes through the loss in slabs has no output, and takes no other loss") {
  const Scenes scenes;
  Reference<double> backend(1);
  const Table table = make_table(Net::layers, input_of(images));
  std::vector<double> parameters(static_cast<std::size_t>(parameter_count(table)), 0.1), gradients(parameters.size());
  Executor<Reference<double>> run(make_plan(table, policies[0], Reference<double>::target, {.rows_loss = true}), backend, parameters.data(),
                                  gradients.data());
  CHECK(error_of<PlanError>([&] {
          run.run(scenes.part(all), std::vector<std::int32_t>(6));
        }).starts_with("lrcnn: the loss 'softmax_cross_entropy' over images is given to the plan of "));
  CHECK(error_of<PlanError>([&] { run.forward(scenes.part(all)); }).find(" is run for an output that it does not keep; ") != std::string::npos);
  CHECK(run.weigh(scenes.part(all), scenes.classes(all), PixelCrossEntropy{}) == 720);
  CHECK(run.run(scenes.part(all), scenes.classes(all), PixelCrossEntropy{}).count == 720);
}
