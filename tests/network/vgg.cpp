// The shipped networks: layers written out by hand, shapes, and numbers of parameters as published.
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <doctest/doctest.h>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
/// Convolutions by channels, 0 for a pool; each convolution with a ReLU.
std::vector<Layer> trunk(const std::vector<Index>& plan) {
  std::vector<Layer> list;
  for (const Index channels : plan) {
    if (channels == 0) list.push_back({.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}});
    else list.push_back({.kind = Kind::conv, .window = {.kernel = 3, .stride = 1, .pad = 1}, .channels = channels, .groups = 1, .bias = true});
    if (channels > 0) list.push_back({.kind = Kind::activation});
  }
  return list;
}
std::vector<Layer> with_head(std::vector<Layer> list, Index classes) {
  list.push_back({.kind = Kind::global_avg_pool});
  list.push_back({.kind = Kind::linear, .channels = classes, .bias = true});
  return list;
}
const std::vector<Index> a{64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
const std::vector<Index> b{64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
const std::vector<Index> d{64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
const std::vector<Index> e{64, 64, 0, 128, 128, 0, 256, 256, 256, 256, 0, 512, 512, 512, 512, 0, 512, 512, 512, 512, 0};
template <class Net>
Index parameters_at(const Input& input) {
  return parameter_count(table_of<Net>(input));
}
}   // namespace
TEST_CASE("VGG-11, 13, 16 and 19 are configurations A, B, D and E") {
  const Input input{2, 3, 64, 64};
  CHECK(table_of<Vgg11<>>(input) == make_table(with_head(trunk(a), 1000), input));
  CHECK(table_of<Vgg13<>>(input) == make_table(with_head(trunk(b), 1000), input));
  CHECK(table_of<Vgg16<>>(input) == make_table(with_head(trunk(d), 1000), input));
  CHECK(table_of<Vgg19<>>(input) == make_table(with_head(trunk(e), 1000), input));
  CHECK(table_of<Vgg16<10>>(input) == make_table(with_head(trunk(d), 10), input));
}
TEST_CASE("trunks have the published numbers of parameters, heads 512 times the classes and a bias") {
  const Input input{1, 3, 224, 224};
  CHECK(parameters_at<VggTrunk<1, 1, 2, 2, 2>>(input) == 9220480);
  CHECK(parameters_at<VggTrunk<2, 2, 2, 2, 2>>(input) == 9404992);
  CHECK(parameters_at<VggTrunk<2, 2, 3, 3, 3>>(input) == 14714688);
  CHECK(parameters_at<VggTrunk<2, 2, 4, 4, 4>>(input) == 20024384);
  CHECK(parameters_at<Vgg11<>>(input) == 9220480 + 513000);
  CHECK(parameters_at<Vgg13<>>(input) == 9404992 + 513000);
  CHECK(parameters_at<Vgg16<>>(input) == 14714688 + 513000);
  CHECK(parameters_at<Vgg19<>>(input) == 20024384 + 513000);
  CHECK(parameters_at<Vgg16<10>>(input) == 14714688 + 5130);
  CHECK(parameters_at<Vgg16<10>>({8, 3, 32, 500}) == 14714688 + 5130);   // extents do not matter
}
TEST_CASE("VGG-16 at 224 has the published map sizes") {
  const Table t = table_of<Vgg16<>>({8, 3, 224, 224});
  Index pools = 0;
  for (const Node& node : t.nodes)
    if (node.layer.kind == Kind::max_pool) {
      const Index channels = std::array<Index, 5>{64, 128, 256, 512, 512}[static_cast<std::size_t>(pools)];
      CHECK(node.out == Shape{8, channels, Index{112} >> pools, Index{112} >> pools});
      ++pools;
    }
  CHECK(pools == 5);
  CHECK(t.shape(t.size()) == Shape{8, 1000, 1, 1});
  CHECK(t.node(0).layer.name == Name("conv1"));
  CHECK(t.node(28).layer.name == Name("conv13"));
  CHECK(t.node(30).layer.name == Name("pool5"));
}
TEST_CASE("LeNet and SmallNet, written out") {
  const Input input{4, 1, 28, 28};
  const Layer relu{.kind = Kind::activation}, pool{.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}}, flatten{.kind = Kind::flatten};
  const auto conv5 = [](Index k) { return Layer{.kind = Kind::conv, .window = {.kernel = 5, .pad = 2}, .channels = k, .bias = true}; };
  const auto linear = [](Index k) { return Layer{.kind = Kind::linear, .channels = k, .bias = true}; };
  CHECK(table_of<LeNet<>>(input) ==
        make_table(std::vector<Layer>{conv5(16), relu, pool, conv5(32), relu, pool, flatten, linear(128), relu, linear(10)}, input));
  CHECK(parameters_at<LeNet<>>(input) == (25 * 16 + 16) + (25 * 16 * 32 + 32) + (32 * 49 * 128 + 128) + 1290);
  auto list = trunk({32, 32, 0, 64, 64, 0, 128, 128});
  CHECK(table_of<SmallNet<>>(input) == make_table(with_head(list, 10), input));
  CHECK(parameters_at<SmallNet<>>({1, 3, 32, 32}) == 896 + 9248 + 18496 + 36928 + 73856 + 147584 + 1290);
}
TEST_CASE("each shipped network works down to the smallest map it promises, and says so below") {
  CHECK(table_of<Vgg16<>>({1, 3, 32, 32}).size() == 33);
  CHECK_THROWS_AS(table_of<Vgg16<>>({1, 3, 31, 32}), ShapeError);
  CHECK(table_of<LeNet<>>({1, 1, 4, 4}).size() == 10);
  CHECK_THROWS_WITH_AS(table_of<LeNet<>>({1, 1, 4, 3}),
                       "lrcnn: layer 6 (max_pool, kernel 2x2 stride 2x2 pad 0,0,0,0 dilation 1x1) on input 1x32x2x1: "
                       "the window does not fit into the "
                       "padded input; extent + padding must be at least (kernel - 1) * dilation + 1; use a larger "
                       "input, a smaller kernel, more padding, "
                       "or fewer strides before this layer",
                       ShapeError);
}
