// Costs are measured with every loss that a network can be trained with: labels are made up as the loss wants them.
#include "support/error_of.hpp"
#include "support/own_losses.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/layer/dice.hpp>
#include <lrcnn/layer/layers.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/train/cost_file.hpp>
#include <lrcnn/train/measure_costs.hpp>
#include <doctest/doctest.h>
#include <filesystem>
#include <limits>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <int channels>
using MapsOf = Sequential<Conv<3>, ReLU, Conv<channels>>;
template <int channels>
using NumbersOf = Sequential<Conv<3>, ReLU, GlobalAvgPool, Linear<channels>>;
constexpr Input small_batch{2, 1, 8, 6};
constexpr MeasureOptions all_of_it{.seconds = 1000, .runs = 1};   // whatever the machine
/// Whether every step of the network's column under the loss was measured.
template <class Net, class L>
void check_measured(const L& loss) {
  INFO(std::string(L::name));
  Reference<float> backend;
  const Table table = table_of<Net>(small_batch);
  const Costs costs = measure_costs(table, backend, all_of_it, loss);
  const Plan column = make_plan(table, measuring_column(ConvAlgorithm::fastest), Reference<float>::target, {.rows_loss = RowLocalLoss<L, float>});
  for (const Step& step : column.steps) {
    const std::string kind = step_kind(column, costs.carried_out(column, step));
    INFO(kind);
    CHECK(costs.knows(kind));
  }
}
/// Of a program's own: targets above 0.75, say.
struct HighTargets : MeanSquaredError {
  static constexpr std::string_view name = "high_targets";
  float least = 0.75f;
  double total(const Labels& labels, const Shape& output) const {
    const double count = MeanSquaredError::total(labels, output);
    if (labels.values(0, 0, 0)[0] < least) throw DataError("these targets are low");
    return count;
  }
};
}   // namespace
TEST_CASE("costs are measured with losses over images") {
  check_measured<NumbersOf<3>>(SoftmaxCrossEntropy{});
  check_measured<NumbersOf<3>>(ImageLoss<SquaredHinge>{});
}
TEST_CASE("costs are measured with losses of masks, whichever classes count") {
  check_measured<MapsOf<3>>(PixelCrossEntropy{});
  check_measured<MapsOf<3>>(PixelCrossEntropy{.ignore = 0});
  check_measured<MapsOf<3>>(PixelCrossEntropy{.weights = {0, 0, 2}});
  check_measured<MapsOf<3>>(PixelCrossEntropy{.weights = {std::numeric_limits<double>::infinity(), 1, 1}});   // of a class that is not there
  check_measured<MapsOf<3>>(DiceLoss{});
  check_measured<MapsOf<1>>(DiceLoss{.ignore = 0});
  check_measured<MapsOf<3>>(PixelLoss<SquaredHinge>{});
  check_measured<MapsOf<3>>(PixelLoss<WeightedEntropy>{{.weights = {1, 0, 1}, .ignored = 0}});
}
TEST_CASE("costs are measured with losses of targets") {
  check_measured<MapsOf<2>>(MeanSquaredError{});
  check_measured<MapsOf<2>>(Huber{});
  check_measured<MapsOf<2>>(PixelLoss<LogCosh>{});
  check_measured<MapsOf<2>>(HighTargets{});
}
TEST_CASE("costs are measured with losses of masks or targets, for one channel and for several") {
  check_measured<MapsOf<1>>(PixelBinaryCrossEntropy{});
  check_measured<MapsOf<3>>(PixelBinaryCrossEntropy{});
  check_measured<MapsOf<1>>(PixelFocal{});
  check_measured<MapsOf<3>>(PixelFocal{});
}
TEST_CASE("costs are measured with losses over pixels where the output has a single one") {
  check_measured<NumbersOf<3>>(PixelCrossEntropy{});
  check_measured<NumbersOf<1>>(MeanSquaredError{});
  check_measured<NumbersOf<1>>(PixelBinaryCrossEntropy{});
  check_measured<NumbersOf<4>>(DiceLoss{});
}
TEST_CASE("a file of costs is for regression, too") {
  const struct CostsOfRegression {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_regression_" + std::to_string(::getpid()) + ".txt");
    ~CostsOfRegression() { std::filesystem::remove(path); }
  } file;
  Reference<float> backend;
  const Table table = table_of<MapsOf<2>>(small_batch);
  const Costs first = known_costs(file.path, table, backend, all_of_it, MeanSquaredError{});
  CHECK(!first.measured().empty());
  CHECK(known_costs(file.path, table, backend, all_of_it, MeanSquaredError{}) == first);
}
TEST_CASE("a loss that takes none of the labels that are made up says what it wants") {
  Reference<float> backend;
  const auto refusal = [&](const auto& loss) {
    return error_of<DataError>([&] { measure_costs(table_of<MapsOf<1>>(small_batch), backend, all_of_it, loss); });
  };
  CHECK(refusal(PixelCrossEntropy{}) ==
        "lrcnn: none of the labels that were made up to measure costs with serves the loss 'pixel_cross_entropy' on an output of 2x1x8x6; masks of "
        "one class and of all classes were tried, and targets of 0.5, 1 and 0; measure with a loss that takes some of these; of a mask this one "
        "says: an output of 1 channel is given to the loss 'pixel_cross_entropy'; it compares the logits of classes, of which there are two at "
        "least; end the network in a channel for each class, or train with PixelBinaryCrossEntropy; of targets: targets are given to the loss "
        "'pixel_cross_entropy'; it compares classes, one for each pixel; give Labels::of_pixels");
  HighTargets high;
  high.least = 2;
  CHECK(refusal(high).ends_with("; of targets: these targets are low"));
  CHECK(refusal(PixelLoss<WeightedEntropy>{{.weights = {0, 0, 0}}}).find("of a mask this one says: no pixel counts;") != std::string::npos);
}
