// Descriptors as constants: what each type says about its layer.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/channels.hpp>
#include <lrcnn/layer/concepts.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/dropout.hpp>
#include <lrcnn/layer/layers.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pad.hpp>
#include <lrcnn/layer/pointwise.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/resample.hpp>
#include <doctest/doctest.h>
#include "support/error_of.hpp"
#include <set>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
struct NoLayer {};
struct WrongLayer {
  static constexpr int layer() { return 1; }
};
struct OwnLayer {
  static constexpr Layer layer() { return {.kind = Kind::conv, .window = {.kernel = 2}, .channels = 5}; }
};
struct Square {
  static constexpr std::string_view name = "square";
  template <class T>
  static T value(T x) {
    return x * x;
  }
  template <class T>
  static T derivative(T x) {
    return 2 * x;
  }
};
struct NoDerivative {
  static constexpr std::string_view name = "no derivative";
  template <class T>
  static T value(T x) {
    return x;
  }
};
}   // namespace
static_assert(LayerDescriptor<Conv<3>> && LayerDescriptor<ReLU> && LayerDescriptor<LeakyReLU<>> && LayerDescriptor<SiLU>);
static_assert(LayerDescriptor<MaxPool<>> && LayerDescriptor<AvgPool<>> && LayerDescriptor<GlobalAvgPool>);
static_assert(LayerDescriptor<Flatten> && LayerDescriptor<Linear<10>> && LayerDescriptor<Named<"stem", Conv<3>>>);
static_assert(LayerDescriptor<OwnLayer> && LayerDescriptor<Pointwise<Square>>);
static_assert(!LayerDescriptor<NoLayer> && !LayerDescriptor<WrongLayer> && !LayerDescriptor<int>);
static_assert(PointwiseFunctor<Square> && !PointwiseFunctor<NoDerivative> && !PointwiseFunctor<NoLayer>);
TEST_CASE("a convolution has kernel 3, stride 1, padding 1, one group and a bias unless it says otherwise") {
  CHECK(Conv<64>::layer() ==
        Layer{.kind = Kind::conv, .window = {.kernel = 3, .stride = 1, .pad = 1, .dilation = 1}, .channels = 64, .groups = 1, .bias = true});
  constexpr Window w{.kernel = {5, 3}, .stride = 2, .pad = {1, 2, 3, 4}, .dilation = {2, 1}};
  CHECK(Conv<8, w, ConvOptions{.groups = 4, .bias = false}>::layer() ==
        Layer{.kind = Kind::conv, .window = w, .channels = 8, .groups = 4, .bias = false});
}
TEST_CASE("pools have kernel 2 and stride 2 and no padding unless they say otherwise") {
  CHECK(MaxPool<>::layer() == Layer{.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}});
  CHECK(AvgPool<>::layer() == Layer{.kind = Kind::avg_pool, .window = {.kernel = 2, .stride = 2}, .count_padding = true});
  CHECK(AvgPool<Window{.kernel = 3, .pad = 1}, false>::layer() ==
        Layer{.kind = Kind::avg_pool, .window = {.kernel = 3, .pad = 1}, .count_padding = false});
  CHECK(GlobalAvgPool::layer() == Layer{.kind = Kind::global_avg_pool});
}
TEST_CASE("activations carry their function, a leaky one its slope") {
  CHECK(ReLU::layer().activation == Activation{Function::relu, 0});
  CHECK(LeakyReLU<>::layer().activation == Activation{Function::leaky_relu, 0.01});
  CHECK(LeakyReLU<std::ratio<-1, 4>>::layer().activation == Activation{Function::leaky_relu, -0.25});
  CHECK(SiLU::layer().activation == Activation{Function::silu, 0});
  CHECK(ReLU6::layer().activation == Activation{Function::relu6, 0});
  CHECK(GELU::layer().activation == Activation{Function::gelu, 0});
  CHECK(Hardswish::layer().activation == Activation{Function::hardswish, 0});
  CHECK(Sigmoid::layer().activation == Activation{Function::sigmoid, 0});
  CHECK(Hardsigmoid::layer().activation == Activation{Function::hardsigmoid, 0});
  for (const Layer& y : {ReLU::layer(), LeakyReLU<>::layer(), SiLU::layer(), ReLU6::layer(), GELU::layer(), Hardswish::layer(), Sigmoid::layer(),
                         Hardsigmoid::layer()})
    CHECK(y.kind == Kind::activation);
}
TEST_CASE("norms: over what, epsilon 1e-5, momentum 0.1, weight and bias unless they say otherwise") {
  using Over = Norm::Over;
  const auto of = [](const Norm& norm) { return Layer{.kind = Kind::norm, .norm = norm}; };
  CHECK(BatchNorm::layer() == of({.over = Over::batch, .epsilon = 1e-5, .momentum = 0.1, .weight = 1}));
  CHECK(FrozenBatchNorm::layer() == of({.frozen = true}));
  CHECK(ZeroBatchNorm::layer() == of({.weight = 0}));
  CHECK(BatchNormWith<NormOptions{.affine = false}, std::ratio<1, 1000>, std::ratio<1, 100>>::layer() ==
        of({.affine = false, .epsilon = 1e-3, .momentum = 0.01}));
  CHECK(GroupNorm<32>::layer() == of({.over = Over::group, .groups = 32}));
  CHECK(GroupNorm<2, NormOptions{.affine = false}, std::ratio<1, 8>>::layer() ==
        of({.over = Over::group, .affine = false, .groups = 2, .epsilon = 0.125}));
  CHECK(InstanceNorm::layer() == of({.over = Over::group}));
  CHECK(InstanceNormWith<NormOptions{.affine = false}>::layer() == of({.over = Over::group, .affine = false}));
  CHECK(LayerNorm::layer() == of({.over = Over::channels}));
  CHECK(LayerNormWith<NormOptions{}, std::ratio<1, 1000000>>::layer() == of({.over = Over::channels, .epsilon = 1e-6}));
  std::set<std::string> names;
  for (const Layer& y : {BatchNorm::layer(), GroupNorm<2>::layer(), InstanceNorm::layer(), LayerNorm::layer()})
    names.insert(std::string(norm_name(y.norm)));
  CHECK(names == std::set<std::string>{"batch_norm", "group_norm", "instance_norm", "layer_norm"});
}
TEST_CASE("upsampling doubles both extents by the nearest pixel unless it says otherwise") {
  using enum Upsampling::Rule;
  CHECK(Upsample<>::layer() == Layer{.kind = Kind::upsample, .upsampling = {.rule = nearest, .factor = {2, 2}}});
  CHECK(Upsample<3, bilinear>::layer() == Layer{.kind = Kind::upsample, .upsampling = {.rule = bilinear, .factor = {3, 3}}});
  CHECK(Upsample<Pair{2, 1}, bilinear_corners>::layer() == Layer{.kind = Kind::upsample, .upsampling = {.rule = bilinear_corners, .factor = {2, 1}}});
}
TEST_CASE("a transposed convolution doubles both extents unless it says otherwise") {
  CHECK(ConvTranspose<5>::layer() ==
        Layer{.kind = Kind::conv_transpose, .window = {.kernel = 2, .stride = 2}, .channels = 5, .groups = 1, .bias = true});
  constexpr Window w{.kernel = 4, .stride = 2, .pad = 1};
  CHECK(ConvTranspose<8, w, ConvOptions{.groups = 4, .bias = false}>::layer() ==
        Layer{.kind = Kind::conv_transpose, .window = w, .channels = 8, .groups = 4, .bias = false});
}
TEST_CASE("padding with zeros and with reflected rows, and cropping, which is padding with negative numbers") {
  CHECK(ZeroPad<1>::layer() == Layer{.kind = Kind::pad, .window = {.kernel = 1, .pad = {1, 1, 1, 1}}});
  CHECK(ZeroPad<Pad{1, 2, 3, 4}>::layer() == Layer{.kind = Kind::pad, .window = {.kernel = 1, .pad = {1, 2, 3, 4}}});
  CHECK(Crop<Pad{1, 2, 3, 4}>::layer() == Layer{.kind = Kind::pad, .window = {.kernel = 1, .pad = {-1, -2, -3, -4}}});
  CHECK(ReflectPad<3>::layer() == Layer{.kind = Kind::pad, .window = {.kernel = 1, .pad = 3}, .reflect = true});
}
TEST_CASE("layers on channels alone, and adaptive pooling") {
  CHECK(LayerScale<>::layer() == Layer{.kind = Kind::layer_scale, .scale = 1e-6});
  CHECK(LayerScale<std::ratio<1, 2>>::layer().scale == 0.5);
  CHECK(ChannelShuffle<3>::layer() == Layer{.kind = Kind::channel_shuffle, .groups = 3});
  CHECK(AdaptiveAvgPool<7>::layer() == Layer{.kind = Kind::adaptive_avg_pool, .pooled = {7, 7}});
  CHECK(AdaptiveAvgPool<3, 5>::layer() == Layer{.kind = Kind::adaptive_avg_pool, .pooled = {3, 5}});
}
TEST_CASE("dropouts carry what they draw for and how often, one half unless they say otherwise") {
  using enum Drop::Each;
  CHECK(Dropout<>::layer() == Layer{.kind = Kind::dropout, .drop = {element, 0.5}});
  CHECK(Dropout<std::ratio<1, 5>>::layer() == Layer{.kind = Kind::dropout, .drop = {element, 0.2}});
  CHECK(SpatialDropout<>::layer() == Layer{.kind = Kind::dropout, .drop = {channel, 0.5}});
  CHECK(StochasticDepth<std::ratio<1, 10>>::layer() == Layer{.kind = Kind::dropout, .drop = {image, 0.1}});
  std::set<std::string> names;
  for (const Layer& y : {Dropout<>::layer(), SpatialDropout<>::layer(), StochasticDepth<std::ratio<0>>::layer()})
    names.insert(std::string(drop_name(y.drop)));
  CHECK(names == std::set<std::string>{"dropout", "spatial_dropout", "stochastic_depth"});
}
TEST_CASE("layers on vectors") {
  CHECK(Flatten::layer() == Layer{.kind = Kind::flatten});
  CHECK(Linear<10>::layer() == Layer{.kind = Kind::linear, .channels = 10, .bias = true});
  CHECK(Linear<10, false>::layer() == Layer{.kind = Kind::linear, .channels = 10, .bias = false});
}
TEST_CASE("Named changes the name alone, and the outer name counts") {
  Layer conv = Conv<4>::layer();
  CHECK(conv.name.empty());
  conv.name = "stem";
  CHECK(Named<"stem", Conv<4>>::layer() == conv);
  CHECK(Named<"stem", Named<"inner", Conv<4>>>::layer() == conv);
}
TEST_CASE("kinds and functions have names of their own") {
  std::set<std::string> names;
  for (int k = 0; k <= static_cast<int>(Kind::dropout); ++k) names.insert(std::string(kind_name(static_cast<Kind>(k))));
  for (int f = 0; f <= static_cast<int>(Function::hardsigmoid); ++f) names.insert(std::string(function_name(static_cast<Function>(f))));
  CHECK(names.size() == 19 + 8);
  CHECK(names.count("?") == 0);
}
TEST_CASE("a parameter's shape counts its elements; a list of them keeps its order") {
  CHECK(ParameterShape{.extents = {64, 3, 5, 7}}.count() == 64 * 3 * 5 * 7);
  ParameterShapes shapes;
  shapes.add({.name = "a", .extents = {1, 1, 1, 1}});
  shapes.add({.name = "b", .extents = {2, 1, 1, 1}});
  CHECK(shapes.count == 2);
  CHECK(shapes.item[0].name == Name("a"));
  CHECK(shapes.item[1].name == Name("b"));
}
TEST_CASE("a pointwise functor makes a cheap custom layer without parameters that reads its input") {
  const Layer y = Pointwise<Square>::layer();
  REQUIRE(y.custom != nullptr);
  CHECK(y.kind == Kind::custom);
  CHECK(y.custom == Pointwise<Square>::layer().custom);   // one object per functor, so layers compare equal
  const LayerRules& rules = rules_of(y);
  CHECK(&rules == &y.custom->rules);
  CHECK(rules.name == "square");
  CHECK(rules.rows == RowMap::same);
  CHECK(rules.cheap);
  CHECK(rules.overwrites_input);
  CHECK(rules.backward(y).input);
  CHECK(!rules.backward(y).output);
  CHECK(rules.parameters(y, {1, 3, 4, 5}).count == 0);
  CHECK(!y.custom->f64.backward_parameters);
}
TEST_CASE("a pointwise layer applies value and derivative to each element, on slabs of blocked storage too") {
  const Layer layer = Pointwise<Square>::layer();
  for (const Index block : {1, 4}) {
    const Index n = 2, c = 3, h = 5, w = 2;
    const auto count = static_cast<std::size_t>(stored_elements(n, c, h, w, block));
    std::vector<double> x(count), y(count, -1), dy(count), dx(count, -1);
    for (std::size_t i = 0; i < count; ++i) x[i] = 0.5 + static_cast<double>(i), dy[i] = 3.0 - static_cast<double>(i);
    const Range rows{1, 4};
    const auto vx = dense_view<const double>(x.data(), n, c, {0, h}, w, block), vdy = dense_view<const double>(dy.data(), n, c, {0, h}, w, block);
    const auto vy = dense_view(y.data(), n, c, {0, h}, w, block), vdx = dense_view(dx.data(), n, c, {0, h}, w, block);
    const Shape shape{n, c, h, w};
    layer.custom->f64.forward({layer, shape, shape, vx.slice(rows), vy.slice(rows), {}});
    layer.custom->f64.backward_data({layer, shape, shape, vx.slice(rows), {}, vdy.slice(rows), vdx.slice(rows), {}, {}});
    for (Index i = 0; i < n; ++i)
      for (Index k = 0; k < round_up(c, block); ++k)
        for (Index r = 0; r < h; ++r)
          for (Index q = 0; q < w; ++q) {
            const bool written = rows.contains({r, r + 1}), real = k < c;
            const double at = vx(i, k, r, q);
            CHECK(vy(i, k, r, q) == (!written ? -1 : real ? at * at : 0));
            CHECK(vdx(i, k, r, q) == (!written ? -1 : real ? vdy(i, k, r, q) * 2 * at : 0));
          }
  }
}
TEST_CASE("a fifth parameter of a layer is refused") {
  ParameterShapes shapes;
  for (const char* name : {"a", "b", "c", "d"}) shapes.add({.name = name, .extents = {1, 1, 1, 1}});
  CHECK(testing::error_of<ShapeError>([&] {
          shapes.add({.name = "e", .extents = {1, 1, 1, 1}});
        }) == "lrcnn: a layer adds a fifth parameter, 'e'; a layer has at most four; put several into one, or make two layers");
  CHECK(shapes.count == 4);
}
