#pragma once
// Small random graphs, and all chains of lower sets of a graph, by going through them: no dynamic programming, and no code of the planner.
// Sets of nodes are the bits of an integer.
#include "support/random_network.hpp"
#include <lrcnn/plan/lower_sets.hpp>
#include <bit>
#include <map>
namespace lrcnn::testing {
using Bits = std::uint32_t;
/// The costs of a chain.
struct ChainCost {
  Index peak = 0, overhead = 0;
  friend auto operator<=>(const ChainCost&, const ChainCost&) = default;
};
class AllChains {
 public:
  explicit AllChains(const RecomputationGraph& graph) : graph_(graph), count_(graph.nodes.size()), inputs_(count_), readers_(count_) {
    for (const RecomputationEdge& e : graph.edges) {
      inputs_[static_cast<std::size_t>(e.to)] |= Bits{1} << e.from;
      readers_[static_cast<std::size_t>(e.from)] |= Bits{1} << e.to;
    }
  }
  Bits all() const { return (Bits{1} << count_) - 1; }
  std::vector<Bits> family(LowerSetFamily family) const {
    std::vector<Bits> sets{0, all()};
    if (family == LowerSetFamily::exact)
      for (Bits set = 1; set < all(); ++set)
        if (is_lower(set)) sets.push_back(set);
    if (family == LowerSetFamily::approx || family == LowerSetFamily::wide)
      for (std::size_t v = 0; v < count_; ++v) {
        Bits closure = Bits{1} << v;
        for (Bits before = 0; before != closure;) before = closure, closure |= united(inputs_, closure);
        sets.push_back(closure);
      }
    if (family == LowerSetFamily::order || family == LowerSetFamily::wide)
      for (Bits prefix = 0; prefix != all();) {   // the first node of the list that may come next
        std::size_t v = 0;
        while ((prefix >> v & 1) != 0 || (inputs_[v] & ~prefix) != 0) ++v;
        prefix |= Bits{1} << v;
        sets.push_back(prefix);
      }
    std::sort(sets.begin(), sets.end());
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    return sets;
  }
  /// How many chains there are from the empty set to that of all nodes.
  double count(const std::vector<Bits>& sets) const {
    std::map<Bits, double> ways{{0, 1}};   // a set that contains another is the larger number
    for (const Bits set : sets)
      for (const Bits before : sets)
        if (before < set && (before & ~set) == 0) ways[set] += ways[before];
    return ways[all()];
  }
  /// The costs of all chains, each pair once.
  std::vector<ChainCost> costs(const std::vector<Bits>& sets) const {
    std::vector<ChainCost> found;
    extend(sets, 0, 0, 0, found);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }
  Index step_peak(Bits from, Bits to, Bits kept) const {
    const Bits readers = united(readers_, to) & ~to, beside = united(inputs_, readers) & ~to;
    return bytes(kept) + 2 * bytes(to & ~from) + bytes(readers) + bytes(beside);
  }
  Bits boundary(Bits set) const {
    Bits found = 0;
    for (std::size_t v = 0; v < count_; ++v)
      if ((set >> v & 1) != 0 && (readers_[v] & ~set) != 0) found |= Bits{1} << v;
    return found;
  }
  bool is_lower(Bits set) const { return (united(inputs_, set) & ~set) == 0; }
  Index bytes(Bits set) const { return sum(set, &RecomputationNode::bytes); }
  Index time(Bits set) const { return sum(set, &RecomputationNode::time); }

 private:
  const RecomputationGraph& graph_;
  std::size_t count_;
  std::vector<Bits> inputs_, readers_;
  static Bits united(const std::vector<Bits>& of, Bits set) {
    Bits found = 0;
    for (; set != 0; set &= set - 1) found |= of[static_cast<std::size_t>(std::countr_zero(set))];
    return found;
  }
  Index sum(Bits set, Index RecomputationNode::*of) const {
    Index total = 0;
    for (; set != 0; set &= set - 1) total += graph_.nodes[static_cast<std::size_t>(std::countr_zero(set))].*of;
    return total;
  }
  void extend(const std::vector<Bits>& sets, Bits last, Bits kept, Index peak, std::vector<ChainCost>& found) const {
    if (last == all()) return found.push_back({peak, time(all() & ~kept)});
    for (const Bits next : sets)
      if (next != last && (last & ~next) == 0) extend(sets, next, kept | boundary(next), std::max(peak, step_peak(last, next, kept)), found);
  }
};
/// A graph that `accept` takes. Half of them do not list their nodes in topological order.
template <class Accept>
RecomputationGraph random_recomputation_graph(Dice& dice, Index fewest_nodes, Index most_nodes, Accept accept) {
  for (;;) {
    RecomputationGraph graph;
    const Index count = dice.upto(fewest_nodes, most_nodes), most_bytes = dice.pick<Index>({3, 20, 1000}), most_time = dice.pick<Index>({1, 10, 40});
    const double density = dice.pick({0.1, 0.2, 0.3, 0.5, 0.8});
    std::vector<Index> place(static_cast<std::size_t>(count));
    for (Index v = 0; v < count; ++v) place[static_cast<std::size_t>(v)] = v;
    if (dice.chance(0.5))
      for (std::size_t v = place.size(); v > 1; --v)
        std::swap(place[v - 1], place[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(v) - 1))]);
    for (Index v = 0; v < count; ++v) {
      graph.nodes.push_back({"", dice.upto(0, most_bytes), dice.upto(0, most_time)});
      for (Index input = 0; input < v; ++input)
        if (dice.chance(input + 1 == v ? 0.7 : density))
          graph.edges.push_back({place[static_cast<std::size_t>(input)], place[static_cast<std::size_t>(v)]});
    }
    if (accept(graph)) return graph;
  }
}
/// One of 1 to 12 nodes with at most `most_chains` chains.
inline RecomputationGraph random_recomputation_graph(Dice& dice, double most_chains) {
  return random_recomputation_graph(dice, 1, 12, [&](const RecomputationGraph& graph) {
    const AllChains chains(graph);
    return chains.count(chains.family(LowerSetFamily::exact)) <= most_chains;
  });
}
}   // namespace lrcnn::testing
