#pragma once
// One layer as a value: what the layer table holds and everything below the type level reads.
//
// Descriptors (Conv<64>, ReLU, ...) are types that users compose; each has `static constexpr Layer layer()`. From
// there on a network is plain data: the planner, the checker and the executor never see a type. A layer of a user's
// own is a descriptor whose Layer has Kind::custom and points to its operations (layer/custom.hpp).
#include <lrcnn/shape/shape.hpp>
#include <lrcnn/shape/window.hpp>
namespace lrcnn {
struct CustomLayer;
enum class Kind : std::uint8_t {
  conv,             ///< x [N,C,H,W] * w [K,C/groups,R,S] (+ b [K]) -> y [N,K,P,Q]
  activation,       ///< pointwise, x -> y of the same shape
  max_pool,         ///< pads with -inf; ties go to the first in row-major window order
  avg_pool,         ///< count_padding says whether padded positions count
  global_avg_pool,  ///< x [N,C,H,W] -> y [N,C,1,1]; a barrier that accumulates row by row
  flatten,          ///< x [N,C,H,W] -> y [N,C*H*W,1,1] in NCHW order; a barrier
  linear,           ///< x [N,F,1,1] * w [K,F] (+ b [K]) -> y [N,K,1,1]
  custom,           ///< a user's own
};
enum class Function : std::uint8_t { relu, leaky_relu, silu };
/// A pointwise function; `slope` is that of leaky_relu below zero.
struct Activation {
  Function function = Function::relu;
  double slope = 0;
  friend constexpr bool operator==(const Activation&, const Activation&) = default;
};
/// A layer without its position and shapes.
struct Layer {
  Kind kind = Kind::activation;
  Name name{};                 ///< empty: named after its kind and ordinal ("conv3") by the table
  Window window{1};            ///< conv, pools, custom; others: 1x1
  Index channels = 0;          ///< output channels; 0: as many as the input has
  Index groups = 1;            ///< conv
  bool bias = false;           ///< conv, linear
  bool count_padding = true;   ///< avg_pool
  Activation activation{};     ///< activation
  const CustomLayer* custom = nullptr;   ///< custom: what it does, never null there
  friend constexpr bool operator==(const Layer&, const Layer&) = default;
};
constexpr std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::conv: return "conv";
    case Kind::activation: return "activation";
    case Kind::max_pool: return "max_pool";
    case Kind::avg_pool: return "avg_pool";
    case Kind::global_avg_pool: return "global_avg_pool";
    case Kind::flatten: return "flatten";
    case Kind::linear: return "linear";
    case Kind::custom: return "custom";
  }
  return "?";
}
constexpr std::string_view function_name(Function f) {
  switch (f) {
    case Function::relu: return "relu";
    case Function::leaky_relu: return "leaky_relu";
    case Function::silu: return "silu";
  }
  return "?";
}
}  // namespace lrcnn
