// Networks that are graphs: references, the order of execution, joins and scopes as types, names and numbers of parameters.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/resample.hpp>
#include <lrcnn/network/graph.hpp>
#include <lrcnn/network/squeeze_excitation.hpp>
#include <lrcnn/train/initializer.hpp>
#include "support/error_of.hpp"
#include <doctest/doctest.h>
#include <algorithm>
#include <random>
#include <string>
#include <vector>
using namespace lrcnn;
using lrcnn::testing::error_of;
namespace {
template <Index K, Index stride = 1, Index kernel = 3>
using Plain = Conv<K, Window{.kernel = kernel, .stride = stride, .pad = kernel / 2}, ConvOptions{.bias = false}>;
template <Index K, Index stride>
using Body = Sequential<Plain<K, stride>, BatchNorm, ReLU, Plain<K>, BatchNorm>;
/// "conv1(0) relu1(1) sum1(2,0)": names and tensors read
std::string text(const Table& table) {
  std::string result;
  for (const Node& node : table.nodes) {
    result += (result.empty() ? "" : " ") + std::string(node.layer.name.view()) + "(" + std::to_string(node.input);
    result += (node.other >= 0 ? "," + std::to_string(node.other) : "") + ")";
  }
  return result;
}
std::vector<Layer> layers_of(const Table& table) {
  std::vector<Layer> list;
  for (const Node& node : table.nodes) list.push_back(node.layer);
  return list;
}
Layer reading(Layer layer, Index input, Index other = 0) {
  layer.input = input, layer.other = other;
  return layer;
}
const Layer sum{.kind = Kind::sum}, relu = ReLU::layer(), norm = BatchNorm::layer();
}   // namespace
TEST_CASE("a residual block adds its input") {
  using Net = Sequential<Conv<4>, Residual<Sequential<Conv<4>, ReLU>>, ReLU>;
  const Table t = table_of<Net>({2, 3, 8, 8});
  CHECK(text(t) == "conv1(0) conv2(1) relu1(2) sum1(3,1) relu2(4)");
  CHECK(t.node(3).in == Shape{2, 4, 8, 8});
  CHECK(t.node(3).in2 == Shape{2, 4, 8, 8});
  CHECK(t == make_table(std::vector<Layer>{Conv<4>::layer(), Conv<4>::layer(), relu, reading(sum, 1, 3), relu}, {2, 3, 8, 8}));
}
TEST_CASE("a shortcut with a convolution is executed beside the end of its body, a convolution that shrinks what it reads beside the body's first") {
  using Net = Sequential<Residual<Body<8, 2>, Sequential<Plain<8, 2, 1>, BatchNorm>>, ReLU>;
  const Input input{2, 4, 9, 9};
  const Table t = table_of<Net>(input);
  CHECK(text(t) == "conv1(0) conv3(0) batch_norm1(1) relu1(3) conv2(4) batch_norm2(5) batch_norm3(2) sum1(6,7) relu2(8)");
  CHECK(t.shape(t.size()) == Shape{2, 8, 5, 5});
  // With as many values or more, it waits: its output would need as much memory as its input, for longer.
  for (const Index channels : {1, 2})
    CHECK(text(table_of<Net>({2, channels, 9, 9})) ==
          "conv1(0) batch_norm1(1) relu1(2) conv2(3) conv3(0) batch_norm2(4) batch_norm3(5) sum1(6,7) relu2(8)");
  const std::vector<Layer> list{Plain<8, 2>::layer(), norm, relu, Plain<8>::layer(), norm, reading(Plain<8, 2, 1>::layer(), 6), norm,
                                reading(sum, 3, 1),   relu};
  CHECK(std::equal(list.begin(), list.end(), Net::layers.begin(), Net::layers.end()));
  CHECK(t == make_table(list, input));
  // The stages are the same where the shortcut comes first in the list.
  using Turned = Sequential<Sum<Sequential<Plain<8, 2, 1>, BatchNorm>, Body<8, 2>>, ReLU>;
  CHECK(text(table_of<Turned>(input)) == "conv1(0) conv2(0) batch_norm2(2) relu1(3) conv3(4) batch_norm1(1) batch_norm3(5) sum1(6,7) relu2(8)");
}
TEST_CASE("a layer that shrinks what it reads does not wait for others, unless another that does not shrink it waits") {
  using Pooled = Sequential<MaxPool<>, Plain<8, 1, 1>, BatchNorm>;   // the convolution is alone with what it reads, and waits
  CHECK(text(table_of<Residual<Body<8, 2>, Pooled>>({1, 8, 8, 8})) ==
        "conv1(0) pool1(0) batch_norm1(1) relu1(3) conv2(4) conv3(2) batch_norm2(5) batch_norm3(6) sum1(7,8)");
  // The third branch begins with a norm, which keeps the input to the end. So the second one's convolution is as late as ever.
  using Kept = Sequential<Plain<8, 2>, BatchNorm>;
  using Late = Sequential<BatchNorm, Plain<8, 2>>;
  CHECK(text(table_of<Sequential<Plain<4>, Sum<Body<8, 2>, Kept, Late>>>({1, 4, 8, 8})) ==
        "conv1(0) conv2(1) batch_norm1(2) relu1(3) conv3(4) conv4(1) batch_norm2(5) batch_norm3(6) batch_norm4(1) sum1(7,8) conv5(9) sum2(10,11)");
  // Two that shrink it come together, wherever their branches end.
  using Deep = Sequential<Plain<8, 2>, BatchNorm, Plain<8>, BatchNorm, Plain<8>, BatchNorm>;
  CHECK(text(table_of<Sequential<Plain<4>, Sum<Kept, Deep, Body<8, 2>>>>({1, 4, 8, 8})) ==
        "conv1(0) conv2(1) conv3(1) conv6(1) batch_norm2(3) conv4(5) batch_norm3(6) batch_norm5(4) conv5(7) relu1(8) conv7(10) batch_norm1(2) "
        "batch_norm4(9) batch_norm6(11) sum1(12,13) sum2(15,14)");
}
TEST_CASE("norms that work on single pixels do not part the order, those over groups do") {
  using Shortcut = Plain<8, 2, 1>;
  const auto order = []<class N>(N) { return text(table_of<Residual<Sequential<Plain<8, 2>, N, ReLU>, Sequential<Shortcut, ReLU>>>({1, 2, 8, 8})); };
  CHECK(order(LayerNorm{}) == "conv1(0) layer_norm1(1) relu1(2) conv2(0) relu2(4) sum1(3,5)");
  CHECK(order(GroupNorm<4>{}) == "conv1(0) group_norm1(1) relu1(2) conv2(0) relu2(4) sum1(3,5)");
  CHECK(text(table_of<Residual<Sequential<Shortcut, ReLU>, Sequential<Plain<8, 2>, InstanceNorm>>>({1, 2, 8, 8})) ==
        "conv2(0) instance_norm1(1) conv1(0) relu1(3) sum1(4,2)");
}
TEST_CASE("joins of more than two branches are chains of joins, and joins nest") {
  using Inner = Concat<Conv<2>, Identity, Sequential<Conv<3>, Sum<ReLU, Identity, Conv<3>>>>;
  const Table t = table_of<Sequential<MaxPool<>, Inner, ReLU>>({1, 4, 8, 8});
  CHECK(text(t) == "pool1(0) conv1(1) concat1(2,1) conv2(1) relu1(4) sum1(5,4) conv3(4) sum2(6,7) concat2(3,8) relu2(9)");
  CHECK(t.node(2).out == Shape{1, 6, 4, 4});
  CHECK(t.node(8).in == Shape{1, 6, 4, 4});
  CHECK(t.node(8).in2 == Shape{1, 3, 4, 4});
  CHECK(t.shape(t.size()) == Shape{1, 9, 4, 4});
  CHECK(text(table_of<Sum<Identity, ReLU>>({1, 4, 8, 8})) == "relu1(0) sum1(0,1)");
  CHECK(text(table_of<Sequential<Identity, ReLU, Identity, Sequential<Identity>, ReLU>>({1, 4, 8, 8})) == "relu1(0) relu2(1)");
}
namespace {
struct Far {
  static constexpr std::array<Layer, 2> layers{ReLU::layer(), Layer{.kind = Kind::sum, .other = 99}};
};
template <Index c>
using Double = Sequential<Plain<c>, BatchNorm, ReLU, Plain<c>, BatchNorm, ReLU>;
template <Index c, class Inner>
using Level = Sequential<Double<c>, Concat<Identity, Sequential<MaxPool<>, Inner, Upsample<2>>>, Double<c>>;
using Net = Sequential<Level<4, Level<8, Double<16>>>, Conv<2, Window{.kernel = 1}>>;
}   // namespace
TEST_CASE("a U-Net is levels in levels") {
  const Table t = table_of<Fixed<Net, Input{1, 3, 12, 20}>>();
  CHECK(t.size() == 5 * 6 + 2 * 3 + 1);
  std::vector<std::string> joins;
  for (const Node& node : t.nodes)
    if (is_join(node.layer)) joins.push_back(to_string(node.in) + " " + to_string(node.in2));
  CHECK(joins == std::vector<std::string>{"1x8x6x10 1x16x6x10", "1x4x12x20 1x8x12x20"});
  CHECK(t.shape(t.size()) == Shape{1, 2, 12, 20});
  const auto levels = levels_of(Net::layers);
  CHECK(std::is_sorted(levels.begin(), levels.end()));   // the type's order is that of execution
  CHECK_THROWS_WITH_AS(
      table_of<Net>({1, 3, 12, 18}),
      "lrcnn: layer 22 (concat) on inputs 1x8x6x9 of layer 13 (relu) and 1x16x6x8 of layer 21 (upsample): the branches of "
      "a concat have different rows, columns or images; a concat puts channels of the same pixels one behind the other; change strides, padding or "
      "upsampling in one branch, or the input's extents so that pools divide them",
      ShapeError);
}
TEST_CASE("what follows a branch without rows has none, and other branches keep theirs") {
  const std::vector<Layer> list{GlobalAvgPool::layer(), Flatten::layer(), reading(ReLU::layer(), 2), reading(sum, 1, 2)};
  CHECK(text(make_table(list, {1, 4, 8, 8})) == "global_avg_pool1(0) flatten1(1) relu1(1) sum1(3,2)");
  std::vector<Layer> rows = list;
  rows[2] = reading(Conv<4>::layer(), 2);
  CHECK_NOTHROW(make_table(rows, {1, 4, 8, 8}));   // beside Flatten, not behind it
  rows.push_back(Conv<4>::layer());
  CHECK_THROWS_AS(make_table(rows, {1, 4, 8, 8}), ShapeError);
}
TEST_CASE("references beyond the first layer are to the network's input, in lists and in parts") {
  CHECK(text(make_table(Far::layers, {1, 1, 4, 4})) == "relu1(0) sum1(1,0)");
  CHECK(text(table_of<Sequential<SiLU, Far>>({1, 1, 4, 4})) == "silu1(0) relu1(1) sum1(2,1)");
  CHECK(text(table_of<Sequential<SiLU, Sum<GELU, Far>>>({1, 1, 4, 4})) == "silu1(0) gelu1(1) relu1(1) sum1(3,1) sum2(2,4)");
  CHECK(text(make_table(Far::layers, {1, 1, 4, 4})) == text(make_table(layers_of(make_table(Far::layers, {1, 1, 4, 4})), {1, 1, 4, 4})));
}
TEST_CASE("any order of execution has every layer behind what it reads, levels that go up, and is its own order") {
  Index early = 0;   // networks with a layer that does not wait
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const auto draw = [&](Index low, Index high) { return low + static_cast<Index>(dice() % static_cast<unsigned>(high - low + 1)); };
    std::vector<Layer> list;
    std::vector<Index> open{0};   // tensors that nobody has read
    const Index count = draw(1, 14);
    for (Index i = 0; i < count || open.size() > 1; ++i) {
      const bool join = open.size() > 1 && (i >= count || draw(0, 2) == 0);
      const Layer plain = std::array{norm, relu, Conv<1>::layer()}[static_cast<std::size_t>(draw(0, 2))];   // of two channels or more, one shrinks
      Layer layer = join ? Layer{.kind = Kind::concat} : plain;
      const Index a = open[static_cast<std::size_t>(draw(0, static_cast<Index>(open.size()) - 1))];
      std::erase(open, a);
      layer.input = i + 1 - a;
      if (join) {
        const Index b = open.front();
        std::erase(open, b);
        layer.other = i + 1 - b;
      } else if (i + 1 < count && draw(0, 2) == 0) {
        open.push_back(a);
      }
      list.push_back(layer);
      open.push_back(i + 1);
    }
    if (open.front() != static_cast<Index>(list.size())) continue;
    const Table t = make_table(list, {1, 2, 3, 3});
    REQUIRE(t.size() == static_cast<Index>(list.size()));
    for (Index i = 0; i < t.size(); ++i) CHECK((t.node(i).input <= i && t.node(i).other <= i));
    const auto ordered = layers_of(t);
    CHECK(make_table(ordered, {1, 2, 3, 3}) == t);
    std::vector<Index> levels = levels_of(ordered);
    std::vector<char> shrinking;
    for (const Node& node : t.nodes) shrinking.push_back(shrinks(node.layer, node.in.c, node.out.c));
    read_early(ordered, shrinking, levels);
    early += !std::ranges::equal(levels, levels_of(ordered));
    CHECK(std::is_sorted(levels.begin(), levels.end()));
    CHECK(levels.back() == 0);
    for (std::size_t i = 1; i < ordered.size(); ++i)   // a level begins with its norms
      CHECK((!parts_levels(ordered[i]) || levels[i] > levels[i - 1] || parts_levels(ordered[i - 1])));
    const auto name = [&](const std::vector<Layer>& l, Index tensor) {
      return tensor <= 0 ? std::string(tensor == 0 ? "input" : "-") : std::string(l[static_cast<std::size_t>(tensor - 1)].name.view());
    };
    std::vector<Node> named;
    for (const Layer& y : list) named.push_back({.layer = y});
    name_layers(named);
    for (std::size_t i = 0; i < list.size(); ++i) list[i].name = named[i].layer.name;
    const auto sentences = [&](const std::vector<Layer>& l) {
      std::vector<std::string> all;
      for (std::size_t i = 0; i < l.size(); ++i) {
        const Reads r = reads_of(l[i], static_cast<Index>(i));
        all.push_back(std::string(l[i].name.view()) + ": " + name(l, r.input) + " " + name(l, r.other));
      }
      std::sort(all.begin(), all.end());
      return all;
    };
    CHECK(sentences(list) == sentences(ordered));   // each layer reads the layers it did
  }
  CHECK(early >= 10);
}
TEST_CASE("a chain keeps its order, whatever norms are in it") {
  const std::vector<Layer> list{Conv<4>::layer(), norm, relu, Conv<4>::layer(), norm, GlobalAvgPool::layer(), Linear<2>::layer()};
  const Table t = make_table(list, {2, 3, 8, 8});
  for (Index i = 0; i < t.size(); ++i) CHECK((t.node(i).input == i && t.node(i).other == -1 && t.node(i).in2 == Shape{}));
  CHECK(is_chain(list));
  CHECK(!is_chain(std::vector<Layer>{relu, reading(sum, 1, 2)}));
}
TEST_CASE("scopes prefix names, and number what has none within them") {
  using Inner = Sequential<Named<"first", Conv<4>>, ReLU, Conv<4>, ReLU>;
  const Table t = table_of<Sequential<Conv<4>, ReLU, Scope<"a", Sequential<Inner, Scope<"b", Residual<Inner>>>>, ReLU>>({1, 3, 4, 4});
  CHECK(text(t) ==
        "conv1(0) relu1(1) a.first(2) a.relu1(3) a.conv2(4) a.relu2(5) a.b.first(6) a.b.relu1(7) a.b.conv2(8) a.b.relu2(9) "
        "a.b.sum1(10,6) relu6(11)");
  CHECK(Scope<"a", Identity>::layers.empty());
  CHECK(parameters_of(t)[2].name == "a.first.weight");
  using Longest = Scope<"a_scope_of_exactly_forty_one_characters_x", Named<"conv1", Conv<4>>>;
  CHECK(Longest::layers[0].name.view().size() == Name::capacity);
}
TEST_CASE("names that come again get numbers, and no two layers have one") {
  const auto names = [](const Table& t) {
    std::string list;
    for (const Node& node : t.nodes) list += std::string(node.layer.name.view()) + " ";
    return list;
  };
  const Input input{1, 4, 4, 4};
  using Se = SqueezeExcitation<4, 2>;
  CHECK(names(table_of<Sequential<Se, Se, Se>>(input)) ==
        "global_avg_pool1 fc1 relu1 fc2 sigmoid1 scale1 global_avg_pool2 fc1_2 relu2 fc2_2 sigmoid2 scale2 global_avg_pool3 fc1_3 relu3 fc2_3 "
        "sigmoid3 scale3 ");
  using Block = Scope<"block", Sequential<Conv<4>, Scope<"se", Sequential<Named<"a", Conv<4>>, ReLU>>>>;
  CHECK(names(table_of<Sequential<Block, Residual<Block>, Block>>(input)) ==
        "block.conv1 block.se.a block.se.relu1 block_2.conv1 block_2.se.a block_2.se.relu1 sum1 block_3.conv1 block_3.se.a block_3.se.relu1 ");
  // Within a scope the inner name is the repeated one; a scope that two parts share without sharing names is one scope.
  using Twice = Scope<"stage", Sequential<Named<"a", Conv<4>>, Named<"a", Conv<4>>, Named<"b.x", ReLU>, Named<"b.y", ReLU>>>;
  CHECK(names(table_of<Twice>(input)) == "stage.a stage.a_2 stage.b.x stage.b.y ");
  CHECK(names(table_of<Sum<Named<"a", Conv<4>>, Named<"a", Conv<4>>, Scope<"a_2", Conv<4>>>>(input)) == "a a_3 sum1 a_2.conv1 sum2 ");
  // Names of the user's own are kept, and automatic ones go around them.
  CHECK(names(table_of<Sequential<Named<"conv2", Conv<4>>, Conv<4>, Conv<4>, Named<"conv5", ReLU>, Conv<4>>>(input)) ==
        "conv2 conv3 conv4 conv5 conv6 ");
  CHECK(names(table_of<Scope<"s", Sequential<Named<"conv2", Conv<4>>, Conv<4>>>>(input)) == "s.conv2 s.conv3 ");
  const Table two = table_of<Sequential<Se, Se>>(input);
  std::vector<double> values(static_cast<std::size_t>(parameter_count(two)));
  const auto list = parameters_of(two);
  initialize<double>(list, He{}, 1, values);
  CHECK(list[0].shape == list[4].shape);
  CHECK(values[static_cast<std::size_t>(list[0].offset)] != values[static_cast<std::size_t>(list[4].offset)]);
}
TEST_CASE("automatic names differ where a kind's own name leaves no room for a number") {
  static constexpr CustomLayer long_named{
      .rules = {.name = "a_custom_layer_whose_own_name_is_longer_than_any_layer_may_have_it", .rows = RowMap::window}};
  const Layer custom{.kind = Kind::custom, .window = {1}, .custom = &long_named};
  const Table t = make_table(std::vector<Layer>(12, custom), {1, 3, 8, 8});
  std::vector<std::string> names;
  for (const Node& node : t.nodes) names.emplace_back(node.layer.name.view());
  CHECK(names[0] == "a_custom_layer_whose_own_name_is_longer_than_an");
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}
TEST_CASE("two layers of one name in a list are refused, also in a scope or where the names are too long to be numbered") {
  std::vector<Layer> layers{Named<"stem", Conv<4>>::layer(), relu, Named<"stem", Conv<4>>::layer()};
  const Input input{1, 3, 8, 8};
  CHECK(error_of<ShapeError>([&] { make_table(layers, input); }) ==
        "lrcnn: layers 1 and 3 are both called 'stem'; parameters, their first values, rules and checkpoints go by names, so each layer has "
        "its own; name one of them otherwise, or leave its name empty");
  layers[2].name = "relu1";   // what the second would be called
  CHECK(make_table(layers, input).node(1).layer.name == Name("relu2"));
  using Long = Named<"a_name_of_exactly_forty_six_characters_as_here", Conv<4>>;
  CHECK(error_of<ShapeError>([&] { table_of<Sequential<Long, Long>>(input); }).starts_with("lrcnn: layers 1 and 2 are both called 'a_name_of"));
}
TEST_CASE("parameters of norms: names, shapes, first values, and which of them are running statistics") {
  using Net = Sequential<Conv<6>, BatchNorm, ZeroBatchNorm, GroupNorm<3>, BatchNormWith<NormOptions{.affine = false}>, LayerNorm>;
  const Table t = table_of<Net>({2, 3, 4, 4});
  std::string list;
  for (const Parameter& p : parameters_of(t)) {
    if (p.layer == 0) continue;
    CHECK(p.shape.extents == std::array<Index, 4>{6, 1, 1, 1});
    CHECK(!p.shape.decay);
    list += p.name + "=" + std::to_string(static_cast<int>(p.shape.fill)) + (p.shape.running ? "r " : " ");
  }
  CHECK(list ==
        "batch_norm1.weight=1 batch_norm1.bias=0 batch_norm1.running_mean=0r batch_norm1.running_var=1r "
        "batch_norm2.weight=0 batch_norm2.bias=0 batch_norm2.running_mean=0r batch_norm2.running_var=1r "
        "group_norm1.weight=1 group_norm1.bias=0 batch_norm3.running_mean=0r batch_norm3.running_var=1r "
        "layer_norm1.weight=1 layer_norm1.bias=0 ");
  CHECK(parameter_count(t) == 6 * 27 + 6 + 6 * (4 + 4 + 2 + 2 + 2));
}
static_assert(table_of<Net>(Input{1, 3, 8, 8}) == table_of<Fixed<Net, Input{1, 3, 8, 8}>>());
static_assert(Network<Net> && Network<Residual<ReLU>> && Network<Identity> && Network<Scope<"a", ReLU>>);
