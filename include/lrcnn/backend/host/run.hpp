#pragma once
// One step on the host: from operation and kind of layer (host/loops.hpp) to its loop.
//
// These loops are the whole of the reference backend, and the part of the CPU backend that a vendor's library would
// not do faster. They work on any storage block, write padded channels as zeros, and allocate nothing.
#include <lrcnn/backend/host/activation.hpp>
#include <lrcnn/backend/host/adaptive_pool.hpp>
#include <lrcnn/backend/host/channels.hpp>
#include <lrcnn/backend/host/conv_transpose.hpp>
#include <lrcnn/backend/host/convolution.hpp>
#include <lrcnn/backend/host/custom.hpp>
#include <lrcnn/backend/host/dropout.hpp>
#include <lrcnn/backend/host/flatten.hpp>
#include <lrcnn/backend/host/global_pool.hpp>
#include <lrcnn/backend/host/join.hpp>
#include <lrcnn/backend/host/linear.hpp>
#include <lrcnn/backend/host/norm.hpp>
#include <lrcnn/backend/host/pad.hpp>
#include <lrcnn/backend/host/pool.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/scale.hpp>
#include <lrcnn/backend/host/upsample.hpp>
namespace lrcnn::host {
namespace detail {
template <class T, class Kinds>
struct LoopTable;
template <class T, std::size_t... kinds>
struct LoopTable<T, std::index_sequence<kinds...>> {
  static_assert((has_loops<static_cast<Kind>(kinds), T> && ...),
                "lrcnn: a kind of layer has no loops on the host; backend/host/run.hpp includes a header that says for each kind which they are; "
                "specialise layer_loops<kind, T> beside them");
  static constexpr LayerLoops<T> row[sizeof...(kinds)]{layer_loops<static_cast<Kind>(kinds), T>...};
};
/// The loops of the layer that a step is about.
template <class T>
const LayerLoops<T>& loops_of(const Operands<T>& o) {
  return LoopTable<T, std::make_index_sequence<kind_count>>::row[static_cast<std::size_t>(o.node->layer.kind)];
}
}   // namespace detail
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
    case Op::copy:
    case Op::offload:
    case Op::fetch: return copy_rows(o, threads);
    case Op::add: return add_rows(o, threads);
    case Op::zero: return zero_rows(o.y, threads);
    case Op::forward: return detail::loops_of(o).forward(o, threads);
    case Op::statistics: return norm_statistics(o, threads);
    case Op::backward_sums: return norm_backward_sums(o, threads);
    case Op::backward_data: return detail::loops_of(o).backward_data(o, threads);
    case Op::backward_parameters: return detail::loops_of(o).backward_parameters(o, threads);
    case Op::pack_forward:   // filters are used as they are
    case Op::pack_backward:
    case Op::load:
    case Op::store:
    case Op::loss: return;
  }
}
}   // namespace lrcnn::host
