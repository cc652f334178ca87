// Published networks: numbers, names and shapes of parameters as torchvision has them, and map sizes; and that they can be cut into rows.
#include <lrcnn/network/convnext.hpp>
#include <lrcnn/network/densenet.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/squeezenet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
constexpr Input imagenet{2, 3, 224, 224};
template <class Net>
Index learned() {
  Index count = 0;
  for (const Parameter& p : parameters_of(table_of<Net>(imagenet)))
    if (!p.shape.running) count += p.shape.count();
  return count;
}
using Dropouts = std::vector<std::pair<std::string, double>>;
using Expected = std::vector<std::pair<std::string, std::string>>;
template <class Net>
void check_names(const Expected& expected) {
  const Table table = table_of<Net>(imagenet);
  const auto parameters = parameters_of(table);
  for (const auto& each : expected) {
    CAPTURE(each.first);
    const Parameter* p = find_parameter(parameters, each.first);
    CHECK((p ? extents_text(p->shape) : "none") == each.second);
  }
  std::set<std::string> names;
  for (const Node& node : table.nodes) names.insert(std::string(node.layer.name.view()));
  CHECK(static_cast<Index>(names.size()) == table.size());
}
const Node& node_of(const Table& table, std::string_view name) {
  for (const Node& node : table.nodes)
    if (node.layer.name.view() == name) return node;
  FAIL("no layer ", std::string(name));
  return table.nodes.front();
}
/// "what it reads > its name" of each dropout, and its probability.
Dropouts dropouts_of(const Table& table) {
  Dropouts list;
  for (const Node& node : table.nodes)
    if (const Layer& y = node.layer; y.kind == Kind::dropout)
      list.push_back({std::string(table.node(node.input - 1).layer.name.view()) + " > " + std::string(y.name.view()), y.drop.probability});
  return list;
}
/// Whether a network without its dropouts is the one that is made without.
template <class Net, class Without>
bool drops_beside(const Input& input) {
  const Table with = table_of<Net>(input), without = table_of<Without>(input);
  const auto named = [](const Table& table) {
    const auto past = [&](Index t) {   // a layer that is no dropout, or the input
      while (t > 0 && table.node(t - 1).layer.kind == Kind::dropout) t = table.node(t - 1).input;
      return t <= 0 ? std::string(t == 0 ? "input" : "-") : std::string(table.node(t - 1).layer.name.view());
    };
    std::vector<std::string> list;
    for (const Node& n : table.nodes)
      if (n.layer.kind != Kind::dropout)
        list.push_back(std::string(n.layer.name.view()) + " " + describe(n.layer) + " " + past(n.input) + " " + past(n.other) + " " +
                       to_string(n.out));
    return list;
  };
  return named(with) == named(without) && dropouts_of(without).empty() && parameters_of(with).size() == parameters_of(without).size();
}
/// Whether a network can be trained by rows.
template <class Net>
std::string problem_of(const Input& input, Cut cut) {
  PolicySpec policy;
  policy.partitions[0] = {cut, 2, 2, 0};
  policy.checkpoints = {.rule = Checkpoints::Rule::every, .every = 8};
  policy.recompute = Recompute::all;
  const auto problems = check_plan(make_plan(table_of<Net>(input), policy, Target{}, {.training = true}));
  return problems.empty() ? "" : problems.front();
}
}   // namespace
TEST_CASE("MobileNetV2 is torchvision's") {
  CHECK(learned<MobileNetV2<>>() == 3504872);
  CHECK(learned<MobileNetV2<10>>() == 3504872 - 990 * 1281);
  check_names<MobileNetV2<>>({{"features.0.0.weight", "[32,3,3,3]"},
                              {"features.0.1.running_var", "[32]"},
                              {"features.0.0.bias", "none"},
                              {"features.1.conv.0.0.weight", "[32,1,3,3]"},
                              {"features.1.conv.0.1.weight", "[32]"},
                              {"features.1.conv.1.weight", "[16,32]"},
                              {"features.1.conv.2.bias", "[16]"},
                              {"features.2.conv.0.0.weight", "[96,16]"},
                              {"features.2.conv.1.0.weight", "[96,1,3,3]"},
                              {"features.2.conv.2.weight", "[24,96]"},
                              {"features.2.conv.3.running_mean", "[24]"},
                              {"features.17.conv.1.0.weight", "[960,1,3,3]"},
                              {"features.17.conv.2.weight", "[320,960]"},
                              {"features.18.0.weight", "[1280,320]"},
                              {"features.18.1.weight", "[1280]"},
                              {"classifier.1.weight", "[1000,1280]"},
                              {"classifier.1.bias", "[1000]"}});
  CHECK(parameters_of(table_of<MobileNetV2<>>(imagenet)).size() == 158 + 2 * 52);
  const Table t = table_of<MobileNetV2<>>(imagenet);
  CHECK(node_of(t, "features.2.conv.1.0").out == Shape{2, 96, 56, 56});
  CHECK(node_of(t, "features.18.0").out == Shape{2, 1280, 7, 7});
  Index sums = 0;
  for (const Node& node : t.nodes) sums += node.layer.kind == Kind::sum;
  CHECK(sums == 10);
  CHECK(dropouts_of(t) == Dropouts{{"global_avg_pool1 > classifier.0", 0.2}});
  CHECK(drops_beside<MobileNetV2<>, MobileNetV2<1000, BatchNorm, std::ratio<0>>>(imagenet));
}
TEST_CASE("SqueezeNet 1.1 is torchvision's") {
  CHECK(learned<SqueezeNet11<>>() == 1235496);
  check_names<SqueezeNet11<>>({{"features.0.weight", "[64,3,3,3]"},
                               {"features.0.bias", "[64]"},
                               {"features.3.squeeze.weight", "[16,64]"},
                               {"features.3.expand1x1.weight", "[64,16]"},
                               {"features.3.expand3x3.weight", "[64,16,3,3]"},
                               {"features.9.squeeze.weight", "[48,256]"},
                               {"features.12.expand3x3.bias", "[256]"},
                               {"classifier.1.weight", "[1000,512]"},
                               {"classifier.1.bias", "[1000]"}});
  CHECK(parameters_of(table_of<SqueezeNet11<>>(imagenet)).size() == 52);
  const Table t = table_of<SqueezeNet11<>>(imagenet);
  CHECK(node_of(t, "features.0").out == Shape{2, 64, 111, 111});
  CHECK(node_of(t, "features.3.squeeze").in == Shape{2, 64, 55, 55});
  CHECK(node_of(t, "features.6.squeeze").in == Shape{2, 128, 27, 27});
  CHECK(node_of(t, "features.9.squeeze").in == Shape{2, 256, 13, 13});
  CHECK(t.shape(t.size()) == Shape{2, 1000, 1, 1});
  CHECK(dropouts_of(t) == Dropouts{{"features.12.concat1 > classifier.0", 0.5}});
  CHECK(node_of(table_of<SqueezeNet11<>>({1, 3, 17, 17}), "features.9.squeeze").in == Shape{1, 256, 1, 1});   // the least that torchvision takes
  CHECK_THROWS_AS(table_of<SqueezeNet11<>>({1, 3, 16, 17}), ShapeError);
  CHECK(drops_beside<SqueezeNet11<>, SqueezeNet11<1000, std::ratio<0>>>(imagenet));
}
TEST_CASE("DenseNets are torchvision's") {
  CHECK(learned<DenseNet121<>>() == 7978856);
  CHECK(learned<DenseNet161<>>() == 28681000);
  CHECK(learned<DenseNet169<>>() == 14149480);
  CHECK(learned<DenseNet201<>>() == 20013928);
  check_names<DenseNet121<>>({{"features.conv0.weight", "[64,3,7,7]"},
                              {"features.norm0.weight", "[64]"},
                              {"features.denseblock1.denselayer1.norm1.weight", "[64]"},
                              {"features.denseblock1.denselayer1.conv1.weight", "[128,64]"},
                              {"features.denseblock1.denselayer1.norm2.running_mean", "[128]"},
                              {"features.denseblock1.denselayer1.conv2.weight", "[32,128,3,3]"},
                              {"features.denseblock1.denselayer6.norm1.weight", "[224]"},
                              {"features.transition1.norm.weight", "[256]"},
                              {"features.transition1.conv.weight", "[128,256]"},
                              {"features.denseblock3.denselayer24.conv1.weight", "[128,992]"},
                              {"features.transition3.conv.weight", "[512,1024]"},
                              {"features.denseblock4.denselayer16.norm1.bias", "[992]"},
                              {"features.norm5.weight", "[1024]"},
                              {"classifier.weight", "[1000,1024]"},
                              {"classifier.bias", "[1000]"}});
  CHECK(parameters_of(table_of<DenseNet121<>>(imagenet)).size() == 364 + 2 * 121);
  CHECK(node_of(table_of<DenseNet121<>>(imagenet), "features.norm5").out == Shape{2, 1024, 7, 7});
}
TEST_CASE("ConvNeXts are torchvision's") {
  CHECK(learned<ConvNeXtTiny<>>() == 28589128);
  CHECK(learned<ConvNeXtSmall<>>() == 50223688);
  CHECK(learned<ConvNeXtBase<>>() == 88591464);
  CHECK(learned<ConvNeXtLarge<>>() == 197767336);
  check_names<ConvNeXtTiny<>>({{"features.0.0.weight", "[96,3,4,4]"},
                               {"features.0.1.weight", "[96]"},
                               {"features.1.0.block.0.weight", "[96,1,7,7]"},
                               {"features.1.0.block.0.bias", "[96]"},
                               {"features.1.0.block.2.bias", "[96]"},
                               {"features.1.0.block.3.weight", "[384,96]"},
                               {"features.1.0.block.5.weight", "[96,384]"},
                               {"features.1.0.layer_scale", "[96]"},
                               {"features.2.0.weight", "[96]"},
                               {"features.2.1.weight", "[192,96,2,2]"},
                               {"features.5.8.layer_scale", "[384]"},
                               {"features.7.2.block.5.bias", "[768]"},
                               {"classifier.0.weight", "[768]"},
                               {"classifier.2.weight", "[1000,768]"}});
  CHECK(parameters_of(table_of<ConvNeXtTiny<>>(imagenet)).size() == 4 + 18 * 9 + 3 * 4 + 4);
  const Table t = table_of<ConvNeXtTiny<>>(imagenet);
  CHECK(node_of(t, "features.7.0.block.0").out == Shape{2, 768, 7, 7});
  for (const Node& node : t.nodes) {
    if (node.layer.kind == Kind::norm) CHECK(node.layer.norm.epsilon == 1e-6);
    if (node.layer.kind == Kind::layer_scale) CHECK(node.layer.scale == 1e-6);
  }
  CHECK(drops_beside<ConvNeXtTiny<>, ConvNeXtTiny<1000, std::ratio<0>>>(imagenet));
  const auto depths = [](const Table& table, double last, std::size_t blocks) {   // rises linearly, from none in the first block
    const auto list = dropouts_of(table);
    REQUIRE(list.size() == blocks - 1);
    for (std::size_t i = 1; i < blocks; ++i)
      CHECK(list[i - 1].second == doctest::Approx(last * static_cast<double>(i) / static_cast<double>(blocks - 1)).epsilon(1e-15));
    return list;
  };
  const auto tiny = depths(t, 0.1, 18);
  CHECK(tiny[0].first == "features.1.1 > features.1.1.stochastic_depth");
  CHECK(tiny[2].first == "features.3.0 > features.3.0.stochastic_depth");
  CHECK(tiny[16].first == "features.7.2 > features.7.2.stochastic_depth");
  depths(table_of<ConvNeXtSmall<>>(imagenet), 0.4, 36);
  depths(table_of<ConvNeXtBase<>>(imagenet), 0.5, 36);
  depths(table_of<ConvNeXtLarge<>>(imagenet), 0.5, 36);
  for (const Node& node : t.nodes)
    if (node.layer.kind == Kind::dropout) CHECK(node.layer.drop.each == Drop::Each::image);
}
TEST_CASE("VGG-16 with the head it was published with is torchvision's, on images of any extent") {
  using Net = Sequential<VggTrunk<2, 2, 3, 3, 3>, VggHead<>>;
  CHECK(learned<Net>() == 138357544);
  check_names<Net>({{"conv1.weight", "[64,3,3,3]"},
                    {"classifier.0.weight", "[4096,25088]"},
                    {"classifier.3.weight", "[4096,4096]"},
                    {"classifier.6.bias", "[1000]"}});
  CHECK(parameter_count(table_of<Net>({1, 3, 320, 480})) == 138357544);
}
TEST_CASE("all of them can be cut into rows") {
  for (const Cut cut : {Cut::overlap, Cut::share}) {
    CHECK(problem_of<MobileNetV2<>>({1, 3, 96, 96}, cut) == "");
    CHECK(problem_of<SqueezeNet11<>>({1, 3, 96, 96}, cut) == "");
    CHECK(problem_of<DenseNet121<>>({1, 3, 96, 96}, cut) == "");
    CHECK(problem_of<ConvNeXtTiny<>>({1, 3, 128, 128}, cut) == "");
    CHECK(problem_of<Sequential<VggTrunk<1, 1, 1, 1, 1>, VggHead<>>>({1, 3, 96, 96}, cut) == "");
  }
}
