// ResNets and U-Net: numbers, names and shapes of parameters as published, and map sizes.
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
constexpr Index learned(const Table& table) {
  Index count = 0;
  for (const Node& node : table.nodes) {
    const auto shapes = parameter_shapes(node.layer, node.in);
    for (Index p = 0; p < shapes.count; ++p)
      if (const auto& shape = shapes.item[static_cast<std::size_t>(p)]; !shape.running) count += shape.count();
  }
  return count;
}
constexpr Input imagenet{2, 3, 224, 224};
template <class Net>
std::string extents(const std::string& name) {
  const auto parameters = parameters_of(table_of<Net>(imagenet));
  const Parameter* p = find_parameter(parameters, name);
  return p ? extents_text(p->shape) : "none";
}
const Node& node_of(const Table& table, std::string_view name) {
  for (const Node& node : table.nodes)
    if (node.layer.name.view() == name) return node;
  FAIL("no layer ", std::string(name));
  return table.nodes.front();
}
}   // namespace
static_assert(learned(table_of<ResNet50<>>(imagenet)) == 25557032);
TEST_CASE("ResNets have as many parameters as torchvision's") {
  CHECK(learned(table_of<ResNet18<>>(imagenet)) == 11689512);
  CHECK(learned(table_of<ResNet34<>>(imagenet)) == 21797672);
  CHECK(learned(table_of<ResNet101<>>(imagenet)) == 44549160);
  CHECK(learned(table_of<ResNet152<>>(imagenet)) == 60192808);
  CHECK(learned(table_of<ResNet18<10>>(imagenet)) == 11689512 - 990 * 513);
}
TEST_CASE("ResNets have torchvision's names and shapes of parameters") {
  const std::vector<std::pair<std::string, std::string>> of18{{"conv1.weight", "[64,3,7,7]"},
                                                              {"conv1.bias", "none"},
                                                              {"bn1.weight", "[64]"},
                                                              {"bn1.bias", "[64]"},
                                                              {"bn1.running_mean", "[64]"},
                                                              {"bn1.running_var", "[64]"},
                                                              {"layer1.0.conv1.weight", "[64,64,3,3]"},
                                                              {"layer1.0.bn1.weight", "[64]"},
                                                              {"layer1.1.conv2.weight", "[64,64,3,3]"},
                                                              {"layer1.0.downsample.0.weight", "none"},
                                                              {"layer2.0.downsample.0.weight", "[128,64]"},
                                                              {"layer2.0.downsample.1.weight", "[128]"},
                                                              {"layer2.0.conv1.weight", "[128,64,3,3]"},
                                                              {"layer2.1.downsample.0.weight", "none"},
                                                              {"layer4.1.bn2.running_var", "[512]"},
                                                              {"layer4.2.conv1.weight", "none"},
                                                              {"fc.weight", "[1000,512]"},
                                                              {"fc.bias", "[1000]"}};
  for (const auto& [name, shape] : of18) CHECK(extents<ResNet18<>>(name) == shape);
  const std::vector<std::pair<std::string, std::string>> of50{{"layer1.0.conv1.weight", "[64,64]"},
                                                              {"layer1.0.conv2.weight", "[64,64,3,3]"},
                                                              {"layer1.0.conv3.weight", "[256,64]"},
                                                              {"layer1.0.bn3.weight", "[256]"},
                                                              {"layer1.0.downsample.0.weight", "[256,64]"},
                                                              {"layer1.1.conv1.weight", "[64,256]"},
                                                              {"layer1.1.downsample.0.weight", "none"},
                                                              {"layer3.0.downsample.0.weight", "[1024,512]"},
                                                              {"layer3.5.conv3.weight", "[1024,256]"},
                                                              {"layer3.6.conv1.weight", "none"},
                                                              {"fc.weight", "[1000,2048]"}};
  for (const auto& [name, shape] : of50) CHECK(extents<ResNet50<>>(name) == shape);
  CHECK(extents<ResNet152<>>("layer3.35.conv3.weight") == "[1024,256]");
  CHECK(parameters_of(table_of<ResNet18<>>(imagenet)).size() == 62 + 2 * 20);
  CHECK(parameters_of(table_of<ResNet50<>>(imagenet)).size() == 161 + 2 * 53);
}
TEST_CASE("names are unique") {
  const auto distinct = [](const Table& t) {
    std::set<std::string> names;
    for (const Node& node : t.nodes) names.insert(std::string(node.layer.name.view()));
    return static_cast<Index>(names.size()) == t.size();
  };
  CHECK(distinct(table_of<ResNet18<>>(imagenet)));
  CHECK(distinct(table_of<ResNet152<>>(imagenet)));
  CHECK(distinct(table_of<UNet<2>>({1, 3, 32, 32})));
}
TEST_CASE("ResNet-50 at 224 has the published map sizes, with strides in the 3x3 convolutions") {
  const Table t = table_of<ResNet50<>>(imagenet);
  CHECK(node_of(t, "conv1").out == Shape{2, 64, 112, 112});
  CHECK(node_of(t, "layer1.2.sum1").out == Shape{2, 256, 56, 56});
  CHECK(node_of(t, "layer2.0.conv1").out == Shape{2, 128, 56, 56});
  CHECK(node_of(t, "layer2.0.conv2").out == Shape{2, 128, 28, 28});
  CHECK(node_of(t, "layer4.2.sum1").out == Shape{2, 2048, 7, 7});
  CHECK(t.shape(t.size()) == Shape{2, 1000, 1, 1});
}
TEST_CASE("few tensors cross the norms of a ResNet: at most two") {
  const Table t = table_of<ResNet50<>>(imagenet);
  for (Index cut = 0; cut < t.size(); ++cut) {
    if (t.node(cut).layer.kind != Kind::norm || t.node(cut - 1).layer.kind == Kind::norm) continue;
    std::set<Index> crossing;
    for (Index i = cut; i < t.size(); ++i)
      for (const Index tensor : {t.node(i).input, t.node(i).other})
        if (tensor >= 0 && tensor <= cut) crossing.insert(tensor);
    CHECK(crossing.size() <= 2);
  }
}
TEST_CASE("norms of a ResNet can be chosen, and the last of each block by itself") {
  const Table t = table_of<ResNet18<10, BatchNorm, ZeroBatchNorm>>(imagenet);
  CHECK(node_of(t, "layer1.0.bn1").layer.norm.weight == 1);
  CHECK(node_of(t, "layer1.0.bn2").layer.norm.weight == 0);
  CHECK(node_of(t, "layer2.0.downsample.1").layer.norm.weight == 1);
  CHECK(node_of(table_of<ResNet18<10, FrozenBatchNorm>>(imagenet), "bn1").layer.norm.frozen);
  CHECK(node_of(table_of<ResNet50<10, GroupNorm<32>>>(imagenet), "layer4.0.bn3").layer.norm.groups == 32);
}
TEST_CASE("U-Net: maps, channels, and parameters counted by hand") {
  const Table t = table_of<UNet<3>>({2, 1, 64, 96});
  CHECK(node_of(t, "down1.conv2").out == Shape{2, 64, 64, 96});
  CHECK(node_of(t, "down4.relu2").out == Shape{2, 512, 8, 12});
  CHECK(node_of(t, "bottom.conv1").out == Shape{2, 1024, 4, 6});
  CHECK(node_of(t, "up4.conv1").in == Shape{2, 1024, 4, 6});
  CHECK(node_of(t, "up4.conv1").out == Shape{2, 512, 8, 12});
  CHECK(node_of(t, "merge4.conv1").in == Shape{2, 1024, 8, 12});
  CHECK(t.shape(t.size()) == Shape{2, 3, 64, 96});
  const auto unit = [](Index in, Index out) { return 9 * in * out + 2 * out; };
  Index count = 64 * 3 + 3, in = 1;
  for (Index c = 64; c <= 1024; in = c, c *= 2) count += unit(in, c) + unit(c, c);
  for (Index c = 512; c >= 64; c /= 2) count += unit(2 * c, c) + unit(c, c);
  Index transposed = 0, convolved = 0;
  for (Index c = 512; c >= 64; c /= 2) transposed += 4 * 2 * c * c + c, convolved += unit(2 * c, c);
  CHECK(learned(t) == count + transposed);
  CHECK(learned(table_of<UNet<3, 64, UpsampleConv<>>>({2, 1, 64, 96})) == count + convolved);
  CHECK(learned(table_of<UNet<2>>({1, 3, 16, 16})) == 31'037'698);   // as the widely used PyTorch implementation has it
  CHECK(table_of<UNet<2, 8, UpsampleConv<Upsampling::Rule::bilinear>>>({1, 3, 16, 16}).shape(1).c == 8);
  CHECK_THROWS_AS(table_of<UNet<2>>({1, 3, 24, 32}), ShapeError);
}
