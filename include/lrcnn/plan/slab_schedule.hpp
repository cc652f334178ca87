#pragma once
// Which rows of every tensor each slab of a stage computes and holds.
//
// A stage is a graph of row-local layers. Tensors 0 .. I-1 are there in full height, layer l writes tensor I + l; for a chain I is 1 and
// each layer reads the tensor before. Both ways of cutting start from cuts 0 = e_0 < e_1 < ... < e_N = H of the last tensor, the
// stage's *output*, and walk down. With r over the layers that read tensor t, and o(r) the tensor that r writes,
//   c_t(n)    = max over r of known_for_r(c_o(r)(n)),  c_t(N) = H_t         how far tensor t must be known for the first n slabs
//   overlap   own_t(n)  = hull over r of in_rows_r(own_o(r)(n)); of a tensor that leaves the stage also its part
//   share     own_t(n)  = [c_t(n-1), c_t(n))                                every row computed exactly once
//             hold_t(n) = [min over r of first_needed_r(c_o(r)(n-1)), c_t(n-1)), c_t(n))     own rows and those handed on
//   part_t(n) = [c_t(n-1), c_t(n))   rows of a tensor that leaves the stage which this slab answers for: parts tile it
// A tensor that nobody in the stage reads, other than the last, is cut in proportion to the output.
// Cutting at the output loses nothing: a cut of tensor t that lies above c_t only makes slabs taller.
// A cut may be moved up to a grid (Winograd tiles); sharing then carries a few rows more, overlap computes them.
// tests/plan/slab_schedule.cpp asserts: own rows tile every tensor (share), hold(n) = own(n) + rows of hold(n-1),
// need lies in hold, every slab owns a row of every tensor above the first, and the golden values of algorithms.md.
#include <lrcnn/plan/row_graph.hpp>
#include <lrcnn/policy/spec.hpp>
#include <algorithm>
#include <utility>
#include <vector>
namespace lrcnn {
/// Rows of one tensor in one slab. need: what the layers above read; own: computed here; hold: own and carried; part: of its own, those
/// that it answers for outside the stage.
struct SlabRows {
  Range own{};
  Range hold{};
  Range need{};
  Range part{};
  friend constexpr bool operator==(const SlabRows&, const SlabRows&) = default;
};
/// All slabs of one pass of one stage.
struct Schedule {
  Index tensors = 1;
  std::vector<Index> cuts;      ///< e_1 .. e_N, rows of the output
  std::vector<SlabRows> rows;   ///< [slab][tensor]
  constexpr Index slabs() const { return static_cast<Index>(cuts.size()); }
  constexpr const SlabRows& at(Index slab, Index tensor) const { return rows[static_cast<std::size_t>(slab * tensors + tensor)]; }
  /// Rows of a tensor that come into a slab from the one before. Empty for the first slab, and for slab slabs().
  constexpr Range carried(Index slab, Index tensor) const {
    if (slab <= 0 || slab >= slabs()) return {};
    const SlabRows& r = at(slab, tensor);
    return {r.hold.begin, std::max(r.hold.begin, r.own.begin)};
  }
  /// Most rows of a tensor that any slab carries in.
  constexpr Index most_carried(Index tensor) const {
    Index count = 0;
    for (Index n = 1; n < slabs(); ++n)
      if (const Index size = carried(n, tensor).size(); size > count) count = size;
    return count;
  }
  /// Most rows of a tensor that any slab needs, owns or holds.
  constexpr Index most(Index tensor, Range SlabRows::*which) const {
    Index count = 0;
    for (Index n = 0; n < slabs(); ++n)
      if (const Index size = (at(n, tensor).*which).size(); size > count) count = size;
    return count;
  }
  friend constexpr bool operator==(const Schedule&, const Schedule&) = default;
};
/// Bytes that a slab holds, and whether it is one: it owns a row of every tensor above the inputs, and so will the next.
struct SlabCost {
  Index bytes = 0;
  bool valid = true;
};
namespace detail {
constexpr Index snap_up(Index row, Index grid, Index height) { return row >= height ? height : std::min(round_up(row, grid), height); }
/// What layer `rule` wants of its input for what is wanted of its output: known_for() of both cuts and first_needed().
constexpr TensorCut wanted_by(const RowRule& rule, Index before, Index after, Index first) {
  const Axis& axis = rule.axis;
  const Index h = rule.in_height;
  if (axis.up != 1) return {known_for(axis, before, h), known_for(axis, after, h), first_needed(axis, first)};
  const Index s = axis.stride, p = axis.pad_begin, more = (axis.kernel - 1) * axis.dilation + 1 - s - p;   // the same in fewer statements
  const Index b = before <= 0 ? 0 : before * s + more, a = after <= 0 ? 0 : after * s + more, f = first * s - p;
  return {b < 0 ? 0 : b > h ? h : b, a < 0 ? 0 : a > h ? h : a, f < 0 ? 0 : f};
}
constexpr void merge(TensorCut& into, const TensorCut& c) {
  into = {std::max(into.before, c.before), std::max(into.after, c.after), std::min(into.first, c.first)};
}
/// Cuts of every tensor for the slab between output cuts e0 and e1. Compilers count every statement of a constant expression, and
/// this is evaluated thousands of times.
constexpr SlabCost cut_tensors(const RowGraph& graph, Cut cut, Index e0, Index e1, TensorCut* cuts) {
  const bool share = cut == Cut::share, last = e1 == graph.height, chain = graph.chain();
  const RowRule* rule = graph.rules.data() + graph.rules.size();
  const Index inputs = graph.inputs, top = graph.tensors() - 1;
  TensorCut* out = cuts + top;
  for (TensorCut* c = cuts; !chain && c != out; ++c) *c = {};
  *out = {e0, e1, e0};
  SlabCost cost{0, e1 > e0};
  for (Index t = top; t >= inputs; --t, --out) {
    --rule;
    const bool leaves = !chain && graph.of(t).leaves;
    const bool unread = !chain && t < top && !graph.of(t).read;
    if (unread) *out = {e0 * rule->out_height / graph.height, e1 * rule->out_height / graph.height, 0};
    const Index grid = rule->grid, h = rule->out_height;
    if (grid > 1 && t < top) {
      if (!share && out->first < out->after) out->first = out->first / grid * grid;
      out->before = snap_up(out->before, grid, h), out->after = snap_up(out->after, grid, h);
    }
    if (unread) out->first = out->before;   // slabs hold what they answer for, each row once
    if (last && (share || leaves)) out->after = h;
    if ((share || leaves) && out->before < out->first) out->first = out->before;
    const Index size = out->after - out->first, bytes = t == top ? graph.last_row_bytes : chain ? rule[1].in_row_bytes : graph.of(t).row_bytes;
    if (size > 0) cost.bytes += size * bytes;
    if (out->after <= (share ? out->before : out->first) || (share && !last && t < top && out->after >= h)) cost.valid = false;
    const TensorCut in = share || size > 0 ? wanted_by(*rule, out->before, out->after, share ? out->before : out->first) : TensorCut{0, 0, 0};
    if (chain) {
      out[-1] = in;
    } else if (share || size > 0) {
      merge(cuts[rule->in], in);
      if (rule->other >= 0)
        merge(cuts[rule->other], rule->other_whole ? TensorCut{0, 1, 0} : TensorCut{out->before, out->after, share ? out->before : out->first});
    }
  }
  for (Index t = 0; t < inputs; ++t) {
    TensorCut& in = cuts[t];
    if (share && last) in.after = graph.tensor_height(t);
    if (share && in.before < in.first) in.first = in.before;
    if (in.after > in.first) cost.bytes += (in.after - in.first) * graph.row_bytes(t);
  }
  return cost;
}
/// Rows of every tensor for that slab.
constexpr void slab_rows(const RowGraph& graph, Cut cut, Index e0, Index e1, TensorCut* cuts, SlabRows* rows) {
  cut_tensors(graph, cut, e0, e1, cuts);
  const bool share = cut == Cut::share;
  const Index top = graph.tensors() - 1;
  for (Index t = top; t >= 0; --t) {
    const TensorCut& c = cuts[t];
    const Range hold{c.first, c.after < c.first ? c.first : c.after}, part{c.before, c.after};
    rows[t] = {share ? part : hold, hold, hold, part};
  }
  if (!graph.chain())
    for (Index t = 0; t < top; ++t) rows[t].need = {0, 0};
  for (Index l = graph.layers() - 1; l >= 0; --l) {
    const RowRule& rule = graph.rule(l);
    const Range out = rows[graph.inputs + l].own, in = in_rows(rule.axis, out, rule.in_height);
    SlabRows& r = rows[graph.chain() ? l : rule.in];
    r.need = graph.chain() ? in : hull(r.need, in);
    if (rule.other >= 0) rows[rule.other].need = hull(rows[rule.other].need, rule.other_whole ? Range{0, 1} : out);
  }
  for (Index t = 0; t < graph.inputs; ++t) {   // these are at hand in full height: read what is needed, no more
    rows[t].hold = rows[t].need;
    if (!share) rows[t].own = rows[t].need;
  }
}
}   // namespace detail
/// What the slab between output cuts e0 and e1 costs. Pre: 0 <= e0 <= e1 <= graph.height, and cut is not Cut::column.
constexpr SlabCost slab_cost(const RowGraph& graph, Cut cut, Index e0, Index e1) {
  if (graph.scratch != nullptr) return detail::cut_tensors(graph, cut, e0, e1, graph.scratch);
  std::vector<detail::TensorCut> cuts(static_cast<std::size_t>(graph.tensors()));
  return detail::cut_tensors(graph, cut, e0, e1, cuts.data());
}
/// Rows of all slabs between the given cuts. A single slab computes whole maps, unread rows included.
constexpr Schedule make_schedule(const RowGraph& graph, Cut cut, std::vector<Index> cuts) {
  Schedule s;
  s.tensors = graph.tensors();
  s.cuts = std::move(cuts);
  s.rows.assign(static_cast<std::size_t>(s.slabs() * s.tensors), SlabRows{});
  if (s.slabs() == 1) {
    for (Index t = 0; t < s.tensors; ++t) {
      const Range all{0, graph.tensor_height(t)};
      s.rows[static_cast<std::size_t>(t)] = {all, all, all, all};
    }
    return s;
  }
  std::vector<detail::TensorCut> scratch(static_cast<std::size_t>(s.tensors));
  for (Index n = 0; n < s.slabs(); ++n)
    detail::slab_rows(graph, cut, n == 0 ? 0 : s.cuts[static_cast<std::size_t>(n - 1)], s.cuts[static_cast<std::size_t>(n)], scratch.data(),
                      s.rows.data() + n * s.tensors);
  return s;
}
}   // namespace lrcnn
