#pragma once
// SlabBatchNorm: statistics, and sums, of the rows that a step is given, by the loops of norms; both lie in the step's workspace.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/norm.hpp>
namespace lrcnn::loops {
namespace detail {
/// The pieces of a step's workspace.
template <class T>
struct SlabNormWorkspace {
  Index statistics, sums, rest;   ///< bytes; rest: of the loops' own
  explicit constexpr SlabNormWorkspace(const Operands<T>& o)
      : statistics(set_bytes(o.node->in.c)), sums(o.op == Op::backward_data ? set_bytes(o.node->in.c) : 0), rest(0) {
    const Index channels = o.node->in.c, positions = set_positions(rows_of(o), true);
    rest = std::max(part_bytes<T>(1, positions, channels), 3 * channels * static_cast<Index>(sizeof(master_t<T>)));
  }
  constexpr Index bytes() const { return statistics + sums + rest; }
  /// The rows of x that statistics are of.
  static View<const T> rows_of(const Operands<T>& o) {
    const Range rows = o.op == Op::forward ? made_rows(o) : o.dy.range();
    return rows.empty() ? o.x.slice({o.x.row0, o.x.row0}) : o.x.slice(rows);
  }

 private:
  static constexpr Index set_bytes(Index channels) { return round_up(Statistics::doubles(channels) * Index{sizeof(double)}, 16); }
};
/// A step of a norm over a batch that has seen the rows of this one alone.
template <class Exec, class T>
Operands<T> with_slab_statistics(const Exec& exec, const Operands<T>& o) {
  const SlabNormWorkspace<T> pieces(o);
  assert(o.workspace_bytes >= pieces.bytes());
  Operands<T> step = o;
  step.statistics = reinterpret_cast<double*>(o.workspace);
  step.sums = nullptr;
  step.part = everywhere;
  step.workspace += pieces.statistics + pieces.sums, step.workspace_bytes -= pieces.statistics + pieces.sums;
  Operands<T> sums = step;
  sums.op = Op::statistics;
  sums.x = pieces.rows_of(o);
  sums.accumulate = false;
  sums.d_parameters = {};
  norm_statistics(exec, sums);
  if (o.op != Op::backward_data) return step;
  sums.op = Op::backward_sums;
  sums.x = o.x;
  step.sums = sums.sums = reinterpret_cast<double*>(o.workspace + pieces.statistics);
  add_sums(exec, sums, false);
  return step;
}
}   // namespace detail
/// As host::slab_norm_forward. Pre: a workspace of norm_workspace_bytes()
template <class Exec, class T>
void slab_norm_forward(const Exec& exec, const Operands<T>& o) {
  if (!detail::made_rows(o).empty()) norm_forward(exec, detail::with_slab_statistics(exec, o));
}
/// As host::slab_norm_backward_data. Pre: likewise
template <class Exec, class T>
void slab_norm_backward_data(const Exec& exec, const Operands<T>& o) {
  if (o.dy.rows == 0) return zero_rows(exec, o.dx);
  norm_backward_data(exec, detail::with_slab_statistics(exec, o));
}
/// As host::slab_norm_backward_parameters. Pre: likewise
template <class Exec, class T>
void slab_norm_backward_parameters(const Exec& exec, const Operands<T>& o) {
  if (!o.node->layer.norm.affine) return;
  if (o.dy.rows > 0) return norm_backward_parameters(exec, detail::with_slab_statistics(exec, o));
  for (const std::size_t p : {0, 1})
    if (!o.accumulate) zero_rows(exec, dense_view(o.d_parameters[p], 1, o.node->in.c, {0, 1}, 1, o.node->in.c));
}
namespace detail {
template <class T>
constexpr bool is_slab_norm(const Operands<T>& o) {
  return o.node->layer.norm.over == Norm::Over::slab;
}
template <class Exec, class T>
void any_norm_forward(const Exec& exec, const Operands<T>& o) {
  return is_slab_norm(o) ? slab_norm_forward(exec, o) : norm_forward(exec, o);
}
template <class Exec, class T>
void any_norm_backward_data(const Exec& exec, const Operands<T>& o) {
  return is_slab_norm(o) ? slab_norm_backward_data(exec, o) : norm_backward_data(exec, o);
}
template <class Exec, class T>
void any_norm_backward_parameters(const Exec& exec, const Operands<T>& o) {
  return is_slab_norm(o) ? slab_norm_backward_parameters(exec, o) : norm_backward_parameters(exec, o);
}
template <class T>
constexpr Index any_norm_workspace(const Operands<T>& o) {
  return is_slab_norm(o) ? SlabNormWorkspace<T>(o).bytes() : norm_workspace_bytes(o);
}
}   // namespace detail
template <class T>
inline constexpr auto layer_workspace<Kind::norm, T> = detail::any_norm_workspace<T>;
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::norm, Exec, T>{detail::any_norm_forward<Exec, T>, detail::any_norm_backward_data<Exec, T>,
                                                                      detail::any_norm_backward_parameters<Exec, T>};
}   // namespace lrcnn::loops
