#pragma once
// Layers on feature vectors as descriptors.
#include <lrcnn/layer/layer.hpp>
namespace lrcnn {
/// A map as a vector in NCHW order: x [N,C,H,W] -> y [N,C*H*W,1,1]. Needs all rows; ends a stage before it.
struct Flatten {
  static constexpr Layer layer() { return {.kind = Kind::flatten}; }
};
/// y = weight x + bias: x [N,F,1,1], weight [K,F], bias [K] -> y [N,K,1,1].
template <Index K, bool bias = true>
struct Linear {
  static constexpr Layer layer() { return {.kind = Kind::linear, .channels = K, .bias = bias}; }
};
}  // namespace lrcnn
