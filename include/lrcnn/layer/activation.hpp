#pragma once
// Pointwise activations as descriptors.
#include <lrcnn/layer/layer.hpp>
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
    return {.kind = Kind::activation,
            .activation = {Function::leaky_relu, static_cast<double>(Slope::num) / static_cast<double>(Slope::den)}};
  }
};
/// x * sigmoid(x).
struct SiLU {
  static constexpr Layer layer() { return {.kind = Kind::activation, .activation = {Function::silu, 0}}; }
};
}  // namespace lrcnn
