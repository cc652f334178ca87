#include <lrcnn/network/parameters.hpp>
#include <doctest/doctest.h>
#include <vector>
using namespace lrcnn;
namespace {
const std::vector<Parameter> parameters{{.name = "conv1.weight", .shape = {.name = "weight", .extents = {2, 3, 3, 3}}, .offset = 0, .layer = 0},
                                        {.name = "conv1.bias", .shape = {.name = "bias", .extents = {2, 1, 1, 1}}, .offset = 64, .layer = 0},
                                        {.name = "linear1.weight", .shape = {.name = "weight", .extents = {10, 2, 1, 1}}, .offset = 80, .layer = 4}};
}   // namespace
TEST_CASE("parameters are found by name") {
  CHECK(find_parameter(parameters, "conv1.bias") == &parameters[1]);
  CHECK(find_parameter(parameters, "conv1") == nullptr);
}
TEST_CASE("a flat buffer holds all parameters and the gaps between them") {
  CHECK(flat_elements(parameters) == 100);
  CHECK(parameter_elements(parameters) == 54 + 2 + 20);
  CHECK(flat_elements({}) == 0);
  std::vector<float> flat(100);
  const auto bias = elements_of(parameters[1], std::span<float>(flat));
  CHECK(bias.data() == flat.data() + 64);
  CHECK(bias.size() == 2);
  CHECK_THROWS_WITH_AS(elements_of(parameters[2], std::span<float>(flat).first(99)),
                       "lrcnn: parameter 'linear1.weight' takes elements 80 to 100 of a buffer of 99; a flat buffer "
                       "holds every parameter of its network; pass a buffer of flat_elements(parameters) elements",
                       ShapeError);
}
TEST_CASE("extents are shown without trailing ones") {
  CHECK(extents_text(parameters[0].shape) == "[2,3,3,3]");
  CHECK(extents_text(parameters[1].shape) == "[2]");
  CHECK(extents_text(parameters[2].shape) == "[10,2]");
  CHECK(extents_text({.extents = {1, 1, 1, 1}}) == "[1]");
}
