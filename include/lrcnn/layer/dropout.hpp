#pragma once
// Dropout, of elements, channels and images, as descriptors.
//
// In training what is dropped becomes 0, and what is not is divided by 1 - P; otherwise they pass on what they are given. What is dropped
// is a function of the run's key and of the place of an element alone (layer/drop_mask.hpp): the same however a map is cut, and in a re-run.
// Nothing is kept for the backward pass. P is a std::ratio (clang before 18 takes no floating template arguments).
#include <lrcnn/layer/rules.hpp>
#include <ratio>
namespace lrcnn {
namespace detail {
template <class P>
constexpr Layer dropout_layer(Drop::Each each) {
  return {.kind = Kind::dropout, .drop = {each, static_cast<double>(P::num) / static_cast<double>(P::den)}};
}
}   // namespace detail
/// Drops each element with probability P. As PyTorch's Dropout, with other random numbers.
/// Shapes:  x [N,C,H,W] -> y [N,C,H,W]
/// Errors:  P must be at least 0 and below 1
template <class P = std::ratio<1, 2>>
struct Dropout {
  static constexpr Layer layer() { return detail::dropout_layer<P>(Drop::Each::element); }
};
/// Drops each channel of each image, whole, with probability P. As PyTorch's Dropout2d.
template <class P = std::ratio<1, 2>>
struct SpatialDropout {
  static constexpr Layer layer() { return detail::dropout_layer<P>(Drop::Each::channel); }
};
/// Drops each image's map, whole, with probability P: behind the branch of a residual, `Residual<Sequential<Body, StochasticDepth<P>>>`, of
/// which then the shortcut alone is left. As torchvision's, by rows.
/// Source:  Huang et al., "Deep networks with stochastic depth", arXiv 1603.09382
template <class P>
struct StochasticDepth {
  static constexpr Layer layer() { return detail::dropout_layer<P>(Drop::Each::image); }
};
/// "dropout", "spatial_dropout" or "stochastic_depth"
constexpr std::string_view drop_name(const Drop& drop) {
  if (drop.each == Drop::Each::element) return "dropout";
  return drop.each == Drop::Each::channel ? "spatial_dropout" : "stochastic_depth";
}
namespace detail {
constexpr std::string_view name_of_drop(const Layer& layer) { return drop_name(layer.drop); }
inline std::string probability_text(const Layer& layer) {
  std::string probability = std::to_string(layer.drop.probability);
  while (probability.back() == '0' && probability[probability.size() - 2] != '.') probability.pop_back();
  return " of " + probability;
}
constexpr Fault fault_of_drop(const Layer& layer, const Shape&, const Shape&) {
  return layer.drop.probability >= 0 && layer.drop.probability < 1 ? Fault::none : Fault::bad_probability;
}
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::dropout>{.name = "dropout",
                                                      .variant = detail::name_of_drop,
                                                      .details = detail::probability_text,
                                                      .overwrites_input = true,
                                                      .overwrites_gradient = true,
                                                      .draws = true,
                                                      .fault = detail::fault_of_drop};
}   // namespace lrcnn
