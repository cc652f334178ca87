#pragma once
// Every step of a plan but convolutions, transposed too, fully connected layers and custom layers, as loops for a device.
//
// They are written once, for whatever runs Thrust's loops: a CUDA stream, or the host, where the tests hold them to
// backend/host. Maps have their channels last (Target::all_channels). Arithmetic is that of master_t<T>, and a value is
// rounded when it is written. Nothing allocates, nothing waits, and every result has the same bits in every run.
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/adaptive_pool.hpp>
#include <lrcnn/backend/cudnn/loops/avg_pool.hpp>
#include <lrcnn/backend/cudnn/loops/bias.hpp>
#include <lrcnn/backend/cudnn/loops/channels.hpp>
#include <lrcnn/backend/cudnn/loops/dropout.hpp>
#include <lrcnn/backend/cudnn/loops/filter.hpp>
#include <lrcnn/backend/cudnn/loops/flatten.hpp>
#include <lrcnn/backend/cudnn/loops/global_pool.hpp>
#include <lrcnn/backend/cudnn/loops/join.hpp>
#include <lrcnn/backend/cudnn/loops/loss.hpp>
#include <lrcnn/backend/cudnn/loops/max_pool.hpp>
#include <lrcnn/backend/cudnn/loops/pad.hpp>
#include <lrcnn/backend/cudnn/loops/pixel_loss.hpp>
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/backend/cudnn/loops/slab_norm.hpp>
#include <lrcnn/backend/cudnn/loops/update.hpp>
#include <lrcnn/backend/cudnn/loops/upsample.hpp>
namespace lrcnn::loops {
constexpr bool is_layer_op(Op op) { return op == Op::forward || op == Op::backward_data || op == Op::backward_parameters; }
/// Whether run() carries out a step.
template <class T>
constexpr bool covers(const Operands<T>& o) {
  if (o.op == Op::copy || o.op == Op::add || o.op == Op::zero) return true;
  if (o.node == nullptr) return false;
  const Layer& layer = o.node->layer;
  switch (layer.kind) {
    case Kind::conv:
    case Kind::conv_transpose:
    case Kind::linear:
    case Kind::custom: return false;
    case Kind::norm: return o.op == Op::statistics || o.op == Op::backward_sums || is_layer_op(o.op);
    case Kind::layer_scale: return is_layer_op(o.op);
    default: return o.op == Op::forward || o.op == Op::backward_data;
  }
}
/// Bytes of workspace that a step needs.
template <class T>
constexpr Index workspace_bytes(const Operands<T>& o) {
  if (o.node == nullptr) return 0;
  switch (o.node->layer.kind) {
    case Kind::norm: return o.node->layer.norm.over == Norm::Over::slab ? detail::SlabNormWorkspace<T>(o).bytes() : norm_workspace_bytes(o);
    case Kind::layer_scale:
    case Kind::scale: return products_workspace_bytes(o);
    default: return 0;
  }
}
namespace detail {
template <class T>
constexpr bool is_slab_norm(const Operands<T>& o) { return o.node->layer.norm.over == Norm::Over::slab; }
template <class Exec, class T>
void run_forward(const Exec& exec, const Operands<T>& o) {
  switch (o.node->layer.kind) {
    case Kind::activation: return activation_forward(exec, o);
    case Kind::max_pool: return max_pool_forward(exec, o);
    case Kind::avg_pool: return avg_pool_forward(exec, o);
    case Kind::global_avg_pool: return global_pool_forward(exec, o);
    case Kind::flatten: return flatten_forward(exec, o);
    case Kind::norm: return is_slab_norm(o) ? slab_norm_forward(exec, o) : norm_forward(exec, o);
    case Kind::sum: return sum_forward(exec, o);
    case Kind::concat: return concat_forward(exec, o);
    case Kind::upsample: return upsample_forward(exec, o);
    case Kind::pad: return pad_forward(exec, o);
    case Kind::layer_scale: return layer_scale_forward(exec, o);
    case Kind::scale: return scale_forward(exec, o);
    case Kind::channel_shuffle: return channel_shuffle_forward(exec, o);
    case Kind::adaptive_avg_pool: return adaptive_pool_forward(exec, o);
    case Kind::dropout: return dropout_forward(exec, o);
    case Kind::conv:
    case Kind::conv_transpose:
    case Kind::linear:
    case Kind::custom: return;
  }
}
template <class Exec, class T>
void run_backward_data(const Exec& exec, const Operands<T>& o) {
  switch (o.node->layer.kind) {
    case Kind::activation: return activation_backward(exec, o);
    case Kind::max_pool: return max_pool_backward(exec, o);
    case Kind::avg_pool: return avg_pool_backward(exec, o);
    case Kind::global_avg_pool: return global_pool_backward(exec, o);
    case Kind::flatten: return flatten_backward(exec, o);
    case Kind::norm: return is_slab_norm(o) ? slab_norm_backward_data(exec, o) : norm_backward_data(exec, o);
    case Kind::sum: return sum_backward(exec, o);
    case Kind::concat: return concat_backward(exec, o);
    case Kind::upsample: return upsample_backward(exec, o);
    case Kind::pad: return pad_backward(exec, o);
    case Kind::layer_scale: return layer_scale_backward_data(exec, o);
    case Kind::scale: return scale_backward(exec, o);
    case Kind::channel_shuffle: return channel_shuffle_backward(exec, o);
    case Kind::adaptive_avg_pool: return adaptive_pool_backward(exec, o);
    case Kind::dropout: return dropout_backward(exec, o);
    case Kind::conv:
    case Kind::conv_transpose:
    case Kind::linear:
    case Kind::custom: return;
  }
}
template <class Exec, class T>
void run_backward_parameters(const Exec& exec, const Operands<T>& o) {
  if (o.node->layer.kind == Kind::layer_scale) return layer_scale_backward_parameters(exec, o);
  if (is_slab_norm(o)) return slab_norm_backward_parameters(exec, o);
  norm_backward_parameters(exec, o);
}
}  // namespace detail
/// Carries out a step, as host::run does, where a Thrust execution policy says; does not wait for it.
/// Pre:     covers(o); operands lie in memory that `exec` reaches, channels last; a workspace of workspace_bytes()
/// Post:    as the functions called say; nothing is allocated
template <class Exec, class T>
void run(const Exec& exec, const Operands<T>& o) {
  assert(covers(o));
  switch (o.op) {
    case Op::copy: return copy_rows(exec, o.x, o.y);
    case Op::add: return add_rows(exec, o.x, o.y);
    case Op::zero: return zero_rows(exec, o.y);
    case Op::forward: return detail::run_forward(exec, o);
    case Op::backward_data: return detail::run_backward_data(exec, o);
    case Op::statistics: return norm_statistics(exec, o);
    case Op::backward_sums: return norm_backward_sums(exec, o);
    case Op::backward_parameters: return detail::run_backward_parameters(exec, o);
    case Op::load:
    case Op::store:
    case Op::pack_forward:
    case Op::pack_backward:
    case Op::loss: return;
  }
}
}  // namespace lrcnn::loops
