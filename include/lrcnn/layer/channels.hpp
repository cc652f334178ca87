#pragma once
// Layers that work on channels alone, as descriptors.
#include <lrcnn/layer/rules.hpp>
#include <ratio>
namespace lrcnn {
/// A learnt factor for each channel, which begins at First: so small that a residual block begins as the identity.
/// Shapes:  x [N,C,H,W], layer_scale [C] -> y [N,C,H,W]
/// Source:  Touvron et al., "Going deeper with image transformers", arXiv 2103.17239, section 2.1
template <class First = std::ratio<1, 1000000>>
struct LayerScale {
  static constexpr Layer layer() { return {.kind = Kind::layer_scale, .scale = static_cast<double>(First::num) / static_cast<double>(First::den)}; }
};
/// Channels of each group in turn: of the first group the first, of the second the first, ..., so that channel i * C / groups + j becomes
/// channel j * groups + i.
/// Shapes:  x [N,C,H,W] -> y [N,C,H,W]
/// Errors:  groups must divide C
/// Source:  Zhang et al., "ShuffleNet", arXiv 1707.01083, section 3.1
template <Index groups>
struct ChannelShuffle {
  static constexpr Layer layer() { return {.kind = Kind::channel_shuffle, .groups = groups}; }
};
namespace detail {
constexpr ParameterShapes parameters_of_layer_scale(const Layer& layer, const Shape& in) {
  ParameterShapes shapes;
  shapes.add({.name = "layer_scale", .extents = {in.c, 1, 1, 1}, .fill = layer.scale, .decay = false});
  return shapes;
}
inline std::string shuffle_text(const Layer& layer) { return ", groups " + std::to_string(layer.groups); }
constexpr Fault fault_of_shuffle(const Layer& layer, const Shape& in, const Shape&) { return fault_of_groups(layer, in.c); }
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::layer_scale>{
    .name = "layer_scale", .backward = reads_input_for_parameters, .sums_channels = true, .parameters = detail::parameters_of_layer_scale};
template <>
inline constexpr LayerRules kind_rules<Kind::channel_shuffle>{
    .name = "channel_shuffle", .details = detail::shuffle_text, .fault = detail::fault_of_shuffle};
}   // namespace lrcnn
