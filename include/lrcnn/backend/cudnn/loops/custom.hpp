#pragma once
// Layers of a program's own on a device: finds the loops that the program has compiled for the element type, and calls them.
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
namespace lrcnn::loops {
namespace detail {
/// The stream that a Thrust policy starts loops on; null: the policy's loops run at once, on the host.
template <class Exec>
void* stream_of([[maybe_unused]] const Exec& exec) {
#ifdef __CUDACC__
  static_assert(CudaPolicy<Exec>, "lrcnn: on a device loops are started on a stream");
  return cuda_stream(exec);
#else
  return nullptr;
#endif
}
}   // namespace detail
/// As host::custom_forward. Pre: the layer has loops for T
template <class Exec, class T>
void custom_forward(const Exec& exec, const Operands<T>& o) {
  const Node& node = *o.node;
  custom_on_device<T>(node.layer)->forward({node.layer, node.in, node.out, o.x, o.y, parameters_of_layer(o)}, detail::stream_of(exec));
  if (o.activation) activation_forward(exec, activation_of(o));
}
/// As host::custom_backward_data. Pre: the layer has loops for T
template <class Exec, class T>
void custom_backward_data(const Exec& exec, const Operands<T>& o) {
  const Node& node = *o.node;
  const CustomBackward<T> arguments{node.layer, node.in, node.out, o.x, o.y, o.dy, o.dx, parameters_of_layer(o), {}};
  custom_on_device<T>(node.layer)->backward_data(arguments, detail::stream_of(exec));
}
/// Post: gradients are added to what is there if o.accumulate, else written. Pre: the layer has loops for T; a workspace of custom_workspace()
template <class Exec, class T>
void custom_backward_parameters(const Exec& exec, const Operands<T>& o) {
  const Node& node = *o.node;
  const auto parameters = parameters_of_layer(o);
  const CustomBackward<T> arguments{node.layer, node.in, node.out, o.x, o.y, o.dy, View<T>{}, parameters, {o.d_parameters.data(), parameters.size()}};
  custom_on_device<T>(node.layer)->backward_parameters(arguments, o.accumulate, o.workspace, detail::stream_of(exec));
}
template <class T>
Index custom_workspace(const Operands<T>& o) {
  const CustomDeviceFunctions<T>* loops = o.op == Op::backward_parameters ? custom_on_device<T>(o.node->layer) : nullptr;
  return loops && loops->workspace_bytes ? loops->workspace_bytes(o.dy) : 0;
}
template <class T>
inline constexpr auto layer_workspace<Kind::custom, T> = custom_workspace<T>;
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::custom, Exec, T>{custom_forward<Exec, T>, custom_backward_data<Exec, T>,
                                                                        custom_backward_parameters<Exec, T>};
}   // namespace lrcnn::loops
