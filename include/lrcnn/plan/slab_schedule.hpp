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
#include <lrcnn/network/table.hpp>
#include <lrcnn/policy/policy.hpp>
#include <limits>
#include <numeric>
namespace lrcnn {
/// What the row algebra needs to know of one layer.
struct RowRule {
  Axis axis{};
  Index in_height = 1;
  Index out_height = 1;
  Index in_row_bytes = 0;   ///< cost of one row of the layer's input, for choosing cuts
  Index grid = 1;           ///< cuts of the layer's output lie on multiples of this, or at its end
  Index in = -1;            ///< tensor that it reads; -1: the one before
  Index other = -1;         ///< a join's second tensor, of which it reads the rows that it writes; -1: none
  bool other_whole = false; ///< that one is an input of the stage, of one row, which each slab reads: factors of a scale
};
/// What it needs to know of a tensor of a stage that is no chain.
struct TensorRule {
  Index height = 1;
  Index row_bytes = 0;
  bool read = false;     ///< a layer of the stage reads it
  bool leaves = false;   ///< all of its rows are wanted, by somebody
};
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
  std::vector<Index> cuts;        ///< e_1 .. e_N, rows of the output
  std::vector<SlabRows> rows;     ///< [slab][tensor]
  constexpr Index slabs() const { return static_cast<Index>(cuts.size()); }
  constexpr const SlabRows& at(Index slab, Index tensor) const {
    return rows[static_cast<std::size_t>(slab * tensors + tensor)];
  }
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
  constexpr Index most(Index tensor, Range SlabRows::* which) const {
    Index count = 0;
    for (Index n = 0; n < slabs(); ++n)
      if (const Index size = (at(n, tensor).*which).size(); size > count) count = size;
    return count;
  }
  friend constexpr bool operator==(const Schedule&, const Schedule&) = default;
};
namespace detail {
/// Where a slab cuts one tensor: c_t before and behind it, and the first row that it computes (overlap) or holds (share).
struct TensorCut {
  Index before = 0;
  Index after = 0;
  Index first = std::numeric_limits<Index>::max();
};
/// A stage's layers and the height of its output.
struct RowGraph {
  std::span<const RowRule> rules;
  Index height = 1;             ///< of the last tensor
  Index last_row_bytes = 0;     ///< cost of one of its rows
  Index inputs = 1;
  std::span<const TensorRule> rule_of{};   ///< of each tensor; empty for a chain
  TensorCut* scratch = nullptr;            ///< for one of each tensor, so that none is allocated when cuts are tried; or null
  constexpr bool chain() const { return rule_of.empty(); }
  constexpr Index layers() const { return static_cast<Index>(rules.size()); }
  constexpr Index tensors() const { return inputs + layers(); }
  constexpr const RowRule& rule(Index l) const { return rules[static_cast<std::size_t>(l)]; }
  constexpr const TensorRule& of(Index t) const { return rule_of[static_cast<std::size_t>(t)]; }
  constexpr Index tensor_height(Index t) const { return !chain() ? of(t).height : t == layers() ? height : rule(t).in_height; }
  constexpr Index grid(Index t) const { return t < inputs ? 1 : rule(t - inputs).grid; }
  constexpr Index row_bytes(Index t) const { return !chain() ? of(t).row_bytes : t == layers() ? last_row_bytes : rule(t).in_row_bytes; }
};
constexpr Index snap_up(Index row, Index grid, Index height) {
  return row >= height ? height : std::min(round_up(row, grid), height);
}
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
/// Bytes that a slab holds, and whether it is one: it owns a row of every tensor above the inputs, and so will the next.
struct SlabCost {
  Index bytes = 0;
  bool valid = true;
};
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
        merge(cuts[rule->other], rule->other_whole ? TensorCut{0, 1, 0}
                                                   : TensorCut{out->before, out->after, share ? out->before : out->first});
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
constexpr SlabCost slab_cost(const RowGraph& graph, Cut cut, Index e0, Index e1) {
  if (graph.scratch != nullptr) return cut_tensors(graph, cut, e0, e1, graph.scratch);
  std::vector<TensorCut> cuts(static_cast<std::size_t>(graph.tensors()));
  return cut_tensors(graph, cut, e0, e1, cuts.data());
}
constexpr bool all_valid(const RowGraph& graph, Cut cut, const std::vector<Index>& cuts) {
  Index e0 = 0;
  for (const Index e1 : cuts) {
    if (!slab_cost(graph, cut, e0, e1).valid) return false;
    e0 = e1;
  }
  return e0 == graph.height;
}
constexpr Index nearest_valid_cut(const RowGraph& graph, Cut cut, Index e0) {
  for (Index e = e0 + 1; e <= graph.height; ++e)
    if (slab_cost(graph, cut, e0, e).valid) return e;
  return -1;
}
/// Output rows between two cuts for which the cuts of every tensor below lie on their grids without being moved; 1 where the
/// stage is no chain.
constexpr Index cut_unit(const RowGraph& graph) {
  if (!graph.chain()) return 1;
  Index unit = 1, rows = 1;   // rows of tensor t for each output row
  for (Index t = graph.layers(); t > 0; --t) {
    unit = std::lcm(unit, graph.grid(t) / std::gcd(graph.grid(t), rows));
    rows *= graph.rule(t - 1).axis.stride;
  }
  return unit;
}
/// Away from the borders a slab of d units of output rows costs A*d + B, with one B for the first slab, one for those
/// within and one for the last. The least M that all slabs fit into is then found among the values A*d + B themselves.
constexpr std::vector<Index> affine_cuts(const RowGraph& graph, Cut cut, Index count) {
  const Index unit = cut_unit(graph), h = ceil_div(graph.height, unit), middle = h / 2;
  const auto cost = [&](Index a, Index b) { return slab_cost(graph, cut, a * unit, std::min(b * unit, graph.height)).bytes; };
  if (middle < 1 || h < count) return {};
  const Index one = cost(middle - 1, middle), slope = cost(middle - 1, middle + 1) - one;
  if (slope <= 0) return {};
  const std::array<Index, 3> base{cost(0, middle) - slope * middle, one - slope, cost(middle, h) - slope * (h - middle)};
  const Index least = floor_div(slope * h + base[0] + (count - 2) * base[1] + base[2], count);
  Index limit = -1;
  std::array<Index, 3> rows{};   // of the first slab, those within, the last
  for (const Index b : base)
    for (Index d = std::max<Index>(1, floor_div(least - b, slope)); d <= h; ++d) {
      const Index m = slope * d + b;
      if (limit >= 0 && m >= limit) break;
      const Index first = floor_div(m - base[0], slope), within = floor_div(m - base[1], slope);
      const Index last = floor_div(m - base[2], slope);
      if (first < 1 || within < 1 || last < 1 || first + (count - 2) * within + last < h) continue;
      limit = m;
      rows = {first, within, last};
      break;
    }
  if (limit < 0) return {};
  std::vector<Index> cuts;
  Index spare = rows[0] + (count - 2) * rows[1] + rows[2] - h;   // rows that need not be: taken off slab by slab
  Index e = 0;
  for (Index n = 0; n < count; ++n) {
    const Index full = n == 0 ? rows[0] : n + 1 == count ? rows[2] : rows[1];
    const Index off = std::min(full - 1, ceil_div(spare, count - n));
    spare -= off;
    e += full - off;
    cuts.push_back(n + 1 == count ? graph.height : e * unit);
  }
  return cuts;
}
/// The same exactly, for the few rows of deep maps, where border slabs meet: least[n][e] = the least possible largest
/// slab when the first n slabs end at row e.
constexpr std::vector<Index> exact_cuts(const RowGraph& graph, Cut cut, Index count) {
  const Index h = graph.height, never = std::numeric_limits<Index>::max();
  const auto at = [h](Index n, Index e) { return static_cast<std::size_t>(n * (h + 1) + e); };
  std::vector<Index> cost(at(h, h) + 1, never), least(at(count, h) + 1, never), from(at(count, h) + 1, 0);
  for (Index e0 = 0; e0 < h; ++e0)
    for (Index e1 = e0 + 1; e1 <= h; ++e1)
      if (const SlabCost c = slab_cost(graph, cut, e0, e1); c.valid) cost[at(e0, e1)] = c.bytes;
  least[at(0, 0)] = 0;
  for (Index n = 1; n <= count; ++n)
    for (Index e1 = n; e1 <= h; ++e1)
      for (Index e0 = n - 1; e0 < e1; ++e0) {
        const Index c = std::max(least[at(n - 1, e0)], cost[at(e0, e1)]);
        if (c < least[at(n, e1)]) least[at(n, e1)] = c, from[at(n, e1)] = e0;
      }
  if (least[at(count, h)] == never) return {};
  std::vector<Index> cuts(static_cast<std::size_t>(count), h);
  for (Index n = count, e = h; n > 1; --n) cuts[static_cast<std::size_t>(n - 2)] = e = from[at(n, e)];
  return cuts;
}
/// Moves cuts down where the slab before is too thin, then up where the slab behind is; false if that does not help.
constexpr bool mend(const RowGraph& graph, Cut cut, std::vector<Index>& cuts) {
  Index e = 0;
  for (std::size_t n = 0; n + 1 < cuts.size(); ++n) {
    const Index least = nearest_valid_cut(graph, cut, e);
    if (least < 0) break;   // too few rows are left for one more: the way back makes room
    e = cuts[n] = std::max(cuts[n], least);
  }
  for (std::size_t n = cuts.size() - 1; n > 0; --n)
    while (cuts[n - 1] > 0 && (cuts[n - 1] >= cuts[n] || !slab_cost(graph, cut, cuts[n - 1], cuts[n]).valid)) --cuts[n - 1];
  return all_valid(graph, cut, cuts);
}
/// As many slabs as there are rows for: each as thin as it can be, the last `count` - 1 rows over.
constexpr std::vector<Index> thinnest_cuts(const RowGraph& graph, Cut cut, Index count) {
  std::vector<Index> cuts;
  for (Index e = 0; static_cast<Index>(cuts.size()) + 1 < count;) {
    e = nearest_valid_cut(graph, cut, e);
    if (e < 0) return {};
    cuts.push_back(e);
  }
  cuts.push_back(graph.height);
  return cuts;
}
inline constexpr Index exact_rows = 12;   // above this many output rows affine_cuts() is within one unit of the optimum
}  // namespace detail
/// The largest number of slabs that a chain can be cut into; at least 1.
constexpr Index max_slabs(const detail::RowGraph& graph, Cut cut) {
  if (cut == Cut::column) return 1;
  Index count = 0;
  for (Index e = 0; e < graph.height; ++count) {
    e = detail::nearest_valid_cut(graph, cut, e);
    if (e < 0) break;   // the rows left over join the last slab
  }
  return std::max<Index>(1, count);
}
/// Cuts of the output into `count` slabs such that the largest slab is smallest; empty if it cannot be cut so finely.
constexpr std::vector<Index> choose_cuts(const detail::RowGraph& graph, Cut cut, Index count) {
  if (count <= 1 || cut == Cut::column) return {graph.height};
  if (count > graph.height) return {};
  if (graph.height <= detail::exact_rows) return detail::exact_cuts(graph, cut, count);
  std::vector<Index> cuts = detail::affine_cuts(graph, cut, count);
  if (cuts.empty())   // more slabs than units of the grid, or border slabs that meet: even ones
    for (Index n = 1; n <= count; ++n) cuts.push_back(ceil_div(n * graph.height, count));
  if (detail::all_valid(graph, cut, cuts) || detail::mend(graph, cut, cuts)) return cuts;
  cuts = detail::thinnest_cuts(graph, cut, count);
  if (!cuts.empty() && detail::all_valid(graph, cut, cuts)) return cuts;
  return {};
}
/// `count` of the given cuts, evenly chosen, the last among them.
constexpr std::vector<Index> thin_cuts(std::span<const Index> cuts, Index count) {
  std::vector<Index> some;
  const Index all = static_cast<Index>(cuts.size());
  for (Index i = 1; i <= count; ++i) some.push_back(cuts[static_cast<std::size_t>(ceil_div(i * all, count) - 1)]);
  return some;
}
/// Rows of all slabs between the given cuts. A single slab computes whole maps, unread rows included.
constexpr Schedule make_schedule(const detail::RowGraph& graph, Cut cut, std::vector<Index> cuts) {
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
    detail::slab_rows(graph, cut, n == 0 ? 0 : s.cuts[static_cast<std::size_t>(n - 1)], s.cuts[static_cast<std::size_t>(n)],
                      scratch.data(), s.rows.data() + n * s.tensors);
  return s;
}
}  // namespace lrcnn
