// The U-Net of 2015: extents of the paper, parameters of the same module written in PyTorch 2.13, slabs of rows.
#include <lrcnn/network/unet.hpp>
#include <lrcnn/plan/checker.hpp>
#include <doctest/doctest.h>
#include <string>
#include <vector>
using namespace lrcnn;
TEST_CASE("the U-Net of 2015 has the paper's extents, and as many parameters as the same module of PyTorch") {
  static_assert(table_of<Fixed<UNet2015<2>, Input{1, 1, 572, 572}>>().size() == 5 * 4 + 4 * (1 + 1 + 1 + 1 + 4) + 1);
  const Table t = table_of<UNet2015<2>>({1, 1, 572, 572});
  CHECK(t.shape(t.size()) == Shape{1, 2, 388, 388});
  CHECK(parameter_count(t) == 31030658);
  CHECK(parameter_count(table_of<UNet2015<3>>({1, 3, 572, 572})) == 31031875);
  CHECK(parameter_count(table_of<UNet2015<2, 32, 3>>({1, 3, 188, 188})) == 1925634);
  CHECK(table_of<UNet2015<2, 32, 3>>({2, 3, 188, 204}).shape(1).c == 32);
  std::vector<std::string> maps;   // what is cropped, and what comes from below: figure 1 of the paper
  for (const Node& node : t.nodes)
    if (node.layer.kind == Kind::concat) maps.push_back(to_string(node.in) + " " + to_string(node.in2));
  CHECK(maps == std::vector<std::string>{"1x512x56x56 1x512x56x56", "1x256x104x104 1x256x104x104", "1x128x200x200 1x128x200x200",
                                         "1x64x392x392 1x64x392x392"});
  CHECK(parameters_of(t).front().name == "down1.conv1.weight");
  CHECK_THROWS_AS(table_of<UNet2015<2>>({1, 1, 570, 572}), ShapeError);
  CHECK_THROWS_AS(table_of<UNet2015<2>>({1, 1, 140, 140}), ShapeError);
  for (const Cut cut : {Cut::overlap, Cut::share}) {
    PolicySpec policy;
    policy.partitions[0] = {cut, 2, 2, 0};
    policy.checkpoints = {.rule = Checkpoints::Rule::pools};
    policy.recompute = Recompute::all;
    CHECK(check_plan(make_plan(table_of<UNet2015<2, 4, 2>>({1, 1, 60, 60}), policy, Target{}, {.training = true})).empty());
  }
}
