#pragma once
// Every step of a plan but convolutions, fully connected layers and custom layers, as loops for a device.
//
// They are written once, for whatever runs Thrust's loops: a CUDA stream, or the host, where the tests hold them to
// backend/host. Maps have their channels last (Target::all_channels). Arithmetic is that of master_t<T>, and a value is
// rounded when it is written. Nothing allocates, nothing waits, and every result has the same bits in every run.
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/avg_pool.hpp>
#include <lrcnn/backend/cudnn/loops/bias.hpp>
#include <lrcnn/backend/cudnn/loops/filter.hpp>
#include <lrcnn/backend/cudnn/loops/flatten.hpp>
#include <lrcnn/backend/cudnn/loops/global_pool.hpp>
#include <lrcnn/backend/cudnn/loops/join.hpp>
#include <lrcnn/backend/cudnn/loops/loss.hpp>
#include <lrcnn/backend/cudnn/loops/max_pool.hpp>
#include <lrcnn/backend/cudnn/loops/norm.hpp>
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/backend/cudnn/loops/update.hpp>
#include <lrcnn/backend/cudnn/loops/upsample.hpp>
namespace lrcnn::loops {
constexpr bool is_norm_op(Op op) {
  return op == Op::statistics || op == Op::forward || op == Op::backward_sums || op == Op::backward_data || op == Op::backward_parameters;
}
/// Whether run() carries out a step.
template <class T>
constexpr bool covers(const Operands<T>& o) {
  if (o.op == Op::copy || o.op == Op::add || o.op == Op::zero) return true;
  if (o.node == nullptr) return false;
  const Kind kind = o.node->layer.kind;
  if (kind == Kind::norm) return is_norm_op(o.op);
  return (o.op == Op::forward || o.op == Op::backward_data) && kind != Kind::conv && kind != Kind::linear && kind != Kind::custom;
}
namespace detail {
template <class Exec, class T>
void run_forward(const Exec& exec, const Operands<T>& o) {
  switch (o.node->layer.kind) {
    case Kind::activation: return activation_forward(exec, o);
    case Kind::max_pool: return max_pool_forward(exec, o);
    case Kind::avg_pool: return avg_pool_forward(exec, o);
    case Kind::global_avg_pool: return global_pool_forward(exec, o);
    case Kind::flatten: return flatten_forward(exec, o);
    case Kind::norm: return norm_forward(exec, o);
    case Kind::sum: return sum_forward(exec, o);
    case Kind::concat: return concat_forward(exec, o);
    case Kind::upsample: return upsample_forward(exec, o);
    case Kind::conv:
    case Kind::conv_transpose:   // these are refused (served.hpp)
    case Kind::pad:
    case Kind::layer_scale:
    case Kind::scale:
    case Kind::channel_shuffle:
    case Kind::adaptive_avg_pool:
    case Kind::dropout:
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
    case Kind::norm: return norm_backward_data(exec, o);
    case Kind::sum: return sum_backward(exec, o);
    case Kind::concat: return concat_backward(exec, o);
    case Kind::upsample: return upsample_backward(exec, o);
    case Kind::conv:
    case Kind::conv_transpose:   // these are refused (served.hpp)
    case Kind::pad:
    case Kind::layer_scale:
    case Kind::scale:
    case Kind::channel_shuffle:
    case Kind::adaptive_avg_pool:
    case Kind::dropout:
    case Kind::linear:
    case Kind::custom: return;
  }
}
}  // namespace detail
/// Carries out a step, as host::run does, where a Thrust execution policy says; does not wait for it.
/// Pre:     covers(o); operands lie in memory that `exec` reaches, channels last
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
    case Op::backward_parameters: return norm_backward_parameters(exec, o);
    case Op::load:
    case Op::store:
    case Op::pack_forward:
    case Op::pack_backward:
    case Op::loss: return;
  }
}
}  // namespace lrcnn::loops
