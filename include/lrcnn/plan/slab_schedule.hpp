#pragma once
// Which rows of every tensor each slab of a stage computes and holds.
//
// A stage is a chain of row-local layers 0 .. L-1 between tensors 0 .. L. Both ways of cutting start from cuts
// 0 = e_0 < e_1 < ... < e_N = H_L of the stage's *output* and walk down the chain:
//   overlap   own_L(n) = [e_{n-1}, e_n),  own_t(n) = in_rows(own_{t+1}(n))          slabs know nothing of each other
//   share     c_L(n) = e_n,  c_t(n) = known_for(c_{t+1}(n)),  c_t(N) = H_t
//             own_t(n)  = [c_t(n-1), c_t(n))                                      every row computed exactly once
//             hold_t(n) = [min(first_needed(c_{t+1}(n-1)), c_t(n-1)), c_t(n))     own rows and those handed on
// Cutting at the output loses nothing: a cut of tensor t that lies above known_for(c_{t+1}) only makes slabs taller.
// A cut may be moved up to a grid (Winograd tiles); sharing then carries a few rows more, overlap computes them.
// tests/plan/slab_schedule.cpp asserts: own rows tile every tensor (share), hold(n) = own(n) + rows of hold(n-1),
// need lies in hold, every slab owns a row of every tensor above the first, and the golden values of algorithms.md.
#include <lrcnn/network/table.hpp>
#include <lrcnn/policy/policy.hpp>
#include <limits>
#include <numeric>
namespace lrcnn {
/// What the row algebra needs to know of one layer of a chain.
struct RowRule {
  Axis axis{};
  Index in_height = 1;
  Index out_height = 1;
  Index in_row_bytes = 0;   ///< cost of one row of the layer's input, for choosing cuts
  Index grid = 1;           ///< cuts of the layer's output lie on multiples of this, or at its end
};
/// Rows of one tensor in one slab. need: what the layer above reads; own: computed here; hold: own and carried.
struct SlabRows {
  Range own{};
  Range hold{};
  Range need{};
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
/// A chain of layers and the height of its output.
struct Chain {
  std::span<const RowRule> rules;
  Index height = 1;             ///< of the last tensor
  Index last_row_bytes = 0;     ///< cost of one of its rows
  constexpr Index layers() const { return static_cast<Index>(rules.size()); }
  constexpr const RowRule& rule(Index l) const { return rules[static_cast<std::size_t>(l)]; }
  constexpr Index tensor_height(Index t) const { return t == layers() ? height : rule(t).in_height; }
  constexpr Index grid(Index t) const { return t == 0 ? 1 : rule(t - 1).grid; }
  constexpr Index row_bytes(Index t) const { return t == layers() ? last_row_bytes : rule(t).in_row_bytes; }
};
constexpr Index snap_up(Index row, Index grid, Index height) {
  return row >= height ? height : std::min(round_up(row, grid), height);
}
/// Rows of every tensor for the slab between output cuts e0 and e1.
constexpr void slab_rows(const Chain& chain, Cut cut, Index e0, Index e1, SlabRows* rows) {
  const Index top = chain.layers();
  rows[top].own = rows[top].hold = rows[top].need = {e0, e1};
  Index below = e0;   // cut of tensor t + 1 before this slab
  for (Index t = top - 1; t >= 0; --t) {
    const RowRule& rule = chain.rule(t);
    const Range out = rows[t + 1].own;
    SlabRows& r = rows[t];
    r.need = in_rows(rule.axis, out, rule.in_height);
    if (cut == Cut::overlap) {
      r.own = r.need;
      if (const Index grid = chain.grid(t); grid > 1 && !r.own.empty())
        r.own = {r.own.begin / grid * grid, snap_up(r.own.end, grid, rule.in_height)};
      r.hold = r.own;
      continue;
    }
    const Index before = below == 0 ? 0 : snap_up(known_for(rule.axis, below, rule.in_height), chain.grid(t), rule.in_height);
    const Index after = out.end == rule.out_height
                            ? rule.in_height
                            : snap_up(known_for(rule.axis, out.end, rule.in_height), chain.grid(t), rule.in_height);
    r.own = {before, after};
    r.hold = {std::min(first_needed(rule.axis, below), before), after};
    below = before;
  }
  rows[0].hold = rows[0].need;   // the stage's input is at hand in full height: read what is needed, no more
  if (cut == Cut::overlap) rows[0].own = rows[0].need;
}
/// Bytes that a slab holds, and whether it is one: it owns a row of every tensor above the first, and so will the next.
struct SlabCost {
  Index bytes = 0;
  bool valid = true;
};
/// The same walk as slab_rows(), for choosing cuts: counts and nothing else. It is evaluated thousands of times, also
/// by compilers that count every statement of a constant expression, so it is written in few of them.
constexpr SlabCost slab_cost(const Chain& chain, Cut cut, Index e0, Index e1) {
  SlabCost cost{(e1 - e0) * chain.last_row_bytes, e1 > e0};
  const RowRule* rule = chain.rules.data() + chain.layers();
  const bool share = cut == Cut::share, last = e1 == chain.height;
  Index a = e0, b = e1;   // own rows of the tensor above: cuts when sharing
  while (rule != chain.rules.data()) {
    --rule;
    const Index s = rule->axis.stride, p = rule->axis.pad_begin, e = rule->axis.extent(), h = rule->in_height;
    const Index g = rule == chain.rules.data() ? 1 : rule[-1].grid;
    const Index first = a * s - p < 0 ? 0 : a * s - p, known = (b - 1) * s - p + e < 0 ? 0 : (b - 1) * s - p + e;
    const Index below = a == 0 ? 0 : (a - 1) * s - p + e < 0 ? 0 : (a - 1) * s - p + e;
    const Index end = (share && last) || known >= h ? h : (known + g - 1) / g * g < h ? (known + g - 1) / g * g : h;
    const Index begin = share ? (below + g - 1) / g * g : first / g * g;
    const Index from = first < begin ? first : begin;
    cost.bytes += (end > from ? end - from : 0) * rule->in_row_bytes;
    cost.valid = cost.valid && (rule == chain.rules.data() || (end > (share ? begin : first) && (!share || last || end < h)));
    a = begin, b = end;
  }
  return cost;
}
constexpr bool all_valid(const Chain& chain, Cut cut, const std::vector<Index>& cuts) {
  Index e0 = 0;
  for (const Index e1 : cuts) {
    if (!slab_cost(chain, cut, e0, e1).valid) return false;
    e0 = e1;
  }
  return e0 == chain.height;
}
constexpr Index nearest_valid_cut(const Chain& chain, Cut cut, Index e0) {
  for (Index e = e0 + 1; e <= chain.height; ++e)
    if (slab_cost(chain, cut, e0, e).valid) return e;
  return -1;
}
/// Output rows between two cuts for which the cuts of every tensor below lie on their grids without being moved.
constexpr Index cut_unit(const Chain& chain) {
  Index unit = 1, rows = 1;   // rows of tensor t for each output row
  for (Index t = chain.layers(); t > 0; --t) {
    unit = std::lcm(unit, chain.grid(t) / std::gcd(chain.grid(t), rows));
    rows *= chain.rule(t - 1).axis.stride;
  }
  return unit;
}
/// Away from the borders a slab of d units of output rows costs A*d + B, with one B for the first slab, one for those
/// within and one for the last. The least M that all slabs fit into is then found among the values A*d + B themselves.
constexpr std::vector<Index> affine_cuts(const Chain& chain, Cut cut, Index count) {
  const Index unit = cut_unit(chain), h = ceil_div(chain.height, unit), middle = h / 2;
  const auto cost = [&](Index a, Index b) { return slab_cost(chain, cut, a * unit, std::min(b * unit, chain.height)).bytes; };
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
    cuts.push_back(n + 1 == count ? chain.height : e * unit);
  }
  return cuts;
}
/// The same exactly, for the few rows of deep maps, where border slabs meet: least[n][e] = the least possible largest
/// slab when the first n slabs end at row e.
constexpr std::vector<Index> exact_cuts(const Chain& chain, Cut cut, Index count) {
  const Index h = chain.height, never = std::numeric_limits<Index>::max();
  const auto at = [h](Index n, Index e) { return static_cast<std::size_t>(n * (h + 1) + e); };
  std::vector<Index> cost(at(h, h) + 1, never), least(at(count, h) + 1, never), from(at(count, h) + 1, 0);
  for (Index e0 = 0; e0 < h; ++e0)
    for (Index e1 = e0 + 1; e1 <= h; ++e1)
      if (const SlabCost c = slab_cost(chain, cut, e0, e1); c.valid) cost[at(e0, e1)] = c.bytes;
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
constexpr bool mend(const Chain& chain, Cut cut, std::vector<Index>& cuts) {
  Index e = 0;
  for (std::size_t n = 0; n + 1 < cuts.size(); ++n) {
    const Index least = nearest_valid_cut(chain, cut, e);
    if (least < 0) break;   // too few rows are left for one more: the way back makes room
    e = cuts[n] = std::max(cuts[n], least);
  }
  for (std::size_t n = cuts.size() - 1; n > 0; --n)
    while (cuts[n - 1] > 0 && (cuts[n - 1] >= cuts[n] || !slab_cost(chain, cut, cuts[n - 1], cuts[n]).valid)) --cuts[n - 1];
  return all_valid(chain, cut, cuts);
}
/// As many slabs as there are rows for: each as thin as it can be, the last `count` - 1 rows over.
constexpr std::vector<Index> thinnest_cuts(const Chain& chain, Cut cut, Index count) {
  std::vector<Index> cuts;
  for (Index e = 0; static_cast<Index>(cuts.size()) + 1 < count;) {
    e = nearest_valid_cut(chain, cut, e);
    if (e < 0) return {};
    cuts.push_back(e);
  }
  cuts.push_back(chain.height);
  return cuts;
}
inline constexpr Index exact_rows = 12;   // above this many output rows affine_cuts() is within one unit of the optimum
}  // namespace detail
/// The largest number of slabs that a chain can be cut into; at least 1.
constexpr Index max_slabs(const detail::Chain& chain, Cut cut) {
  if (cut == Cut::column) return 1;
  Index count = 0;
  for (Index e = 0; e < chain.height; ++count) {
    e = detail::nearest_valid_cut(chain, cut, e);
    if (e < 0) break;   // the rows left over join the last slab
  }
  return std::max<Index>(1, count);
}
/// Cuts of the output into `count` slabs such that the largest slab is smallest; empty if it cannot be cut so finely.
constexpr std::vector<Index> choose_cuts(const detail::Chain& chain, Cut cut, Index count) {
  if (count <= 1 || cut == Cut::column) return {chain.height};
  if (count > chain.height) return {};
  if (chain.height <= detail::exact_rows) return detail::exact_cuts(chain, cut, count);
  std::vector<Index> cuts = detail::affine_cuts(chain, cut, count);
  if (cuts.empty())   // more slabs than units of the grid, or border slabs that meet: even ones
    for (Index n = 1; n <= count; ++n) cuts.push_back(ceil_div(n * chain.height, count));
  if (detail::all_valid(chain, cut, cuts) || detail::mend(chain, cut, cuts)) return cuts;
  cuts = detail::thinnest_cuts(chain, cut, count);
  if (!cuts.empty() && detail::all_valid(chain, cut, cuts)) return cuts;
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
constexpr Schedule make_schedule(const detail::Chain& chain, Cut cut, std::vector<Index> cuts) {
  Schedule s;
  s.tensors = chain.layers() + 1;
  s.cuts = std::move(cuts);
  s.rows.assign(static_cast<std::size_t>(s.slabs() * s.tensors), SlabRows{});
  if (s.slabs() == 1) {
    for (Index t = 0; t < s.tensors; ++t) {
      const Range all{0, chain.tensor_height(t)};
      s.rows[static_cast<std::size_t>(t)] = {all, all, all};
    }
    return s;
  }
  for (Index n = 0; n < s.slabs(); ++n)
    detail::slab_rows(chain, cut, n == 0 ? 0 : s.cuts[static_cast<std::size_t>(n - 1)], s.cuts[static_cast<std::size_t>(n)],
                      s.rows.data() + n * s.tensors);
  return s;
}
}  // namespace lrcnn
