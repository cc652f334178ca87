#pragma once
// One step on the host: from operation and kind of layer to its loop.
//
// These loops are the whole of the reference backend, and the part of the CPU backend that a vendor's library would
// not do faster. They work on any storage block, write padded channels as zeros, and allocate nothing.
#include <lrcnn/backend/host/activation.hpp>
#include <lrcnn/backend/host/adaptive_pool.hpp>
#include <lrcnn/backend/host/channels.hpp>
#include <lrcnn/backend/host/conv.hpp>
#include <lrcnn/backend/host/conv_transpose.hpp>
#include <lrcnn/backend/host/custom.hpp>
#include <lrcnn/backend/host/dropout.hpp>
#include <lrcnn/backend/host/flatten.hpp>
#include <lrcnn/backend/host/global_pool.hpp>
#include <lrcnn/backend/host/join.hpp>
#include <lrcnn/backend/host/linear.hpp>
#include <lrcnn/backend/host/norm.hpp>
#include <lrcnn/backend/host/pad.hpp>
#include <lrcnn/backend/host/pointwise.hpp>
#include <lrcnn/backend/host/pool.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/scale.hpp>
#include <lrcnn/backend/host/upsample.hpp>
namespace lrcnn::host {
namespace detail {
template <class T>
void run_forward(const Operands<T>& o, int threads) {
  switch (o.node->layer.kind) {
    case Kind::conv:
      if (is_pointwise(o)) pointwise_forward(o, threads);
      else conv_forward(o, threads);
      if (o.activation) activation_forward(activation_of(o), threads);
      return;
    case Kind::activation: return activation_forward(o, threads);
    case Kind::max_pool: return max_pool_forward(o, threads);
    case Kind::avg_pool: return avg_pool_forward(o, threads);
    case Kind::global_avg_pool: return global_pool_forward(o, threads);
    case Kind::flatten: return flatten_forward(o, threads);
    case Kind::linear: return linear_forward(o, threads);
    case Kind::custom: return custom_forward(o);
    case Kind::norm: return norm_forward(o, threads);   // with the activation that the step applies
    case Kind::sum: return sum_forward(o, threads);     // likewise
    case Kind::concat: return concat_forward(o, threads);
    case Kind::upsample: return upsample_forward(o, threads);
    case Kind::conv_transpose: return conv_transpose_forward(o, threads);
    case Kind::pad: return pad_forward(o, threads);
    case Kind::layer_scale: return layer_scale_forward(o, threads);
    case Kind::channel_shuffle: return channel_shuffle_forward(o, threads);
    case Kind::adaptive_avg_pool: return adaptive_pool_forward(o, threads);
    case Kind::scale: return scale_forward(o, threads);
    case Kind::dropout: return dropout_forward(o, threads);
  }
}
template <class T>
void run_backward_data(const Operands<T>& o, int threads) {
  switch (o.node->layer.kind) {
    case Kind::conv: return is_pointwise(o) ? pointwise_backward_data(o, threads) : conv_backward_data(o, threads);
    case Kind::activation: return activation_backward(o, threads);
    case Kind::max_pool: return max_pool_backward(o, threads);
    case Kind::avg_pool: return avg_pool_backward(o, threads);
    case Kind::global_avg_pool: return global_pool_backward(o, threads);
    case Kind::flatten: return flatten_backward(o, threads);
    case Kind::linear: return linear_backward_data(o, threads);
    case Kind::custom: return custom_backward_data(o);
    case Kind::norm: return norm_backward_data(o, threads);
    case Kind::sum: return sum_backward(o, threads);
    case Kind::concat: return concat_backward(o, threads);
    case Kind::upsample: return upsample_backward(o, threads);
    case Kind::conv_transpose: return conv_transpose_backward_data(o, threads);
    case Kind::pad: return pad_backward(o, threads);
    case Kind::layer_scale: return layer_scale_backward_data(o, threads);
    case Kind::channel_shuffle: return channel_shuffle_backward(o, threads);
    case Kind::adaptive_avg_pool: return adaptive_pool_backward(o, threads);
    case Kind::scale: return scale_backward(o, threads);
    case Kind::dropout: return dropout_backward(o, threads);
  }
}
template <class T>
void run_backward_parameters(const Operands<T>& o, int threads) {
  switch (o.node->layer.kind) {
    case Kind::conv: return is_pointwise(o) ? pointwise_backward_parameters(o, threads) : conv_backward_parameters(o, threads);
    case Kind::conv_transpose: return conv_transpose_backward_parameters(o, threads);
    case Kind::layer_scale: return layer_scale_backward_parameters(o, threads);
    case Kind::linear: return linear_backward_parameters(o, threads);
    case Kind::custom: return custom_backward_parameters(o);
    case Kind::norm: return norm_backward_parameters(o, threads);
    default: return;
  }
}
}  // namespace detail
/// Whether run() can carry out a step.
/// Errors:  BackendError if a custom layer lacks a function for T
template <class T>
void check(const Operands<T>& o) {
  if (o.node == nullptr) return;
  if (o.node->layer.kind == Kind::custom) check_custom(o);
}
/// Carries out a step on up to `threads` threads (without OpenMP: on one).
/// Pre:     check(o) has passed; op is none of load, store, loss
/// Post:    as the functions called say; the result does not depend on threads; nothing is allocated
template <class T>
void run(const Operands<T>& o, int threads = 1) {
  switch (o.op) {
    case Op::copy: return copy_rows(o, threads);
    case Op::add: return add_rows(o, threads);
    case Op::zero: return zero_rows(o.y, threads);
    case Op::forward: return detail::run_forward(o, threads);
    case Op::statistics: return norm_statistics(o, threads);
    case Op::backward_sums: return norm_backward_sums(o, threads);
    case Op::backward_data: return detail::run_backward_data(o, threads);
    case Op::backward_parameters: return detail::run_backward_parameters(o, threads);
    case Op::pack_forward:    // filters are used as they are
    case Op::pack_backward:
    case Op::load:
    case Op::store:
    case Op::loss: return;
  }
}
}  // namespace lrcnn::host
