#pragma once
// Every step of a plan but convolutions, transposed too, and fully connected layers, as loops for a device. Custom layers bring theirs.
//
// They are written once, for whatever runs Thrust's loops: a CUDA stream, or the host, where the tests hold them to
// backend/host. Maps have their channels last (Target::all_channels). Arithmetic is that of master_t<T>, and a value is
// rounded when it is written. Nothing allocates, nothing waits, and every result has the same bits in every run.
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/adaptive_pool.hpp>
#include <lrcnn/backend/cudnn/loops/avg_pool.hpp>
#include <lrcnn/backend/cudnn/loops/bias.hpp>
#include <lrcnn/backend/cudnn/loops/channels.hpp>
#include <lrcnn/backend/cudnn/loops/custom.hpp>
#include <lrcnn/backend/cudnn/loops/dropout.hpp>
#include <lrcnn/backend/cudnn/loops/filter.hpp>
#include <lrcnn/backend/cudnn/loops/flatten.hpp>
#include <lrcnn/backend/cudnn/loops/gather.hpp>
#include <lrcnn/backend/cudnn/loops/gather_traffic.hpp>
#include <lrcnn/backend/cudnn/loops/global_pool.hpp>
#include <lrcnn/backend/cudnn/loops/join.hpp>
#include <lrcnn/backend/cudnn/loops/loss.hpp>
#include <lrcnn/backend/cudnn/loops/max_pool.hpp>
#include <lrcnn/backend/cudnn/loops/pad.hpp>
#include <lrcnn/backend/cudnn/loops/pixel_loss.hpp>
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/backend/cudnn/loops/slab_norm.hpp>
#include <lrcnn/backend/cudnn/loops/together.hpp>
#include <lrcnn/backend/cudnn/loops/trial.hpp>
#include <lrcnn/backend/cudnn/loops/update.hpp>
#include <lrcnn/backend/cudnn/loops/upsample.hpp>
namespace lrcnn::loops {
constexpr bool is_layer_op(Op op) { return op == Op::forward || op == Op::backward_data || op == Op::backward_parameters; }
/// Whether layers of a kind have no loops here: the library for convolutions carries them out, or nobody does.
constexpr bool is_left_out(Kind kind) { return kind == Kind::conv || kind == Kind::conv_transpose || kind == Kind::linear; }
/// Whether run() carries out a step.
template <class T>
constexpr bool covers(const Operands<T>& o) {
  if (is_move(o.op) || o.op == Op::add || o.op == Op::zero) return true;
  if (o.node == nullptr) return false;
  const Layer& layer = o.node->layer;
  if (is_left_out(layer.kind) || (layer.kind == Kind::custom && (!layer.custom || !custom_on_device<T>(layer)))) return false;
  switch (layer.kind) {
    case Kind::norm: return o.op == Op::statistics || o.op == Op::backward_sums || is_layer_op(o.op);
    default: return o.op == Op::backward_parameters ? trains(layer, o.node->in) : is_layer_op(o.op);
  }
}
namespace detail {
template <class Exec, class T, class Kinds>
struct LoopTable;
template <class Exec, class T, std::size_t... kinds>
struct LoopTable<Exec, T, std::index_sequence<kinds...>> {
  static_assert(((has_loops<static_cast<Kind>(kinds), Exec, T> != is_left_out(static_cast<Kind>(kinds))) && ...),
                "lrcnn: a kind of layer has no loops for a device; backend/cudnn/loops.hpp includes a header that says for each kind which they "
                "are; specialise layer_loops<kind, Exec, T> beside them");
  static constexpr LayerLoops<Exec, T> row[sizeof...(kinds)]{layer_loops<static_cast<Kind>(kinds), Exec, T>...};
};
template <class T, class Kinds>
struct WorkspaceTable;
template <class T, std::size_t... kinds>
struct WorkspaceTable<T, std::index_sequence<kinds...>> {
  static constexpr Index (*row[sizeof...(kinds)])(const Operands<T>&){layer_workspace<static_cast<Kind>(kinds), T>...};
};
using AllKinds = std::make_index_sequence<kind_count>;
template <class T>
constexpr std::size_t kind_of(const Operands<T>& o) {
  return static_cast<std::size_t>(o.node->layer.kind);
}
}   // namespace detail
/// Bytes of workspace that a step needs.
template <class T>
constexpr Index workspace_bytes(const Operands<T>& o) {
  return o.node == nullptr ? 0 : detail::WorkspaceTable<T, detail::AllKinds>::row[detail::kind_of(o)](o);
}
/// Carries out a step, as host::run does, where a Thrust execution policy says; does not wait for it.
/// Pre:     covers(o); operands lie in memory that `exec` reaches, channels last; a workspace of workspace_bytes()
/// Post:    as the functions called say; nothing is allocated
template <class Exec, class T>
void run(const Exec& exec, const Operands<T>& o) {
  assert(covers(o));
  switch (o.op) {
    case Op::copy:
    case Op::offload:
    case Op::fetch: return copy_rows(exec, o.x, o.y);
    case Op::add: return add_rows(exec, o.x, o.y);
    case Op::zero: return zero_rows(exec, o.y);
    case Op::forward: return detail::LoopTable<Exec, T, detail::AllKinds>::row[detail::kind_of(o)].forward(exec, o);
    case Op::backward_data: return detail::LoopTable<Exec, T, detail::AllKinds>::row[detail::kind_of(o)].backward_data(exec, o);
    case Op::statistics: return norm_statistics(exec, o);
    case Op::backward_sums: return norm_backward_sums(exec, o);
    case Op::backward_parameters: return detail::LoopTable<Exec, T, detail::AllKinds>::row[detail::kind_of(o)].backward_parameters(exec, o);
    case Op::load:
    case Op::store:
    case Op::pack_forward:
    case Op::pack_backward:
    case Op::loss: return;
  }
}
}   // namespace lrcnn::loops
