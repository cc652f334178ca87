#pragma once
// Layers on feature vectors as descriptors.
#include <lrcnn/layer/rules.hpp>
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
namespace detail {
constexpr Shape flattened_shape(const Layer&, const Shape& in, const Shape&) {
  return {in.n, known(in.c) && known(in.h) && known(in.w) ? in.c * in.h * in.w : unknown, 1, 1};
}
constexpr Fault fault_of_linear(const Layer& layer, const Shape& in, const Shape&) {
  if (layer.channels < 1) return Fault::bad_channels;
  if ((known(in.h) && in.h != 1) || (known(in.w) && in.w != 1)) return Fault::needs_vector;
  return too_many({layer.channels, in.c}) ? Fault::too_large : Fault::none;
}
constexpr ParameterShapes parameters_of_linear(const Layer& layer, const Shape& in) {
  ParameterShapes shapes;
  shapes.add({.name = "weight", .extents = {layer.channels, in.c, 1, 1}, .fan_in = in.c, .fan_out = layer.channels});
  if (layer.bias) shapes.add({.name = "bias", .extents = {layer.channels, 1, 1, 1}, .decay = false});
  return shapes;
}
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::flatten>{.name = "flatten", .rows = RowMap::all, .ends_rows = true, .output = detail::flattened_shape};
template <>
inline constexpr LayerRules kind_rules<Kind::linear>{.name = "linear",
                                                     .ends_rows = true,
                                                     .backward = reads_input_for_parameters,
                                                     .cheap = false,
                                                     .uses_workspace = true,
                                                     .fault = detail::fault_of_linear,
                                                     .parameters = detail::parameters_of_linear};
}   // namespace lrcnn
