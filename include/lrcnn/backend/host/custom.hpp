#pragma once
// Layers of a user's own: find the function for the element type and call it.
#include <lrcnn/backend/host/activation.hpp>
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <string>
namespace lrcnn::host {
namespace detail {
/// The functions that a layer offers for an element type; none for types other than float, double and bfloat16.
template <class T>
CustomFunctions<T> custom_functions(const CustomLayer& layer) {
  if constexpr (std::is_same_v<T, float>) return layer.f32;
  else if constexpr (std::is_same_v<T, double>) return layer.f64;
  else if constexpr (std::is_same_v<T, bfloat16>) return layer.bf16;
  else return {};
}
template <class T>
constexpr std::string_view element_name() {
  if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, double>) return "double";
  else if constexpr (std::is_same_v<T, bfloat16>) return "bfloat16";
  else return "this element type";
}
/// The function for an operation. Errors: BackendError naming the layer if it is not offered.
template <class T, class F>
F offered(const Operands<T>& o, F function, std::string_view what) {
  if (function != nullptr) return function;
  throw BackendError(
      error_text("layer '" + std::string(o.node->layer.name.view()) + "' (" + describe(o.node->layer) + ") has no function " + std::string(what) +
                     " for " + std::string(element_name<T>()),
                 "a custom layer offers its arithmetic for each element type that it is run with",
                 "give its CustomLayer the function in f32 (float), f64 (double) or bf16 (bfloat16), or choose a backend of another type"));
}
}   // namespace detail
/// Errors: BackendError naming the layer if it lacks the function that a step needs for this element type.
template <class T>
void check_custom(const Operands<T>& o) {
  const auto functions = detail::custom_functions<T>(*o.node->layer.custom);
  if (o.op == Op::forward) detail::offered(o, functions.forward, "forward");
  if (o.op == Op::backward_data) detail::offered(o, functions.backward_data, "backward_data");
  if (o.op == Op::backward_parameters) detail::offered(o, functions.backward_parameters, "backward_parameters");
}
/// Post:    padded channels of y are 0, whatever the function does with them; the activation that the step applies comes behind
template <class T>
void custom_forward(const Operands<T>& o, int threads) {
  const auto f = detail::offered(o, detail::custom_functions<T>(*o.node->layer.custom).forward, "forward");
  f({o.node->layer, o.node->in, o.node->out, o.x, o.y, parameters_of_layer(o)});
  zero_padded_channels(o.y);
  if (o.activation) activation_forward(activation_of(o), threads);
}
template <class T>
void custom_backward_data(const Operands<T>& o, int) {
  const auto f = detail::offered(o, detail::custom_functions<T>(*o.node->layer.custom).backward_data, "backward_data");
  f({o.node->layer, o.node->in, o.node->out, o.x, o.y, o.dy, o.dx, parameters_of_layer(o), {}});
  zero_padded_channels(o.dx);
}
/// Post:    gradients are added to what is there if accumulate, else written
template <class T>
void custom_backward_parameters(const Operands<T>& o, int) {
  const auto f = detail::offered(o, detail::custom_functions<T>(*o.node->layer.custom).backward_parameters, "backward_parameters");
  const auto shapes = parameter_shapes(o.node->layer, o.node->in);
  const auto count = static_cast<std::size_t>(shapes.count);
  if (!o.accumulate)
    for (std::size_t p = 0; p < count; ++p) std::fill_n(o.d_parameters[p], shapes.item[p].count(), master_t<T>(0));
  f({o.node->layer, o.node->in, o.node->out, o.x, o.y, o.dy, View<T>{}, parameters_of_layer(o), {o.d_parameters.data(), count}});
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::custom, T>{custom_forward<T>, custom_backward_data<T>, custom_backward_parameters<T>};
}   // namespace lrcnn::host
