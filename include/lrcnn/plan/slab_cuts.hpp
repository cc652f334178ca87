#pragma once
// Where the output of a stage is cut, so that the largest slab is smallest.
//
// The deep maps' few rows are cut by trying all cuts (exact_cuts). Taller maps are not: away from the borders the cost of a slab is
// affine in its rows, which says at once how many rows each may have.
#include <lrcnn/plan/slab_schedule.hpp>
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <vector>
namespace lrcnn {
/// Whether cuts e_1 < ... < e_N of the output end at its last row and make slabs all of which are valid (SlabCost::valid).
constexpr bool are_valid_cuts(const RowGraph& graph, Cut cut, const std::vector<Index>& cuts) {
  Index e0 = 0;
  for (const Index e1 : cuts) {
    if (!slab_cost(graph, cut, e0, e1).valid) return false;
    e0 = e1;
  }
  return e0 == graph.height;
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
/// Cuts of the output into `count` slabs such that the largest slab is smallest, found by trying all; empty if it cannot be cut so finely.
/// Cost:    time grows with the square of the output's rows times `count`
constexpr std::vector<Index> exact_cuts(const RowGraph& graph, Cut cut, Index count) {
  // least[n][e]: the least possible largest slab when the first n slabs end at row e
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
  for (Index n = count, e = h; n > 1; --n) item(cuts, n - 2) = e = from[at(n, e)];
  return cuts;
}
/// Above this many output rows choose_cuts() finds cuts by the affine cost, within one unit (cut_unit) of the optimum; up to it, the optimum.
inline constexpr Index exact_cut_rows = 12;
namespace detail {
/// The first cut behind e0 that ends a valid slab, or -1.
constexpr Index nearest_valid_cut(const RowGraph& graph, Cut cut, Index e0) {
  for (Index e = e0 + 1; e <= graph.height; ++e)
    if (slab_cost(graph, cut, e0, e).valid) return e;
  return -1;
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
  return are_valid_cuts(graph, cut, cuts);
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
}   // namespace detail
/// The largest number of slabs that a chain can be cut into; at least 1.
constexpr Index max_slabs(const RowGraph& graph, Cut cut) {
  if (cut == Cut::column) return 1;
  Index count = 0;
  for (Index e = 0; e < graph.height; ++count) {
    e = detail::nearest_valid_cut(graph, cut, e);
    if (e < 0) break;   // the rows left over join the last slab
  }
  return std::max<Index>(1, count);
}
/// Cuts of the output into `count` slabs such that the largest slab is smallest; empty if it cannot be cut so finely.
constexpr std::vector<Index> choose_cuts(const RowGraph& graph, Cut cut, Index count) {
  if (count <= 1 || cut == Cut::column) return {graph.height};
  if (count > graph.height) return {};
  if (graph.height <= exact_cut_rows) return exact_cuts(graph, cut, count);
  std::vector<Index> cuts = detail::affine_cuts(graph, cut, count);
  if (cuts.empty())   // more slabs than units of the grid, or border slabs that meet: even ones
    for (Index n = 1; n <= count; ++n) cuts.push_back(ceil_div(n * graph.height, count));
  if (are_valid_cuts(graph, cut, cuts) || detail::mend(graph, cut, cuts)) return cuts;
  cuts = detail::thinnest_cuts(graph, cut, count);
  if (!cuts.empty() && are_valid_cuts(graph, cut, cuts)) return cuts;
  return {};
}
/// `count` of the given cuts, evenly chosen, the last among them.
constexpr std::vector<Index> thin_cuts(std::span<const Index> cuts, Index count) {
  std::vector<Index> some;
  const Index all = static_cast<Index>(cuts.size());
  for (Index i = 1; i <= count; ++i) some.push_back(item(cuts, ceil_div(i * all, count) - 1));
  return some;
}
}   // namespace lrcnn
