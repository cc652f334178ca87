#include <lrcnn/train/initializer.hpp>
#include <doctest/doctest.h>
#include <algorithm>
#include <limits>
#include <vector>
using namespace lrcnn;
namespace {
/// conv1.weight [64,16,3,3], conv1.bias [64] filled with 0.5, linear1.weight [10,64]; a gap before the last.
std::vector<Parameter> layout() {
  return {{.name = "conv1.weight", .shape = {.extents = {64, 16, 3, 3}, .fan_in = 144, .fan_out = 576}, .offset = 0, .layer = 0},
          {.name = "conv1.bias", .shape = {.extents = {64, 1, 1, 1}, .fill = 0.5}, .offset = 9216, .layer = 0},
          {.name = "linear1.weight", .shape = {.extents = {10, 64, 1, 1}, .fan_in = 64, .fan_out = 10}, .offset = 9296, .layer = 3}};
}
std::vector<double> values(const Initializer& initializer, std::uint64_t seed = 1) {
  const auto parameters = layout();
  std::vector<double> flat(static_cast<std::size_t>(flat_elements(parameters)), -99);
  initialize<double>(parameters, initializer, seed, flat);
  return flat;
}
double deviation(std::span<const double> v) {
  double sum = 0, squares = 0;
  for (const double x : v) sum += x, squares += x * x;
  const double n = static_cast<double>(v.size());
  CHECK(std::abs(sum / n) < 0.05 * std::sqrt(squares / n));
  return std::sqrt(squares / n);
}
}   // namespace
TEST_CASE("deviations and bounds are those of the papers") {
  const struct {
    Initializer initializer;
    double deviation;
    bool uniform;
  } cases[] = {{He{}, std::sqrt(2.0 / 144), false},
               {He{.fan = Fan::out}, std::sqrt(2.0 / 576), false},
               {He{.distribution = Distribution::uniform}, std::sqrt(2.0 / 144), true},
               {He{.slope = 0.5}, std::sqrt(2.0 / 1.25 / 144), false},
               {Xavier{}, std::sqrt(2.0 / 720), true},
               {Xavier{.distribution = Distribution::normal}, std::sqrt(2.0 / 720), false},
               {Xavier{.gain = 2}, 2 * std::sqrt(2.0 / 720), true}};
  for (const auto& c : cases) {
    CHECK(initial_deviation(c.initializer, layout()[0].shape) == doctest::Approx(c.deviation).epsilon(1e-14));
    const auto flat = values(c.initializer);
    const std::span<const double> weight(flat.data(), 9216);
    CHECK(deviation(weight) == doctest::Approx(c.deviation).epsilon(0.03));
    const double largest = std::abs(*std::max_element(weight.begin(), weight.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
    if (c.uniform) {
      CHECK(largest <= std::sqrt(3.0) * c.deviation);   // He eq. 10 with PyTorch's bound; Glorot eq. 16
      CHECK(largest > 0.99 * std::sqrt(3.0) * c.deviation);
    } else {
      CHECK(largest > 3 * c.deviation);
    }
  }
}
TEST_CASE("biases are filled, gaps are left alone, Fill fills all") {
  const auto flat = values(He{});
  CHECK(std::all_of(flat.begin() + 9216, flat.begin() + 9280, [](double v) { return v == 0.5; }));
  CHECK(std::all_of(flat.begin() + 9280, flat.begin() + 9296, [](double v) { return v == -99; }));
  const auto zeros = values(Fill{});
  CHECK(zeros[0] == 0);
  CHECK(zeros[9216] == 0);
  CHECK(zeros[9290] == -99);
  CHECK(values(Fill{0.25})[9295 + 1] == 0.25);
}
TEST_CASE("a parameter's values depend on its name and the seed, not on what else there is") {
  const auto flat = values(He{});
  CHECK(flat == values(He{}));
  CHECK(flat != values(He{}, 2));
  const auto parameters = layout();
  std::vector<double> alone(640);
  Parameter moved = parameters[2];
  moved.offset = 0, moved.layer = 7;
  initialize<double>({&moved, 1}, He{}, 1, alone);
  CHECK(std::equal(alone.begin(), alone.end(), flat.begin() + 9296));
  moved.name = "linear2.weight";
  initialize<double>({&moved, 1}, He{}, 1, alone);
  CHECK_FALSE(std::equal(alone.begin(), alone.end(), flat.begin() + 9296));
}
TEST_CASE("float values are the double values rounded") {
  const auto parameters = layout();
  std::vector<float> narrow(9936);
  initialize<float>(parameters, Xavier{}, 1, narrow);
  const auto wide = values(Xavier{});
  for (std::size_t i = 0; i < 9216; ++i) REQUIRE(narrow[i] == static_cast<float>(wide[i]));
}
TEST_CASE("streams have known numbers, so that saved seeds keep their meaning") {
  CHECK(stream_of("") == 0xCBF29CE484222325);
  CHECK(stream_of("a") == 0xAF63DC4C8601EC8C);
  CHECK(stream_of("foobar") == 0x85944171F73967E8);
}
TEST_CASE("initializers that make no sense are refused") {
  CHECK_THROWS_WITH_AS(values(Xavier{.gain = std::numeric_limits<double>::infinity()}),
                       "lrcnn: initial values of 'conv1.weight' would have the deviation inf; values, gain and slope are finite; "
                       "mend the initializer's settings",
                       Error);
  CHECK_THROWS_AS(values(He{.slope = std::numeric_limits<double>::infinity()}), Error);   // all weights would be 0
  CHECK_THROWS_AS(values(Fill{std::numeric_limits<double>::quiet_NaN()}), Error);
  std::vector<double> small(9000);
  CHECK_THROWS_AS(initialize<double>(layout(), He{}, 1, small), ShapeError);
}
