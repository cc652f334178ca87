// Networks as types: splicing, what is checked without extents and with them, tables as constants.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/sequential.hpp>
#include <doctest/doctest.h>
#include <type_traits>
using namespace lrcnn;
namespace {
using Block = Sequential<Conv<4>, ReLU>;
using Nested = Sequential<Block, Sequential<Block, MaxPool<>>, Flatten, Sequential<Sequential<Linear<3>>>>;
using Plain = Sequential<Conv<4>, ReLU, Conv<4>, ReLU, MaxPool<>, Flatten, Linear<3>>;
/// A network without Sequential.
struct OwnNet {
  static constexpr std::array<Layer, 2> layers{Conv<2>::layer(), ReLU::layer()};
};
/// Likewise with an array of the language.
struct OwnArray {
  static constexpr Layer layers[] = {Conv<2>::layer(), ReLU::layer()};
};
struct NoNet {
  static constexpr int layers = 3;
};
}   // namespace
// Nested Sequentials are spliced in: the types differ, the layers do not.
static_assert(Nested::layers == Plain::layers);
static_assert(std::is_same_v<Nested::Content::Descriptors::type, Plain::Content::Descriptors::type>);
static_assert(Network<Plain> && Network<Nested> && Network<OwnNet> && Network<OwnArray> && Network<Fixed<Plain, Input{1, 3, 8, 8}>>);
static_assert(!Network<NoNet> && !Network<ReLU> && !Network<int>);
// A table is a constant where its extents are.
static_assert(table_of<Plain>({2, 3, 8, 8}) == table_of<Nested>({2, 3, 8, 8}));
static_assert(table_of<Plain>({2, 3, 8, 8}).shape(7) == Shape{2, 3, 1, 1});
static_assert(table_of<Fixed<Plain, Input{2, 3, 8, 8}>>().shape(6) == Shape{2, 64, 1, 1});
TEST_CASE("a network of one's own has the layers it says") {
  CHECK(table_of<OwnNet>({1, 3, 5, 5}) == make_table(OwnNet::layers, {1, 3, 5, 5}));
  CHECK(OwnNet::layers.size() == 2);
}
TEST_CASE("an array of layers is a network and a part of others, whichever kind of array it is") {
  const Input input{1, 3, 5, 5};
  CHECK(table_of<OwnArray>(input) == table_of<OwnNet>(input));
  CHECK(table_of<Fixed<OwnArray, Input{1, 3, 5, 5}>>() == table_of<OwnNet>(input));
  CHECK(table_of<Sequential<Conv<4>, OwnArray, Sequential<OwnArray>>>(input) == table_of<Sequential<Conv<4>, OwnNet, OwnNet>>(input));
  CHECK(table_of<Sequential<Residual<OwnArray, Conv<2>>>>(input) == table_of<Sequential<Residual<OwnNet, Conv<2>>>>(input));
  CHECK(table_of<Scope<"own", OwnArray>>(input) == table_of<Scope<"own", OwnNet>>(input));
}
TEST_CASE("layers keep their order, and one type gives tables for any extents") {
  CHECK(Plain::layers.size() == 7);
  CHECK(Plain::layers[4] == MaxPool<>::layer());
  for (const Index h : {2, 7, 64})
    for (const Index w : {2, 9}) {
      const Table t = table_of<Plain>({3, 1, h, w});
      CHECK(t.shape(6).c == 4 * (h / 2) * (w / 2));
    }
}
TEST_CASE("extents that do not fit are found at run time where they are known only then") {
  CHECK_NOTHROW(table_of<Plain>({1, 3, 2, 2}));
  CHECK_THROWS_AS(table_of<Plain>({1, 3, 1, 2}), ShapeError);
  CHECK_THROWS_AS(table_of<Plain>({0, 3, 8, 8}), ShapeError);
}
TEST_CASE("Fixed is the network with its input") {
  using Small = Fixed<LeNet<>, Input{4, 1, 28, 28}>;
  CHECK(Small::input == Input{4, 1, 28, 28});
  CHECK(table_of<Small>() == table_of<LeNet<>>({4, 1, 28, 28}));
  CHECK(table_of<Small>({1, 1, 12, 12}) == table_of<LeNet<>>({1, 1, 12, 12}));   // other extents are still possible
}
TEST_CASE("inference stops at the first fault and knows what can be known before it") {
  constexpr std::array<Layer, 3> layers{Conv<6>::layer(), Conv<4, Window{}, ConvOptions{.groups = 4}>::layer(), ReLU::layer()};
  constexpr auto inferred = infer_shapes(layers, {unknown, unknown, unknown, unknown});
  CHECK(inferred.fault == std::array{Fault::none, Fault::groups_in, Fault::none});
  CHECK(inferred.shape[1] == Shape{unknown, 6, unknown, unknown});
  CHECK(inferred.shape[2] == Shape{unknown, unknown, unknown, unknown});
}
