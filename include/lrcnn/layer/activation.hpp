#pragma once
// Pointwise activations as descriptors.
#include <lrcnn/layer/rules.hpp>
#include <ratio>
namespace lrcnn {
/// max(x, 0). Its gradient at 0 is 0.
struct ReLU {
  static constexpr Layer layer() { return {.kind = Kind::activation, .activation = {Function::relu, 0}}; }
};
/// x above zero, slope * x below. The slope is a std::ratio (clang before 18 takes no floating template arguments).
template <class Slope = std::ratio<1, 100>>
struct LeakyReLU {
  static constexpr Layer layer() {
    return {.kind = Kind::activation, .activation = {Function::leaky_relu, static_cast<double>(Slope::num) / static_cast<double>(Slope::den)}};
  }
};
/// x * sigmoid(x).
struct SiLU {
  static constexpr Layer layer() { return {.kind = Kind::activation, .activation = {Function::silu, 0}}; }
};
/// min(max(x, 0), 6). Its gradient at 0 and at 6 is 0.
struct ReLU6 {
  static constexpr Layer layer() { return {.kind = Kind::activation, .activation = {Function::relu6, 0}}; }
};
/// x * Phi(x), Phi the normal distribution function (the exact one, with erf).
struct GELU {
  static constexpr Layer layer() { return {.kind = Kind::activation, .activation = {Function::gelu, 0}}; }
};
/// x * min(max(x + 3, 0), 6) / 6.
struct Hardswish {
  static constexpr Layer layer() { return {.kind = Kind::activation, .activation = {Function::hardswish, 0}}; }
};
/// 1 / (1 + exp(-x)).
struct Sigmoid {
  static constexpr Layer layer() { return {.kind = Kind::activation, .activation = {Function::sigmoid, 0}}; }
};
/// min(max(x + 3, 0), 6) / 6. Its gradient at -3 and at 3 is 0.
struct Hardsigmoid {
  static constexpr Layer layer() { return {.kind = Kind::activation, .activation = {Function::hardsigmoid, 0}}; }
};
constexpr std::string_view function_name(Function f) {
  switch (f) {
    case Function::relu: return "relu";
    case Function::leaky_relu: return "leaky_relu";
    case Function::silu: return "silu";
    case Function::relu6: return "relu6";
    case Function::gelu: return "gelu";
    case Function::hardswish: return "hardswish";
    case Function::sigmoid: return "sigmoid";
    case Function::hardsigmoid: return "hardsigmoid";
  }
  return "?";
}
namespace detail {
constexpr std::string_view name_of_function(const Layer& layer) { return function_name(layer.activation.function); }
/// The sign of a ReLU's output tells that of its input, which is all that its derivative needs.
constexpr BackwardReads reads_sign_or_input(const Layer& layer) {
  const Function f = layer.activation.function;
  const bool sign = f == Function::relu || f == Function::leaky_relu;
  return {.input = !sign, .sign = sign};
}
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::activation>{.name = "activation",
                                                         .variant = detail::name_of_function,
                                                         .backward = detail::reads_sign_or_input,
                                                         .overwrites_input = true,
                                                         .overwrites_gradient = true};
}   // namespace lrcnn
