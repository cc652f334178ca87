#pragma once
// Convolution, and the one that goes the other way, as descriptors.
#include <lrcnn/layer/rules.hpp>
namespace lrcnn {
/// Options that few convolutions need.
struct ConvOptions {
  Index groups = 1;   ///< input and output channels are divided into so many independent groups
  bool bias = true;
  friend constexpr bool operator==(const ConvOptions&, const ConvOptions&) = default;
};
/// Convolution to K channels. The number of input channels is inferred.
/// Shapes:  x [N,C,H,W], weight [K,C/groups,R,S], bias [K] -> y [N,K,P,Q], P = floor((H + top + bottom - e) / stride) + 1,
///          e = (R - 1) * dilation + 1, likewise Q
/// Errors:  groups must divide C and K; the window must fit into the padded input (compile time for Fixed networks,
///          ShapeError otherwise)
template <Index K, Window window = Window{.kernel = 3, .pad = 1}, ConvOptions options = ConvOptions{}>
struct Conv {
  static constexpr Layer layer() { return {.kind = Kind::conv, .window = window, .channels = K, .groups = options.groups, .bias = options.bias}; }
};
/// Transposed convolution to K channels: the map from y to x of which a convolution with this window is the map from x to y's
/// gradient. ConvTranspose<K> makes maps twice as large. As PyTorch's, without output padding.
/// Shapes:  x [N,C,H,W], weight [C,K/groups,R,S], bias [K] -> y [N,K,P,Q], P = (H - 1) * stride + (R - 1) * dilation + 1 - top - bottom,
///          likewise Q
/// Errors:  groups must divide C and K; padding must leave a row and a column
template <Index K, Window window = Window{.kernel = 2, .stride = 2}, ConvOptions options = ConvOptions{}>
struct ConvTranspose {
  static constexpr Layer layer() {
    return {.kind = Kind::conv_transpose, .window = window, .channels = K, .groups = options.groups, .bias = options.bias};
  }
};
namespace detail {
inline std::string groups_text(const Layer& layer) { return layer.groups == 1 ? std::string() : ", groups " + std::to_string(layer.groups); }
inline std::string window_and_groups(const Layer& layer) { return ", " + to_string(layer.window) + groups_text(layer); }
constexpr Index taps(const Layer& layer) { return layer.window.kernel.h * layer.window.kernel.w; }
constexpr Fault fault_of_filter(const Layer& layer, const Shape& in, const Shape&) {
  if (layer.window.ceil) return Fault::ceil_window;
  if (layer.channels < 1) return Fault::bad_channels;
  if (const Fault fault = fault_of_groups(layer, in.c); fault != Fault::none) return fault;
  if (layer.channels % layer.groups != 0) return Fault::groups_out;
  return too_many({layer.channels, taps(layer), in.c}) ? Fault::too_large : Fault::none;
}
constexpr ParameterShapes filter_and_bias(const Layer& layer, const ParameterShape& filter) {
  ParameterShapes shapes;
  shapes.add(filter);
  if (layer.bias) shapes.add({.name = "bias", .extents = {layer.channels, 1, 1, 1}, .decay = false});
  return shapes;
}
constexpr ParameterShapes parameters_of_conv(const Layer& layer, const Shape& in) {
  const Index from = in.c / layer.groups, to = layer.channels / layer.groups;
  return filter_and_bias(layer, {.name = "weight",
                                 .extents = {layer.channels, from, layer.window.kernel.h, layer.window.kernel.w},
                                 .fan_in = from * taps(layer),
                                 .fan_out = to * taps(layer)});
}
constexpr Axis transposed_rows(const Layer& layer, const Shape&) { return transposed_axis(row_axis(layer.window)); }
constexpr Index transposed(const Axis& axis, Index extent) { return known(extent) ? transposed_extent(axis, extent) : unknown; }
constexpr Shape transposed_shape(const Layer& layer, const Shape& in, const Shape&) {
  return {in.n, layer.channels, transposed(row_axis(layer.window), in.h), transposed(column_axis(layer.window), in.w)};
}
constexpr Fault fault_of_transposed(const Layer& layer, const Shape& in, const Shape&) {
  if (const Fault fault = fault_of_window(layer.window); fault != Fault::none) return fault;
  if (const Fault fault = fault_of_filter(layer, in, in); fault != Fault::none) return fault;
  const Shape out = transposed_shape(layer, in, in);
  return (known(out.h) && out.h < 1) || (known(out.w) && out.w < 1) ? Fault::nothing_left : Fault::none;
}
/// A convolution's filter the other way round, and its fans too.
constexpr ParameterShapes parameters_of_transposed(const Layer& layer, const Shape& in) {
  const Index from = in.c / layer.groups, to = layer.channels / layer.groups;
  return filter_and_bias(layer, {.name = "weight",
                                 .extents = {in.c, to, layer.window.kernel.h, layer.window.kernel.w},
                                 .fan_in = to * taps(layer),
                                 .fan_out = from * taps(layer)});
}
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::conv>{.name = "conv",
                                                   .details = detail::groups_text,
                                                   .rows = RowMap::window,
                                                   .backward = reads_input_for_parameters,
                                                   .cheap = false,
                                                   .takes_activation = true,
                                                   .uses_workspace = true,
                                                   .fault = detail::fault_of_filter,
                                                   .parameters = detail::parameters_of_conv};
template <>
inline constexpr LayerRules kind_rules<Kind::conv_transpose>{.name = "conv_transpose",
                                                             .details = detail::window_and_groups,
                                                             .rows = RowMap::own,
                                                             .axis = detail::transposed_rows,
                                                             .backward = reads_input_for_parameters,
                                                             .cheap = false,
                                                             .uses_workspace = true,
                                                             .output = detail::transposed_shape,
                                                             .fault = detail::fault_of_transposed,
                                                             .parameters = detail::parameters_of_transposed};
}   // namespace lrcnn
