#pragma once
// Recomputation on any graph: what to keep from the forward to the backward pass so that the pass fits into a number of bytes.
//
// A strategy is a chain of lower sets L_1, L_2, ..., the last of which is the whole graph. The forward pass keeps the boundary of each: what
// somebody outside of it reads. The backward pass takes the segments, L_i without L_{i-1}, from the last to the first. It computes the nodes of
// a segment again, but for those that are kept, and then their gradients. Parameters and the network's input are not counted.
// Source: Kusumoto, Inoue, Watanabe, Akiba and Koyama, "A graph theoretic framework of recomputation algorithms for memory-efficient
// backpropagation", NeurIPS 2019
#include <lrcnn/plan/lower_set_search.hpp>
namespace lrcnn {
/// Which of the strategies that fit a budget is chosen.
enum class RecomputationObjective : std::uint8_t {
  time,    ///< one that computes as little as possible again ("time-centric")
  memory   ///< one that computes as much as possible again: large segments, in which much can be freed early ("memory-centric")
};
/// "time", "memory"
constexpr std::string_view objective_name(RecomputationObjective objective) { return objective == RecomputationObjective::time ? "time" : "memory"; }
/// What two neighbours of a chain of lower sets have between them.
struct RecomputationSegment {
  std::vector<Index> nodes{};   ///< in topological order
  std::vector<Index> kept{};    ///< those of them that are kept from the forward to the backward pass
  friend bool operator==(const RecomputationSegment&, const RecomputationSegment&) = default;
};
/// What is kept, and what that comes to.
struct RecomputationStrategy {
  std::vector<RecomputationSegment> segments{};   ///< in the order of the forward pass
  Index peak_bytes = 0;                           ///< of the backward pass; that of the forward pass is not higher
  Index kept_bytes = 0;                           ///< of all kept nodes
  Index overhead = 0;                             ///< time of all nodes that are not kept, which are computed a second time
  friend bool operator==(const RecomputationStrategy&, const RecomputationStrategy&) = default;
};
/// Which strategies are considered.
struct RecomputationOptions {
  LowerSetFamily family = LowerSetFamily::wide;   ///< among which sets a chain is chosen
  Index max_lower_sets = 100'000;                 ///< more are refused. Time grows with the square of their number
  friend constexpr bool operator==(const RecomputationOptions&, const RecomputationOptions&) = default;
};
/// Strategies of one graph for any budgets. Each is the best of all chains of sets of the family.
class RecomputationPlanner {
 public:
  /// Finds the family's sets.
  /// Errors: as check_graph(); PlanError if the family has more than options.max_lower_sets sets
  explicit RecomputationPlanner(RecomputationGraph graph, const RecomputationOptions& options = {})
      : graph_((check_graph(graph), std::move(graph))),
        options_(options),
        order_(topological_order(graph_)),
        table_(graph_, detail::NodeLinks(graph_), options.family, options.max_lower_sets),
        search_(table_) {}
  RecomputationPlanner(const RecomputationPlanner&) = delete;
  RecomputationPlanner& operator=(const RecomputationPlanner&) = delete;
  const RecomputationGraph& graph() const { return graph_; }
  /// How many sets the family has, the empty one and that of all nodes among them.
  Index lower_set_count() const { return static_cast<Index>(table_.size()); }
  /// The fewest bytes for which there is a strategy.
  Index least_budget() const {
    Index feasible = table_.need.back();            // everything in one segment
    if (options_.family == LowerSetFamily::exact)   // a smaller family soon finds a budget that is not far above the least
      feasible = RecomputationPlanner(graph_, {LowerSetFamily::wide, options_.max_lower_sets}).least_budget();
    return search_.least_budget(feasible);
  }
  /// The best strategy with a peak of at most `budget` bytes; of several, one that keeps the fewest bytes.
  /// Errors: PlanError, which names the least budget, if there is none
  RecomputationStrategy strategy(Index budget, RecomputationObjective objective = RecomputationObjective::time) const {
    const auto cost = objective == RecomputationObjective::time ? detail::StepCost::recomputed : detail::StepCost::kept;
    const auto chain = search_.best_chain(budget, cost);
    if (!chain.empty()) return strategy_of(chain);
    throw PlanError(error_text("no strategy has a peak of at most " + std::to_string(budget) + " bytes",
                               "with the lower sets of family " + std::string(family_name(options_.family)) + ", the least feasible budget is " +
                                   std::to_string(least_budget()) + " bytes",
                               options_.family == LowerSetFamily::exact ? "allow at least so many" : "allow at least so many, or try family exact"));
  }

 private:
  RecomputationGraph graph_;
  RecomputationOptions options_;
  std::vector<Index> order_;
  detail::LowerSetTable table_;
  detail::LowerSetSearch search_;
  RecomputationStrategy strategy_of(const detail::LowerSetSearch::Chain& chain) const {
    RecomputationStrategy strategy;
    for (std::size_t s = 1; s < chain.size(); ++s) {
      RecomputationSegment& segment = strategy.segments.emplace_back();
      for (const Index v : order_) {
        if (!detail::has(table_.sets[chain[s]], v) || detail::has(table_.sets[chain[s - 1]], v)) continue;
        segment.nodes.push_back(v);
        if (detail::has(table_.boundaries[chain[s]], v)) segment.kept.push_back(v), strategy.kept_bytes += graph_.node(v).bytes;
        else strategy.overhead += graph_.node(v).time;
      }
    }
    strategy.peak_bytes = search_.peak(chain);
    return strategy;
  }
};
/// The best strategy with a peak of at most `budget` bytes; RecomputationPlanner::strategy() has the details.
inline RecomputationStrategy choose_recomputation(const RecomputationGraph& graph, Index budget,
                                                  RecomputationObjective objective = RecomputationObjective::time,
                                                  const RecomputationOptions& options = {}) {
  return RecomputationPlanner(graph, options).strategy(budget, objective);
}
/// The fewest bytes for which there is a strategy.
/// Errors: as RecomputationPlanner
inline Index least_recomputation_budget(const RecomputationGraph& graph, const RecomputationOptions& options = {}) {
  return RecomputationPlanner(graph, options).least_budget();
}
}   // namespace lrcnn
