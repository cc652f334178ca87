// Layer tables: fifty generated types equal their run-time lists, names, shapes and parameters follow the rules.
#include <lrcnn/network/graph.hpp>
#include <lrcnn/network/table.hpp>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <utility>
#include "network/generated_types.hpp"
using namespace lrcnn;
using namespace lrcnn::testing::generated;
namespace {
std::string names(const Table& table) {
  std::string text;
  for (const Node& node : table.nodes) text += (text.empty() ? "" : " ") + std::string(node.layer.name.view());
  return text;
}
template <int number>
void compare() {
  using G = Generated<number>;
  INFO("type ", number);
  const auto list = G::list();
  REQUIRE(G::Net::layers.size() == list.size());
  for (std::size_t i = 0; i < list.size(); ++i) CHECK(G::Net::layers[i] == list[i]);
  const Table by_type = table_of<typename G::Net>(G::input), by_list = make_table(list, G::input);
  CHECK(by_type == by_list);
  CHECK(parameters_of(by_type) == parameters_of(by_list));
  CHECK(table_of<Fixed<typename G::Net, G::input>>() == by_list);
  std::set<std::string> distinct;
  for (const Node& node : by_type.nodes) distinct.insert(std::string(node.layer.name.view()));
  CHECK(distinct.size() == list.size());
}
template <int... number>
void compare_all(std::integer_sequence<int, number...>) {
  (compare<number>(), ...);
}
}   // namespace
TEST_CASE("the table of a generated type is that of its list of layers") {
  compare_all(std::make_integer_sequence<int, testing::generated::count>{});
}
TEST_CASE("the generated types hold every kind of layer, named layers and nested Sequentials") {
  std::set<Kind> kinds;
  Index named = 0;
  const auto add = [&](const std::vector<Layer>& list) {
    for (const Layer& y : list) kinds.insert(y.kind), named += !y.name.empty();
  };
  [&]<int... number>(std::integer_sequence<int, number...>) { (add(Generated<number>::list()), ...); }
  (std::make_integer_sequence<int, testing::generated::count>{});
  CHECK(kinds.size() == 8);
  CHECK(named > 20);
}
TEST_CASE("a network has at least one layer, whatever gives the list") {
  const std::string wanted = "lrcnn: this network has no layers; a network has at least one; name its layers";
  const auto thrown = [](const auto& make) -> std::string {
    try {
      static_cast<void>(make());
    } catch (const ShapeError& e) {
      return e.what();
    }
    return "";
  };
  CHECK(thrown([] { return make_table(std::vector<Layer>{}, {1, 3, 8, 8}); }) == wanted);
  CHECK(thrown([] { return table_of<Identity>({1, 3, 8, 8}); }) == wanted);
  CHECK(thrown([] { return table_of<Sequential<Identity>>({1, 3, 8, 8}); }) == wanted);
  CHECK(table_of<Sequential<Identity, ReLU>>({1, 3, 8, 8}).size() == 1);   // as a part it is one
}
TEST_CASE("each node reads the tensor before it, and shapes are those of its formula") {
  const std::vector<Layer> list{
      {.kind = Kind::conv, .window = {.kernel = {5, 3}, .stride = {2, 1}, .pad = {1, 2, 0, 1}, .dilation = {1, 2}}, .channels = 6, .groups = 3},
      {.kind = Kind::activation},
      {.kind = Kind::max_pool, .window = {.kernel = 3, .stride = 2}},
      {.kind = Kind::flatten},
      {.kind = Kind::linear, .channels = 4}};
  const Table t = make_table(list, {2, 3, 21, 14});
  REQUIRE(t.size() == 5);
  CHECK(t.tensors() == 6);
  for (Index i = 0; i < 5; ++i) CHECK(t.node(i).input == i);
  for (Index i = 0; i < 5; ++i) CHECK(t.node(i).in == t.shape(i));
  for (Index i = 0; i < 5; ++i) CHECK(t.node(i).out == t.shape(i + 1));
  CHECK(t.shape(0) == Shape{2, 3, 21, 14});
  CHECK(t.shape(1) == Shape{2, 6, 10, 11});   // floor((21+3-5)/2)+1, (14+1-5)/1+1
  CHECK(t.shape(2) == t.shape(1));
  CHECK(t.shape(3) == Shape{2, 6, 4, 5});
  CHECK(t.shape(4) == Shape{2, 120, 1, 1});
  CHECK(t.shape(5) == Shape{2, 4, 1, 1});
}
TEST_CASE("layers without a name are numbered by kind from 1, pools together, and names of one's own stay") {
  const std::vector<Layer> list{Conv<2>::layer(),
                                ReLU::layer(),
                                Named<"mine", Conv<2>>::layer(),
                                LeakyReLU<>::layer(),
                                MaxPool<>::layer(),
                                Conv<2>::layer(),
                                ReLU::layer(),
                                AvgPool<>::layer(),
                                SiLU::layer(),
                                Pointwise<Cube>::layer(),
                                Flatten::layer(),
                                Linear<3>::layer(),
                                Pointwise<Cube>::layer(),
                                Linear<3>::layer()};
  CHECK(names(make_table(list, {1, 1, 8, 8})) == "conv1 relu1 mine leaky_relu1 pool1 conv3 relu2 pool2 silu1 cube1 flatten1 linear1 cube2 linear2");
  CHECK(names(make_table(std::vector<Layer>{GlobalAvgPool::layer()}, {1, 1, 8, 8})) == "global_avg_pool1");
}
TEST_CASE("numbers go on beyond nine, and long names are cut") {
  std::vector<Layer> list(120, ReLU::layer());
  const Table t = make_table(list, {1, 1, 1, 1});
  CHECK(t.node(9).layer.name == Name("relu10"));
  CHECK(t.node(119).layer.name == Name("relu120"));
  CHECK(numbered(std::string(60, 'a'), 12).view() == std::string(Name::capacity, 'a'));
}
TEST_CASE("parameters: their names, shapes, fans and places") {
  const std::vector<Layer> list{Conv<8, Window{.kernel = {3, 5}}, ConvOptions{.groups = 2}>::layer(), ReLU::layer(),
                                Named<"head", Conv<4, Window{.kernel = 1}, ConvOptions{.bias = false}>>::layer(), GlobalAvgPool::layer(),
                                Linear<10>::layer()};
  const Table t = make_table(list, {1, 6, 9, 9});
  const auto p = parameters_of(t);
  REQUIRE(p.size() == 5);
  CHECK(p[0] == Parameter{"conv1.weight", {.name = "weight", .extents = {8, 3, 3, 5}, .fan_in = 45, .fan_out = 60}, 0, 0});
  CHECK(p[1] == Parameter{"conv1.bias", {.name = "bias", .extents = {8, 1, 1, 1}, .decay = false}, 360, 0});
  CHECK(p[2] == Parameter{"head.weight", {.name = "weight", .extents = {4, 8, 1, 1}, .fan_in = 8, .fan_out = 4}, 368, 2});
  CHECK(p[3] == Parameter{"linear1.weight", {.name = "weight", .extents = {10, 4, 1, 1}, .fan_in = 4, .fan_out = 10}, 400, 4});
  CHECK(p[4] == Parameter{"linear1.bias", {.name = "bias", .extents = {10, 1, 1, 1}, .decay = false}, 440, 4});
  CHECK(parameter_count(t) == 450);
  CHECK(flat_elements(p) == 450);
  CHECK(parameter_elements(p) == 450);
}
TEST_CASE("parameters lie one after the other, and biases are filled rather than drawn") {
  [&]<int... number>(std::integer_sequence<int, number...>) {
    const auto check = [](const Table& t) {
      Index next = 0;
      for (const Parameter& p : parameters_of(t)) {
        CHECK(p.offset == next);
        CHECK((p.shape.fan_in > 0) == (p.shape.name == Name("weight")));
        CHECK(p.shape.decay == (p.shape.name == Name("weight")));
        CHECK(p.name == std::string(t.node(p.layer).layer.name.view()) + "." + std::string(p.shape.name.view()));
        next += p.shape.count();
      }
      CHECK(parameter_count(t) == next);
    };
    (check(table_of<typename Generated<number>::Net>(Generated<number>::input)), ...);
  }
  (std::make_integer_sequence<int, testing::generated::count>{});
}
static_assert(table_of<Generated<3>::Net>(Generated<3>::input).size() == 8);
static_assert(parameter_count(table_of<Sequential<Conv<2>>>({1, 3, 5, 5})) == 2 * 27 + 2);
