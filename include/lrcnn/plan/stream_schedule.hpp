#pragma once
// Slabs of a forward pass alone, which hand rows on and need not reach the top of their stage.
//
// For chains of layers. Cuts at a stage's output (slab_schedule.hpp) make the first slab tall: before the first row of the output is done,
// every layer below must be as far ahead as the windows above it look. In a training step each slab goes up to the top and down again, so that is how
// it must be. A forward pass alone may cut where the maps are widest, at the output of the first layer, and let each slab
// climb as far as its rows carry:
//   c_1(n) = cuts, c_1(N) = H_1;   c_{t+1}(n) = frontier(c_t(n)), moved down to the grid of its layer;   c_0(n) = known_for(c_1(n))
//   own_t(n)  = [c_t(n-1), c_t(n))                              every row computed exactly once; none, where a slab ends below t
//   hold_t(n) = [min(first_needed(c_{t+1}(n-1)), c_t(n-1)), c_t(n))
// Where a slab owns no row of a tensor it owns none above it, and what the next slab carries in is what this one would have.
// tests/plan/stream_schedule.cpp asserts: own rows tile every tensor, need lies in hold, hold(n) = own(n) + rows of hold(n-1).
#include <lrcnn/plan/slab_cuts.hpp>
namespace lrcnn {
/// Whether a stage has layers for slabs to climb through. One that only adds rows up, as of a global pooling, has none.
constexpr bool climbs(const RowGraph& graph) { return graph.chain() && graph.layers() > 0; }
/// The largest number of slabs: each owns a row of the first layer's output; of a stage in which none climbs, of every layer's.
constexpr Index max_stream_slabs(const RowGraph& graph) {
  return climbs(graph) ? std::max<Index>(1, graph.tensor_height(1) / graph.grid(1)) : max_slabs(graph, Cut::share);
}
/// Rows of `count` such slabs, as even as their multiples of the strides above allow. Schedule::cuts are the output's, and repeat
/// where a slab does not reach it. Pre: climbs(graph); 1 <= count <= max_stream_slabs(graph).
constexpr Schedule make_stream_schedule(const RowGraph& graph, Index count) {
  const Index top = graph.layers();
  if (count == 1) return make_schedule(graph, Cut::share, {graph.height});
  const Index h = graph.tensor_height(1), each = h / count;
  Index unit = graph.grid(1);   // of cuts: so many rows of the first layer's output make whole rows of those above
  for (Index l = 1; l < top && unit * graph.rule(l).axis.stride <= each / 4; ++l) unit *= graph.rule(l).axis.stride;
  Schedule s;
  s.tensors = top + 1;
  s.rows.assign(static_cast<std::size_t>(count * s.tensors), SlabRows{});
  std::vector<Index> cuts(static_cast<std::size_t>(s.tensors), 0);   // c_t(n - 1)
  SlabRows* rows = s.rows.data();
  for (Index n = 0; n < count; ++n, rows += s.tensors) {
    // c_t(n), c_{t+1}(n - 1) and c_{t+1}(n) in turn; few statements, because compilers count those of a constant expression.
    Index* below = cuts.data();
    Index next = n + 1 == count ? h : floor_div(2 * (n + 1) * h + count * unit, 2 * count * unit) * unit;   // the nearest multiple
    Index cut = next == h ? graph.tensor_height(0) : known_for(graph.rules[0].axis, next, graph.tensor_height(0));
    SlabRows* r = rows;
    const RowRule* rule = graph.rules.data();
    for (Index t = 0; t < top; ++t, ++r, ++rule, ++below) {
      const Index before = *below, above = below[1];
      if (t > 0) next = cut == before ? above : frontier(rule->axis, cut, rule->in_height, rule->out_height);
      if (t > 0 && next < rule->out_height) next = next / rule->grid * rule->grid;
      r->own = {before, cut};
      r->hold = {std::min(first_needed(rule->axis, above), before), cut};
      r->need = next == above ? Range{cut, cut} : in_rows(rule->axis, {above, next}, rule->in_height);
      *below = cut;
      cut = next;
    }
    r->own = r->hold = r->need = r->part = {*below, cut};
    *below = cut;
    rows[0].hold = rows[0].need;   // as in any schedule: the stage's input is at hand in full height
    s.cuts.push_back(cut);
  }
  return s;
}
/// `count` slabs that share rows, for a forward pass alone: these, or those of cuts at the output where the largest is then no larger.
constexpr Schedule best_stream_schedule(const RowGraph& graph, Index count) {
  if (!climbs(graph)) return make_schedule(graph, Cut::share, choose_cuts(graph, Cut::share, count));
  Schedule climbing = make_stream_schedule(graph, count);
  Index most = 0;   // bytes that the largest slab holds
  const SlabRows* rows = climbing.rows.data();
  for (Index n = 0; n < climbing.slabs(); ++n) {
    Index bytes = 0;
    for (Index t = 0; t < climbing.tensors; ++t, ++rows) bytes += rows->hold.size() * graph.row_bytes(t);
    if (bytes > most) most = bytes;
  }
  const auto cost = [&](Index e0, Index e1) { return slab_cost(graph, Cut::share, e0, e1).bytes; };
  if (count == 1 || cost(0, 1) > most) return climbing;
  std::vector<Index> cuts = choose_cuts(graph, Cut::share, count);
  Index e0 = 0;
  for (const Index e1 : cuts) {
    if (cost(e0, e1) > most) return climbing;
    e0 = e1;
  }
  if (cuts.empty()) return climbing;
  return make_schedule(graph, Cut::share, std::move(cuts));
}
}   // namespace lrcnn
