#pragma once
// A convolution on the host, by whichever loops serve: those for 1x1 convolutions to few channels, or those for all.
#include <lrcnn/backend/host/activation.hpp>
#include <lrcnn/backend/host/conv.hpp>
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/pointwise.hpp>
namespace lrcnn::host {
namespace detail {
/// A convolution's steps, by whichever loops serve; the activation that the forward step applies comes behind.
template <class T>
void any_conv_forward(const Operands<T>& o, int threads) {
  if (is_pointwise(o)) pointwise_forward(o, threads);
  else conv_forward(o, threads);
  if (o.activation) activation_forward(activation_of(o), threads);
}
template <class T>
void any_conv_backward_data(const Operands<T>& o, int threads) {
  return is_pointwise(o) ? pointwise_backward_data(o, threads) : conv_backward_data(o, threads);
}
template <class T>
void any_conv_backward_parameters(const Operands<T>& o, int threads) {
  return is_pointwise(o) ? pointwise_backward_parameters(o, threads) : conv_backward_parameters(o, threads);
}
}   // namespace detail
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::conv, T>{detail::any_conv_forward<T>, detail::any_conv_backward_data<T>,
                                                          detail::any_conv_backward_parameters<T>};
}   // namespace lrcnn::host
