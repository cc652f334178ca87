#pragma once
// Network types and the run-time lists that they equal. Written by generate_types.py; do not edit.
// clang-format off
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pointwise.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
#include <vector>
namespace lrcnn::testing::generated {
struct Cube {
  static constexpr std::string_view name = "cube";
  template <class T> static T value(T x) { return x * x * x; }
  template <class T> static T derivative(T x) { return 3 * x * x; }
};
/// One type, its input, and its list.
template <int number> struct Generated;
template <> struct Generated<0> {
  using Net = Sequential<Sequential<LeakyReLU<>, Pointwise<Cube>>, Sequential<Conv<3>, Conv<4>, Conv<2, Window{.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 1, 0, 1}}>>, MaxPool<Window{.kernel = {2, 3}, .stride = {1, 2}, .pad = {1, 0, 2, 1}}>, Conv<1, Window{.kernel = {3, 2}}>, AvgPool<Window{.kernel = {3, 2}, .stride = {3, 2}, .pad = {2, 0, 0, 1}}, false>>;
  static constexpr Input input{4, 4, 8, 13};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 1, 0, 1}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::max_pool, .window = {.kernel = {2, 3}, .stride = {1, 2}, .pad = {1, 0, 2, 1}, .dilation = {1, 1}}},
            {.kind = Kind::conv, .window = {.kernel = {3, 2}, .stride = {1, 1}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::avg_pool, .window = {.kernel = {3, 2}, .stride = {3, 2}, .pad = {2, 0, 0, 1}, .dilation = {1, 1}}, .count_padding = false}};
  }
};
template <> struct Generated<1> {
  using Net = Sequential<LeakyReLU<std::ratio<-1, 8>>, Named<"stem1", SiLU>, Sequential<GlobalAvgPool>, Linear<1>>;
  static constexpr Input input{2, 5, 10, 13};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::activation, .name = "stem1", .activation = {Function::silu, 0}},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 1, .bias = true}};
  }
};
template <> struct Generated<2> {
  using Net = Sequential<Sequential<LeakyReLU<>, AvgPool<Window{.kernel = {1, 3}, .stride = {3, 1}, .pad = {0, 2}}>, ReLU>, Sequential<GlobalAvgPool>, Sequential<Linear<6, false>>>;
  static constexpr Input input{1, 1, 11, 16};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::avg_pool, .window = {.kernel = {1, 3}, .stride = {3, 1}, .pad = {0, 0, 2, 2}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 6, .bias = false}};
  }
};
template <> struct Generated<3> {
  using Net = Sequential<MaxPool<Window{.kernel = {2, 3}, .stride = {3, 1}, .pad = {0, 1, 1, 2}}>, Pointwise<Cube>, LeakyReLU<std::ratio<-1, 8>>, Conv<4, Window{.kernel = 1, .stride = {3, 1}}, ConvOptions{.bias = false}>, Pointwise<Cube>, Conv<1, Window{.kernel = {4, 1}, .stride = 2, .pad = {4, 6, 0, 0}, .dilation = 2}>, Flatten, Linear<1, false>>;
  static constexpr Input input{2, 5, 40, 9};
  static std::vector<Layer> list() {
    return {{.kind = Kind::max_pool, .window = {.kernel = {2, 3}, .stride = {3, 1}, .pad = {0, 1, 1, 2}, .dilation = {1, 1}}},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {1, 1}, .stride = {3, 1}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::conv, .window = {.kernel = {4, 1}, .stride = {2, 2}, .pad = {4, 6, 0, 0}, .dilation = {2, 2}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 1, .bias = false}};
  }
};
template <> struct Generated<4> {
  using Net = Sequential<Named<"head0", Conv<4, Window{.kernel = {3, 1}, .stride = {1, 2}}>>, Sequential<Named<"head1", SiLU>, ReLU>, LeakyReLU<std::ratio<-1, 8>>, Conv<2, Window{.kernel = {5, 2}, .stride = {1, 2}, .pad = {2, 4, 0, 1}}, ConvOptions{.groups = 2, .bias = false}>, Sequential<SiLU, Named<"x6", ReLU>, Pointwise<Cube>>, Sequential<GlobalAvgPool, Named<"x9", Linear<3, false>>>>;
  static constexpr Input input{2, 3, 12, 17};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .name = "head0", .window = {.kernel = {3, 1}, .stride = {1, 2}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::activation, .name = "head1", .activation = {Function::silu, 0}},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {5, 2}, .stride = {1, 2}, .pad = {2, 4, 0, 1}, .dilation = {1, 1}}, .channels = 2, .groups = 2, .bias = false},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::activation, .name = "x6", .activation = {Function::relu, 0}},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .name = "x9", .channels = 3, .bias = false}};
  }
};
template <> struct Generated<5> {
  using Net = Sequential<SiLU, Sequential<Named<"x1", Flatten>>, Named<"block2", Linear<4>>, SiLU, Linear<3, false>>;
  static constexpr Input input{3, 6, 28, 21};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::flatten, .name = "x1"},
            {.kind = Kind::linear, .name = "block2", .channels = 4, .bias = true},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::linear, .channels = 3, .bias = false}};
  }
};
template <> struct Generated<6> {
  using Net = Sequential<Sequential<Conv<4, Window{.pad = 1}, ConvOptions{.bias = false}>>, GlobalAvgPool, Linear<2, false>>;
  static constexpr Input input{1, 4, 22, 6};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 2, .bias = false}};
  }
};
template <> struct Generated<7> {
  using Net = Sequential<Sequential<MaxPool<Window{.kernel = {1, 2}, .stride = {3, 1}, .pad = {0, 0, 0, 1}}>, AvgPool<Window{.kernel = {2, 1}, .stride = {3, 1}}, false>, GlobalAvgPool>, Linear<9>>;
  static constexpr Input input{3, 2, 31, 6};
  static std::vector<Layer> list() {
    return {{.kind = Kind::max_pool, .window = {.kernel = {1, 2}, .stride = {3, 1}, .pad = {0, 0, 0, 1}, .dilation = {1, 1}}},
            {.kind = Kind::avg_pool, .window = {.kernel = {2, 1}, .stride = {3, 1}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .count_padding = false},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 9, .bias = true}};
  }
};
template <> struct Generated<8> {
  using Net = Sequential<Sequential<Conv<2>, LeakyReLU<std::ratio<-1, 8>>>, Sequential<ReLU, Conv<1, Window{.kernel = {4, 1}, .stride = {3, 1}, .pad = {0, 3, 0, 0}}>, Flatten>, Sequential<Linear<4>, Pointwise<Cube>, Linear<5>>>;
  static constexpr Input input{2, 3, 30, 9};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::conv, .window = {.kernel = {4, 1}, .stride = {3, 1}, .pad = {0, 3, 0, 0}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 4, .bias = true},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::linear, .channels = 5, .bias = true}};
  }
};
template <> struct Generated<9> {
  using Net = Sequential<Conv<1, Window{.kernel = {4, 3}, .stride = {1, 2}, .pad = {0, 3, 0, 2}}>, Named<"stem1", SiLU>, Named<"stem2", Conv<4, Window{.kernel = {1, 2}, .pad = {0, 1}, .dilation = {2, 1}}, ConvOptions{.bias = false}>>, Named<"x3", GlobalAvgPool>, Sequential<Linear<8>>>;
  static constexpr Input input{4, 5, 29, 13};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {4, 3}, .stride = {1, 2}, .pad = {0, 3, 0, 2}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::activation, .name = "stem1", .activation = {Function::silu, 0}},
            {.kind = Kind::conv, .name = "stem2", .window = {.kernel = {1, 2}, .stride = {1, 1}, .pad = {0, 0, 1, 1}, .dilation = {2, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::global_avg_pool, .name = "x3"},
            {.kind = Kind::linear, .channels = 8, .bias = true}};
  }
};
template <> struct Generated<10> {
  using Net = Sequential<Sequential<Conv<4, Window{.kernel = {2, 1}, .stride = {3, 2}, .pad = {0, 1, 0, 0}}, ConvOptions{.bias = false}>, GlobalAvgPool, Linear<5>>>;
  static constexpr Input input{1, 4, 36, 23};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {2, 1}, .stride = {3, 2}, .pad = {0, 1, 0, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 5, .bias = true}};
  }
};
template <> struct Generated<11> {
  using Net = Sequential<Sequential<Sequential<Conv<4, Window{.kernel = {2, 1}, .stride = 2, .pad = {0, 1, 0, 0}}>>, Conv<2, Window{.kernel = {4, 2}, .stride = {2, 1}, .pad = {2, 3, 0, 0}}>, Sequential<Named<"head2", AvgPool<Window{.kernel = {1, 3}, .stride = 2}, false>>, ReLU>>>;
  static constexpr Input input{4, 5, 35, 19};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {2, 1}, .stride = {2, 2}, .pad = {0, 1, 0, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {4, 2}, .stride = {2, 1}, .pad = {2, 3, 0, 0}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::avg_pool, .name = "head2", .window = {.kernel = {1, 3}, .stride = {2, 2}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .count_padding = false},
            {.kind = Kind::activation, .activation = {Function::relu, 0}}};
  }
};
template <> struct Generated<12> {
  using Net = Sequential<Sequential<ReLU, LeakyReLU<>, Pointwise<Cube>, Sequential<Flatten>, Linear<3, false>, Named<"block5", SiLU>, Linear<2>>>;
  static constexpr Input input{4, 3, 39, 16};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 3, .bias = false},
            {.kind = Kind::activation, .name = "block5", .activation = {Function::silu, 0}},
            {.kind = Kind::linear, .channels = 2, .bias = true}};
  }
};
template <> struct Generated<13> {
  using Net = Sequential<Named<"head0", Conv<2, Window{.kernel = {5, 1}, .stride = {3, 2}, .pad = {1, 4, 0, 0}}>>, LeakyReLU<std::ratio<-1, 8>>, Sequential<LeakyReLU<>, GlobalAvgPool, Linear<9>>>;
  static constexpr Input input{3, 3, 17, 12};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .name = "head0", .window = {.kernel = {5, 1}, .stride = {3, 2}, .pad = {1, 4, 0, 0}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 9, .bias = true}};
  }
};
template <> struct Generated<14> {
  using Net = Sequential<LeakyReLU<>, LeakyReLU<>, LeakyReLU<std::ratio<-1, 8>>, Conv<15, Window{.kernel = 3, .pad = 1}, ConvOptions{.groups = 5, .bias = false}>, Conv<12, Window{.kernel = {4, 3}, .pad = {2, 1, 0, 2}}, ConvOptions{.groups = 3}>, Flatten, Linear<4>, Sequential<ReLU, Named<"block8", Linear<2>>>>;
  static constexpr Input input{1, 5, 39, 12};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 15, .groups = 5, .bias = false},
            {.kind = Kind::conv, .window = {.kernel = {4, 3}, .stride = {1, 1}, .pad = {2, 1, 0, 2}, .dilation = {1, 1}}, .channels = 12, .groups = 3, .bias = true},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 4, .bias = true},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::linear, .name = "block8", .channels = 2, .bias = true}};
  }
};
template <> struct Generated<15> {
  using Net = Sequential<Sequential<Conv<3, Window{.kernel = {3, 2}, .stride = {3, 2}, .pad = {1, 0}}>, Conv<6, Window{.kernel = {4, 2}, .stride = {1, 2}, .pad = {2, 3, 1, 1}}, ConvOptions{.groups = 3}>>, Sequential<Named<"head2", Conv<1, Window{.kernel = {5, 1}, .stride = {3, 1}, .pad = {3, 1, 0, 0}}>>, GlobalAvgPool>, Sequential<Linear<4>>>;
  static constexpr Input input{2, 1, 39, 6};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 2}, .stride = {3, 2}, .pad = {1, 1, 0, 0}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {4, 2}, .stride = {1, 2}, .pad = {2, 3, 1, 1}, .dilation = {1, 1}}, .channels = 6, .groups = 3, .bias = true},
            {.kind = Kind::conv, .name = "head2", .window = {.kernel = {5, 1}, .stride = {3, 1}, .pad = {3, 1, 0, 0}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 4, .bias = true}};
  }
};
template <> struct Generated<16> {
  using Net = Sequential<Conv<4, Window{.kernel = 3, .pad = 1}, ConvOptions{.bias = false}>, Conv<1, Window{.kernel = {5, 3}, .stride = {3, 2}, .pad = {4, 6, 0, 2}, .dilation = 2}>, Sequential<Named<"x2", Conv<3, Window{.kernel = {3, 1}, .stride = {1, 2}, .pad = {0, 1, 0, 0}}>>, Named<"stem3", Conv<4, Window{.kernel = {4, 3}, .stride = {1, 2}, .pad = {0, 1, 1, 3}, .dilation = {1, 2}}>>, Pointwise<Cube>>, Sequential<Named<"stem5", MaxPool<Window{.kernel = 3, .stride = {3, 1}, .pad = {0, 1, 0, 2}}>>>, Sequential<Conv<1, Window{.kernel = 3, .pad = 1}, ConvOptions{.bias = false}>, Flatten, Named<"stem8", Linear<8>>>>;
  static constexpr Input input{3, 4, 36, 14};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::conv, .window = {.kernel = {5, 3}, .stride = {3, 2}, .pad = {4, 6, 0, 2}, .dilation = {2, 2}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::conv, .name = "x2", .window = {.kernel = {3, 1}, .stride = {1, 2}, .pad = {0, 1, 0, 0}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::conv, .name = "stem3", .window = {.kernel = {4, 3}, .stride = {1, 2}, .pad = {0, 1, 1, 3}, .dilation = {1, 2}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::max_pool, .name = "stem5", .window = {.kernel = {3, 3}, .stride = {3, 1}, .pad = {0, 1, 0, 2}, .dilation = {1, 1}}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = false},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .name = "stem8", .channels = 8, .bias = true}};
  }
};
template <> struct Generated<17> {
  using Net = Sequential<AvgPool<Window{.kernel = {3, 2}, .pad = {0, 1, 1, 1}}>, SiLU, Conv<2, Window{.pad = 1}, ConvOptions{.bias = false}>>;
  static constexpr Input input{4, 3, 29, 14};
  static std::vector<Layer> list() {
    return {{.kind = Kind::avg_pool, .window = {.kernel = {3, 2}, .stride = {1, 1}, .pad = {0, 1, 1, 1}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = false}};
  }
};
template <> struct Generated<18> {
  using Net = Sequential<Sequential<Conv<4, Window{.kernel = {3, 2}, .stride = {2, 1}, .pad = {2, 0, 1, 0}}>, Conv<3, Window{.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 1, 0, 2}, .dilation = {2, 1}}>>, Sequential<AvgPool<Window{.kernel = {3, 2}, .stride = 2, .pad = {2, 0, 1, 1}}>, Named<"stem3", Conv<6, Window{.kernel = 3, .pad = 1}, ConvOptions{.groups = 3}>>>>;
  static constexpr Input input{2, 1, 34, 15};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 2}, .stride = {2, 1}, .pad = {2, 0, 1, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 1, 0, 2}, .dilation = {2, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::avg_pool, .window = {.kernel = {3, 2}, .stride = {2, 2}, .pad = {2, 0, 1, 1}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::conv, .name = "stem3", .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 6, .groups = 3, .bias = true}};
  }
};
template <> struct Generated<19> {
  using Net = Sequential<LeakyReLU<>, Named<"head1", Pointwise<Cube>>, Conv<15, Window{.kernel = {3, 2}, .pad = {2, 1, 1, 0}}, ConvOptions{.groups = 5, .bias = false}>, Conv<4, Window{.kernel = {4, 2}, .stride = {3, 2}, .pad = {1, 3, 0, 0}}, ConvOptions{.bias = false}>, Named<"x4", Flatten>, Linear<2>>;
  static constexpr Input input{1, 5, 13, 21};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::custom, .name = "head1", .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::conv, .window = {.kernel = {3, 2}, .stride = {1, 1}, .pad = {2, 1, 1, 0}, .dilation = {1, 1}}, .channels = 15, .groups = 5, .bias = false},
            {.kind = Kind::conv, .window = {.kernel = {4, 2}, .stride = {3, 2}, .pad = {1, 3, 0, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::flatten, .name = "x4"},
            {.kind = Kind::linear, .channels = 2, .bias = true}};
  }
};
template <> struct Generated<20> {
  using Net = Sequential<Conv<1, Window{.kernel = {3, 2}, .stride = {3, 2}, .pad = {0, 1, 1, 1}}>, Named<"block1", LeakyReLU<std::ratio<-1, 8>>>, Sequential<Conv<2, Window{.kernel = {3, 2}, .stride = {3, 2}, .pad = {0, 0, 1, 0}}>, Named<"head3", Flatten>, Linear<5>>>;
  static constexpr Input input{2, 3, 12, 15};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 2}, .stride = {3, 2}, .pad = {0, 1, 1, 1}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::activation, .name = "block1", .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {3, 2}, .stride = {3, 2}, .pad = {0, 0, 1, 0}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::flatten, .name = "head3"},
            {.kind = Kind::linear, .channels = 5, .bias = true}};
  }
};
template <> struct Generated<21> {
  using Net = Sequential<Conv<4, Window{.kernel = {5, 1}, .stride = {3, 1}, .pad = {4, 3, 0, 0}, .dilation = {1, 2}}, ConvOptions{.bias = false}>, Named<"stem1", Conv<4, Window{.kernel = {4, 3}, .stride = {2, 1}, .pad = {1, 5, 0, 1}, .dilation = {3, 2}}, ConvOptions{.bias = false}>>, SiLU, Sequential<LeakyReLU<std::ratio<-1, 8>>, Conv<4, Window{.pad = 1}, ConvOptions{.bias = false}>, LeakyReLU<>>, Sequential<Pointwise<Cube>, LeakyReLU<std::ratio<-1, 8>>, Named<"x8", Flatten>>, Linear<1>>;
  static constexpr Input input{2, 4, 32, 14};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {5, 1}, .stride = {3, 1}, .pad = {4, 3, 0, 0}, .dilation = {1, 2}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::conv, .name = "stem1", .window = {.kernel = {4, 3}, .stride = {2, 1}, .pad = {1, 5, 0, 1}, .dilation = {3, 2}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::flatten, .name = "x8"},
            {.kind = Kind::linear, .channels = 1, .bias = true}};
  }
};
template <> struct Generated<22> {
  using Net = Sequential<Conv<3, Window{.kernel = 1, .stride = {2, 1}}, ConvOptions{.bias = false}>, Named<"head1", Conv<1>>, Named<"x2", MaxPool<Window{.kernel = {2, 3}, .stride = 2, .pad = {0, 1, 2, 1}}>>, MaxPool<Window{.kernel = {2, 1}, .stride = {1, 2}, .pad = {1, 0, 0, 0}}>, Conv<4, Window{.kernel = {4, 1}, .pad = {2, 1, 0, 0}}>, Sequential<Conv<2, Window{.kernel = 1, .stride = {1, 2}}>>, MaxPool<Window{.kernel = {2, 3}, .stride = {3, 2}, .pad = {1, 0, 2, 2}}>, Sequential<MaxPool<Window{.kernel = {2, 1}, .pad = {1, 0, 0, 0}}>, GlobalAvgPool, Linear<3>>>;
  static constexpr Input input{2, 2, 7, 24};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {1, 1}, .stride = {2, 1}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = false},
            {.kind = Kind::conv, .name = "head1", .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::max_pool, .name = "x2", .window = {.kernel = {2, 3}, .stride = {2, 2}, .pad = {0, 1, 2, 1}, .dilation = {1, 1}}},
            {.kind = Kind::max_pool, .window = {.kernel = {2, 1}, .stride = {1, 2}, .pad = {1, 0, 0, 0}, .dilation = {1, 1}}},
            {.kind = Kind::conv, .window = {.kernel = {4, 1}, .stride = {1, 1}, .pad = {2, 1, 0, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {1, 1}, .stride = {1, 2}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::max_pool, .window = {.kernel = {2, 3}, .stride = {3, 2}, .pad = {1, 0, 2, 2}, .dilation = {1, 1}}},
            {.kind = Kind::max_pool, .window = {.kernel = {2, 1}, .stride = {1, 1}, .pad = {1, 0, 0, 0}, .dilation = {1, 1}}},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 3, .bias = true}};
  }
};
template <> struct Generated<23> {
  using Net = Sequential<Sequential<LeakyReLU<std::ratio<-1, 8>>, Conv<3, Window{.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 1, 0, 2}}>, Conv<3, Window{.kernel = {5, 1}, .stride = {3, 2}, .pad = {2, 4, 0, 0}}>>, Sequential<Conv<4, Window{.kernel = {2, 1}, .stride = {1, 2}}>, AvgPool<Window{.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 1, 2, 1}}, false>>, Sequential<Named<"stem5", Flatten>>, Sequential<Linear<8>>>;
  static constexpr Input input{3, 1, 7, 23};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 1, 0, 2}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {5, 1}, .stride = {3, 2}, .pad = {2, 4, 0, 0}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {2, 1}, .stride = {1, 2}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::avg_pool, .window = {.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 1, 2, 1}, .dilation = {1, 1}}, .count_padding = false},
            {.kind = Kind::flatten, .name = "stem5"},
            {.kind = Kind::linear, .channels = 8, .bias = true}};
  }
};
template <> struct Generated<24> {
  using Net = Sequential<Sequential<Conv<2, Window{.stride = {1, 2}, .pad = {2, 0}}, ConvOptions{.bias = false}>, LeakyReLU<>, Conv<3, Window{.kernel = {2, 3}, .stride = 2, .pad = {1, 0, 0, 1}}, ConvOptions{.bias = false}>>, Sequential<Named<"block3", GlobalAvgPool>>, Linear<8, false>>;
  static constexpr Input input{4, 5, 17, 11};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 2}, .pad = {2, 2, 0, 0}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = false},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::conv, .window = {.kernel = {2, 3}, .stride = {2, 2}, .pad = {1, 0, 0, 1}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = false},
            {.kind = Kind::global_avg_pool, .name = "block3"},
            {.kind = Kind::linear, .channels = 8, .bias = false}};
  }
};
template <> struct Generated<25> {
  using Net = Sequential<Conv<3, Window{.kernel = {5, 2}, .pad = {1, 4, 1, 0}}>, Named<"x1", AvgPool<Window{.kernel = {1, 3}, .stride = {3, 1}, .pad = {0, 0, 1, 0}}>>, MaxPool<Window{.kernel = {1, 3}, .stride = {3, 1}, .pad = {0, 0, 0, 2}}>, MaxPool<Window{.kernel = 2, .stride = 2, .pad = {1, 0, 1, 1}}>, Named<"block4", LeakyReLU<std::ratio<-1, 8>>>, Pointwise<Cube>, Conv<1, Window{.kernel = {2, 3}, .pad = {0, 2, 2, 2}, .dilation = {2, 1}}>, LeakyReLU<>, GlobalAvgPool, Linear<7>>;
  static constexpr Input input{4, 1, 19, 14};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {5, 2}, .stride = {1, 1}, .pad = {1, 4, 1, 0}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::avg_pool, .name = "x1", .window = {.kernel = {1, 3}, .stride = {3, 1}, .pad = {0, 0, 1, 0}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::max_pool, .window = {.kernel = {1, 3}, .stride = {3, 1}, .pad = {0, 0, 0, 2}, .dilation = {1, 1}}},
            {.kind = Kind::max_pool, .window = {.kernel = {2, 2}, .stride = {2, 2}, .pad = {1, 0, 1, 1}, .dilation = {1, 1}}},
            {.kind = Kind::activation, .name = "block4", .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::conv, .window = {.kernel = {2, 3}, .stride = {1, 1}, .pad = {0, 2, 2, 2}, .dilation = {2, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 7, .bias = true}};
  }
};
template <> struct Generated<26> {
  using Net = Sequential<Conv<4>, GlobalAvgPool, Linear<1>>;
  static constexpr Input input{2, 6, 19, 18};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 1, .bias = true}};
  }
};
template <> struct Generated<27> {
  using Net = Sequential<Conv<9, Window{.kernel = {4, 1}}, ConvOptions{.groups = 3}>, Sequential<ReLU>, Named<"head2", LeakyReLU<>>, Named<"block3", AvgPool<Window{.kernel = {3, 1}, .stride = {3, 1}, .pad = {0, 1, 0, 0}}>>, GlobalAvgPool, Sequential<Linear<1>>>;
  static constexpr Input input{4, 6, 23, 14};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {4, 1}, .stride = {1, 1}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 9, .groups = 3, .bias = true},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::activation, .name = "head2", .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::avg_pool, .name = "block3", .window = {.kernel = {3, 1}, .stride = {3, 1}, .pad = {0, 1, 0, 0}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 1, .bias = true}};
  }
};
template <> struct Generated<28> {
  using Net = Sequential<Sequential<Conv<24, Window{.kernel = 3, .pad = 1}, ConvOptions{.groups = 6}>, Conv<12, Window{.kernel = {4, 1}, .pad = {0, 4, 0, 0}, .dilation = 2}, ConvOptions{.groups = 6, .bias = false}>>, Conv<4, Window{.kernel = {4, 2}, .stride = {1, 2}, .pad = {1, 1, 1, 0}, .dilation = {2, 1}}, ConvOptions{.bias = false}>, Sequential<Flatten, Linear<1, false>>>;
  static constexpr Input input{1, 6, 14, 22};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 24, .groups = 6, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {4, 1}, .stride = {1, 1}, .pad = {0, 4, 0, 0}, .dilation = {2, 2}}, .channels = 12, .groups = 6, .bias = false},
            {.kind = Kind::conv, .window = {.kernel = {4, 2}, .stride = {1, 2}, .pad = {1, 1, 1, 0}, .dilation = {2, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 1, .bias = false}};
  }
};
template <> struct Generated<29> {
  using Net = Sequential<Sequential<Named<"stem0", LeakyReLU<std::ratio<-1, 8>>>>, Conv<2, Window{.kernel = {1, 2}, .stride = 2, .pad = {0, 1}, .dilation = {1, 2}}, ConvOptions{.bias = false}>, AvgPool<Window{.kernel = {1, 3}, .stride = {3, 2}, .pad = {0, 0, 2, 0}}>, Named<"x3", Conv<3, Window{.kernel = {4, 2}, .stride = {3, 1}, .pad = {2, 1, 1, 0}, .dilation = {2, 1}}>>, Sequential<LeakyReLU<>>, Sequential<Conv<3, Window{.kernel = {1, 2}, .stride = {2, 1}}>, Flatten, Linear<9, false>>>;
  static constexpr Input input{1, 3, 24, 7};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .name = "stem0", .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {1, 2}, .stride = {2, 2}, .pad = {0, 0, 1, 1}, .dilation = {1, 2}}, .channels = 2, .groups = 1, .bias = false},
            {.kind = Kind::avg_pool, .window = {.kernel = {1, 3}, .stride = {3, 2}, .pad = {0, 0, 2, 0}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::conv, .name = "x3", .window = {.kernel = {4, 2}, .stride = {3, 1}, .pad = {2, 1, 1, 0}, .dilation = {2, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::conv, .window = {.kernel = {1, 2}, .stride = {2, 1}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 9, .bias = false}};
  }
};
template <> struct Generated<30> {
  using Net = Sequential<ReLU, Conv<4>, Sequential<Named<"head2", Pointwise<Cube>>>, AvgPool<Window{.kernel = {1, 3}, .stride = 2, .pad = {0, 1}}, false>, Flatten, Linear<7, false>, SiLU, Linear<6>>;
  static constexpr Input input{3, 5, 7, 24};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::custom, .name = "head2", .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::avg_pool, .window = {.kernel = {1, 3}, .stride = {2, 2}, .pad = {0, 0, 1, 1}, .dilation = {1, 1}}, .count_padding = false},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 7, .bias = false},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::linear, .channels = 6, .bias = true}};
  }
};
template <> struct Generated<31> {
  using Net = Sequential<Sequential<Named<"x0", Conv<2, Window{.pad = 1}, ConvOptions{.bias = false}>>>, SiLU, LeakyReLU<>, Flatten, Linear<4>, ReLU, Named<"x6", Linear<6>>>;
  static constexpr Input input{1, 4, 13, 17};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .name = "x0", .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = false},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 4, .bias = true},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::linear, .name = "x6", .channels = 6, .bias = true}};
  }
};
template <> struct Generated<32> {
  using Net = Sequential<Sequential<ReLU, Conv<2, Window{.kernel = {4, 2}, .stride = {3, 1}, .pad = {1, 0, 1, 0}}, ConvOptions{.groups = 2}>, Sequential<Conv<3>, SiLU>>>;
  static constexpr Input input{1, 2, 15, 14};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::conv, .window = {.kernel = {4, 2}, .stride = {3, 1}, .pad = {1, 0, 1, 0}, .dilation = {1, 1}}, .channels = 2, .groups = 2, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::activation, .activation = {Function::silu, 0}}};
  }
};
template <> struct Generated<33> {
  using Net = Sequential<Sequential<Sequential<MaxPool<Window{.kernel = {3, 1}, .stride = {3, 2}, .pad = {2, 0}}>, Conv<12, Window{.kernel = {5, 3}, .stride = {3, 2}, .pad = {8, 3, 0, 0}, .dilation = 2}, ConvOptions{.groups = 3, .bias = false}>, Conv<1, Window{.kernel = {1, 3}, .stride = {2, 1}, .pad = {0, 0, 1, 2}}, ConvOptions{.bias = false}>>, SiLU, Conv<1, Window{.kernel = {1, 2}, .pad = {0, 0, 0, 1}}>, Pointwise<Cube>, Named<"x6", LeakyReLU<std::ratio<-1, 8>>>, LeakyReLU<std::ratio<-1, 8>>, Sequential<Named<"block8", GlobalAvgPool>, Linear<1, false>>>>;
  static constexpr Input input{2, 6, 20, 13};
  static std::vector<Layer> list() {
    return {{.kind = Kind::max_pool, .window = {.kernel = {3, 1}, .stride = {3, 2}, .pad = {2, 2, 0, 0}, .dilation = {1, 1}}},
            {.kind = Kind::conv, .window = {.kernel = {5, 3}, .stride = {3, 2}, .pad = {8, 3, 0, 0}, .dilation = {2, 2}}, .channels = 12, .groups = 3, .bias = false},
            {.kind = Kind::conv, .window = {.kernel = {1, 3}, .stride = {2, 1}, .pad = {0, 0, 1, 2}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = false},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::conv, .window = {.kernel = {1, 2}, .stride = {1, 1}, .pad = {0, 0, 0, 1}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::activation, .name = "x6", .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::global_avg_pool, .name = "block8"},
            {.kind = Kind::linear, .channels = 1, .bias = false}};
  }
};
template <> struct Generated<34> {
  using Net = Sequential<Sequential<LeakyReLU<>>, Sequential<Flatten, Linear<5>>>;
  static constexpr Input input{3, 5, 7, 12};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 5, .bias = true}};
  }
};
template <> struct Generated<35> {
  using Net = Sequential<Sequential<LeakyReLU<>>, MaxPool<Window{.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 0, 2, 0}}>, Conv<2, Window{.pad = 1}, ConvOptions{.groups = 2}>, Named<"x3", Conv<4, Window{.kernel = {4, 2}, .stride = 2, .pad = {3, 0, 0, 1}}, ConvOptions{.bias = false}>>, SiLU>;
  static constexpr Input input{3, 2, 27, 9};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::max_pool, .window = {.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 0, 2, 0}, .dilation = {1, 1}}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 2, .groups = 2, .bias = true},
            {.kind = Kind::conv, .name = "x3", .window = {.kernel = {4, 2}, .stride = {2, 2}, .pad = {3, 0, 0, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::activation, .activation = {Function::silu, 0}}};
  }
};
template <> struct Generated<36> {
  using Net = Sequential<Conv<2, Window{.kernel = {4, 2}, .stride = {3, 2}, .pad = {3, 1}}>, Conv<4, Window{.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 0, 0, 2}}, ConvOptions{.bias = false}>, Named<"block2", GlobalAvgPool>, Linear<7, false>>;
  static constexpr Input input{3, 1, 7, 14};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {4, 2}, .stride = {3, 2}, .pad = {3, 3, 1, 1}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {2, 3}, .stride = {2, 1}, .pad = {1, 0, 0, 2}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = false},
            {.kind = Kind::global_avg_pool, .name = "block2"},
            {.kind = Kind::linear, .channels = 7, .bias = false}};
  }
};
template <> struct Generated<37> {
  using Net = Sequential<Pointwise<Cube>, Pointwise<Cube>, LeakyReLU<std::ratio<-1, 8>>, Conv<3, Window{.kernel = 3, .pad = 1}, ConvOptions{.bias = false}>, ReLU, Conv<6, Window{.kernel = {1, 3}, .pad = {0, 1}, .dilation = {2, 1}}, ConvOptions{.groups = 3, .bias = false}>, Flatten, Sequential<Named<"stem7", Linear<1>>, Named<"block8", SiLU>, Named<"block9", Linear<6>>>>;
  static constexpr Input input{1, 5, 38, 6};
  static std::vector<Layer> list() {
    return {{.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = false},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::conv, .window = {.kernel = {1, 3}, .stride = {1, 1}, .pad = {0, 0, 1, 1}, .dilation = {2, 1}}, .channels = 6, .groups = 3, .bias = false},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .name = "stem7", .channels = 1, .bias = true},
            {.kind = Kind::activation, .name = "block8", .activation = {Function::silu, 0}},
            {.kind = Kind::linear, .name = "block9", .channels = 6, .bias = true}};
  }
};
template <> struct Generated<38> {
  using Net = Sequential<Sequential<Named<"block0", LeakyReLU<>>, AvgPool<Window{.kernel = 2, .stride = 2, .pad = {1, 1, 1, 0}}, false>, Pointwise<Cube>>, Sequential<LeakyReLU<>, AvgPool<Window{.kernel = {3, 1}, .stride = {1, 2}, .pad = {0, 1, 0, 0}}, false>>, SiLU, GlobalAvgPool, Linear<5>>;
  static constexpr Input input{4, 4, 12, 7};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .name = "block0", .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::avg_pool, .window = {.kernel = {2, 2}, .stride = {2, 2}, .pad = {1, 1, 1, 0}, .dilation = {1, 1}}, .count_padding = false},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::avg_pool, .window = {.kernel = {3, 1}, .stride = {1, 2}, .pad = {0, 1, 0, 0}, .dilation = {1, 1}}, .count_padding = false},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 5, .bias = true}};
  }
};
template <> struct Generated<39> {
  using Net = Sequential<Named<"x0", Conv<3, Window{.kernel = {2, 1}, .stride = {2, 1}, .pad = {0, 1, 0, 0}}>>, AvgPool<Window{.kernel = {3, 2}, .stride = {2, 1}, .pad = 1}>, Conv<4>, Conv<1, Window{.kernel = {4, 3}, .stride = {1, 2}, .pad = {3, 0, 2, 2}}>, Sequential<Flatten, Named<"x5", Linear<9>>>>;
  static constexpr Input input{2, 3, 30, 5};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .name = "x0", .window = {.kernel = {2, 1}, .stride = {2, 1}, .pad = {0, 1, 0, 0}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::avg_pool, .window = {.kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {4, 3}, .stride = {1, 2}, .pad = {3, 0, 2, 2}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .name = "x5", .channels = 9, .bias = true}};
  }
};
template <> struct Generated<40> {
  using Net = Sequential<Sequential<Named<"head0", SiLU>, LeakyReLU<std::ratio<-1, 8>>, MaxPool<Window{.kernel = {3, 1}, .pad = {2, 0}}>, Conv<10, Window{.kernel = {5, 1}, .stride = {2, 1}, .pad = {3, 2, 0, 0}, .dilation = 2}, ConvOptions{.groups = 5, .bias = false}>, GlobalAvgPool, Linear<3, false>>>;
  static constexpr Input input{4, 5, 39, 6};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .name = "head0", .activation = {Function::silu, 0}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::max_pool, .window = {.kernel = {3, 1}, .stride = {1, 1}, .pad = {2, 2, 0, 0}, .dilation = {1, 1}}},
            {.kind = Kind::conv, .window = {.kernel = {5, 1}, .stride = {2, 1}, .pad = {3, 2, 0, 0}, .dilation = {2, 2}}, .channels = 10, .groups = 5, .bias = false},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 3, .bias = false}};
  }
};
template <> struct Generated<41> {
  using Net = Sequential<AvgPool<Window{.kernel = {3, 2}, .stride = {3, 2}, .pad = {1, 2, 0, 0}}>, Sequential<Named<"stem1", Conv<3, Window{.kernel = {5, 3}, .pad = {2, 1, 0, 2}, .dilation = {1, 2}}>>>, Sequential<Named<"stem2", Conv<2, Window{.kernel = {3, 1}, .stride = {3, 1}, .pad = {0, 1, 0, 0}}>>, ReLU, LeakyReLU<std::ratio<-1, 8>>>, Sequential<Conv<8, Window{.pad = {1, 0, 0, 0}}, ConvOptions{.groups = 2}>, Conv<2, Window{.pad = 1}, ConvOptions{.bias = false}>, GlobalAvgPool>, Linear<2, false>>;
  static constexpr Input input{4, 3, 20, 10};
  static std::vector<Layer> list() {
    return {{.kind = Kind::avg_pool, .window = {.kernel = {3, 2}, .stride = {3, 2}, .pad = {1, 2, 0, 0}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::conv, .name = "stem1", .window = {.kernel = {5, 3}, .stride = {1, 1}, .pad = {2, 1, 0, 2}, .dilation = {1, 2}}, .channels = 3, .groups = 1, .bias = true},
            {.kind = Kind::conv, .name = "stem2", .window = {.kernel = {3, 1}, .stride = {3, 1}, .pad = {0, 1, 0, 0}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.125}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 0, 0, 0}, .dilation = {1, 1}}, .channels = 8, .groups = 2, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 2, .groups = 1, .bias = false},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .channels = 2, .bias = false}};
  }
};
template <> struct Generated<42> {
  using Net = Sequential<Conv<1, Window{.kernel = 1}>, Conv<2, Window{.kernel = {3, 2}, .pad = {0, 3, 0, 1}, .dilation = {2, 1}}>, Conv<1, Window{.kernel = {4, 1}, .stride = {3, 2}, .pad = {9, 3, 0, 0}, .dilation = {3, 2}}, ConvOptions{.bias = false}>, Conv<1, Window{.kernel = {4, 3}, .stride = {2, 1}, .pad = {1, 2, 2, 2}}>, Sequential<Flatten>, Linear<4>>;
  static constexpr Input input{1, 1, 23, 12};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .window = {.kernel = {1, 1}, .stride = {1, 1}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {3, 2}, .stride = {1, 1}, .pad = {0, 3, 0, 1}, .dilation = {2, 1}}, .channels = 2, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {4, 1}, .stride = {3, 2}, .pad = {9, 3, 0, 0}, .dilation = {3, 2}}, .channels = 1, .groups = 1, .bias = false},
            {.kind = Kind::conv, .window = {.kernel = {4, 3}, .stride = {2, 1}, .pad = {1, 2, 2, 2}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .channels = 4, .bias = true}};
  }
};
template <> struct Generated<43> {
  using Net = Sequential<Named<"block0", Conv<4>>, Conv<4, Window{.kernel = {5, 3}, .stride = {2, 1}, .pad = {0, 4, 0, 0}}, ConvOptions{.groups = 2, .bias = false}>, LeakyReLU<>, MaxPool<Window{.kernel = {3, 1}, .stride = {3, 1}, .pad = {0, 2, 0, 0}}>, Named<"stem4", SiLU>, ReLU, GlobalAvgPool, Named<"stem7", Linear<3>>>;
  static constexpr Input input{1, 3, 15, 19};
  static std::vector<Layer> list() {
    return {{.kind = Kind::conv, .name = "block0", .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 4, .groups = 1, .bias = true},
            {.kind = Kind::conv, .window = {.kernel = {5, 3}, .stride = {2, 1}, .pad = {0, 4, 0, 0}, .dilation = {1, 1}}, .channels = 4, .groups = 2, .bias = false},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::max_pool, .window = {.kernel = {3, 1}, .stride = {3, 1}, .pad = {0, 2, 0, 0}, .dilation = {1, 1}}},
            {.kind = Kind::activation, .name = "stem4", .activation = {Function::silu, 0}},
            {.kind = Kind::activation, .activation = {Function::relu, 0}},
            {.kind = Kind::global_avg_pool},
            {.kind = Kind::linear, .name = "stem7", .channels = 3, .bias = true}};
  }
};
template <> struct Generated<44> {
  using Net = Sequential<Sequential<SiLU, Conv<1, Window{.kernel = {5, 3}, .stride = 2, .pad = {2, 2, 0, 1}}>, Named<"head2", Conv<1, Window{.kernel = {3, 1}, .stride = {3, 2}, .pad = {1, 0, 0, 0}}>>>>;
  static constexpr Input input{4, 5, 40, 8};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::conv, .window = {.kernel = {5, 3}, .stride = {2, 2}, .pad = {2, 2, 0, 1}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true},
            {.kind = Kind::conv, .name = "head2", .window = {.kernel = {3, 1}, .stride = {3, 2}, .pad = {1, 0, 0, 0}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true}};
  }
};
template <> struct Generated<45> {
  using Net = Sequential<Named<"x0", LeakyReLU<>>, Conv<3, Window{.kernel = 3, .pad = 1}, ConvOptions{.bias = false}>, Named<"head2", Flatten>, Linear<6, false>, Named<"head4", ReLU>, Linear<6, false>>;
  static constexpr Input input{3, 4, 37, 13};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .name = "x0", .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::conv, .window = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = false},
            {.kind = Kind::flatten, .name = "head2"},
            {.kind = Kind::linear, .channels = 6, .bias = false},
            {.kind = Kind::activation, .name = "head4", .activation = {Function::relu, 0}},
            {.kind = Kind::linear, .channels = 6, .bias = false}};
  }
};
template <> struct Generated<46> {
  using Net = Sequential<Named<"head0", AvgPool<Window{.kernel = {1, 3}, .stride = {3, 1}, .pad = {0, 0, 1, 2}}>>, Named<"stem1", MaxPool<Window{.kernel = {2, 3}, .stride = {1, 2}, .pad = {1, 1, 0, 1}}>>, SiLU, Named<"head3", LeakyReLU<>>, Sequential<Flatten>, Sequential<Named<"head5", Linear<8, false>>>, SiLU, Linear<4, false>>;
  static constexpr Input input{1, 4, 8, 23};
  static std::vector<Layer> list() {
    return {{.kind = Kind::avg_pool, .name = "head0", .window = {.kernel = {1, 3}, .stride = {3, 1}, .pad = {0, 0, 1, 2}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::max_pool, .name = "stem1", .window = {.kernel = {2, 3}, .stride = {1, 2}, .pad = {1, 1, 0, 1}, .dilation = {1, 1}}},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::activation, .name = "head3", .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .name = "head5", .channels = 8, .bias = false},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::linear, .channels = 4, .bias = false}};
  }
};
template <> struct Generated<47> {
  using Net = Sequential<AvgPool<Window{.kernel = 2, .stride = {3, 2}, .pad = {1, 0, 1, 0}}, false>, Named<"head1", Pointwise<Cube>>, AvgPool<Window{.kernel = {2, 1}, .stride = {1, 2}, .pad = {1, 0, 0, 0}}, false>, AvgPool<Window{.kernel = 1, .stride = {3, 1}}>, Conv<2, Window{.kernel = {3, 1}, .stride = {2, 1}, .pad = {5, 6, 0, 0}, .dilation = {3, 2}}, ConvOptions{.bias = false}>, Pointwise<Cube>, LeakyReLU<>, LeakyReLU<>>;
  static constexpr Input input{3, 1, 33, 22};
  static std::vector<Layer> list() {
    return {{.kind = Kind::avg_pool, .window = {.kernel = {2, 2}, .stride = {3, 2}, .pad = {1, 0, 1, 0}, .dilation = {1, 1}}, .count_padding = false},
            {.kind = Kind::custom, .name = "head1", .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::avg_pool, .window = {.kernel = {2, 1}, .stride = {1, 2}, .pad = {1, 0, 0, 0}, .dilation = {1, 1}}, .count_padding = false},
            {.kind = Kind::avg_pool, .window = {.kernel = {1, 1}, .stride = {3, 1}, .pad = {0, 0, 0, 0}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::conv, .window = {.kernel = {3, 1}, .stride = {2, 1}, .pad = {5, 6, 0, 0}, .dilation = {3, 2}}, .channels = 2, .groups = 1, .bias = false},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}}};
  }
};
template <> struct Generated<48> {
  using Net = Sequential<Sequential<Named<"stem0", SiLU>, SiLU, Named<"block2", MaxPool<Window{.kernel = 3, .stride = {1, 2}, .pad = {0, 0, 0, 1}}>>>, Sequential<Conv<3, Window{.kernel = {3, 1}, .stride = {1, 2}, .pad = {0, 2, 0, 0}}, ConvOptions{.bias = false}>>, Flatten, Named<"head5", Linear<5>>>;
  static constexpr Input input{3, 2, 40, 14};
  static std::vector<Layer> list() {
    return {{.kind = Kind::activation, .name = "stem0", .activation = {Function::silu, 0}},
            {.kind = Kind::activation, .activation = {Function::silu, 0}},
            {.kind = Kind::max_pool, .name = "block2", .window = {.kernel = {3, 3}, .stride = {1, 2}, .pad = {0, 0, 0, 1}, .dilation = {1, 1}}},
            {.kind = Kind::conv, .window = {.kernel = {3, 1}, .stride = {1, 2}, .pad = {0, 2, 0, 0}, .dilation = {1, 1}}, .channels = 3, .groups = 1, .bias = false},
            {.kind = Kind::flatten},
            {.kind = Kind::linear, .name = "head5", .channels = 5, .bias = true}};
  }
};
template <> struct Generated<49> {
  using Net = Sequential<AvgPool<Window{.kernel = {3, 1}, .stride = {3, 1}, .pad = {2, 1, 0, 0}}>, MaxPool<Window{.kernel = {2, 3}, .stride = 2, .pad = {0, 0, 2, 0}}>, LeakyReLU<>, Sequential<Pointwise<Cube>, Pointwise<Cube>>, Conv<1, Window{.kernel = {5, 3}, .stride = {3, 2}, .pad = {1, 2, 1, 2}}>>;
  static constexpr Input input{1, 3, 32, 8};
  static std::vector<Layer> list() {
    return {{.kind = Kind::avg_pool, .window = {.kernel = {3, 1}, .stride = {3, 1}, .pad = {2, 1, 0, 0}, .dilation = {1, 1}}, .count_padding = true},
            {.kind = Kind::max_pool, .window = {.kernel = {2, 3}, .stride = {2, 2}, .pad = {0, 0, 2, 0}, .dilation = {1, 1}}},
            {.kind = Kind::activation, .activation = {Function::leaky_relu, 0.01}},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::custom, .custom = Pointwise<Cube>::layer().custom},
            {.kind = Kind::conv, .window = {.kernel = {5, 3}, .stride = {3, 2}, .pad = {1, 2, 1, 2}, .dilation = {1, 1}}, .channels = 1, .groups = 1, .bias = true}};
  }
};
inline constexpr int count = 50;
}   // namespace lrcnn::testing::generated
