#pragma once
// Policies for a number of bytes: the fastest that a network's step can be run with, from the fewest bytes to the most that are of use.
//
// A budget takes the fastest point that fits, so more bytes are never slower. A PolicySpec with `fit_bytes` is such a budget: what else it names
// holds, the rest is chosen. The search is plan/frontier_search.hpp.
#include <lrcnn/core/machine.hpp>
#include <lrcnn/plan/costs.hpp>
#include <lrcnn/plan/solved_policy.hpp>
namespace lrcnn {
/// The best policies by rising bytes and falling seconds.
struct Frontier {
  std::vector<SolvedPolicy> points{};
  /// The fastest that needs no more bytes; nullptr: none does.
  const SolvedPolicy* fastest(Index bytes) const {
    const auto behind = std::upper_bound(points.begin(), points.end(), bytes, [](Index b, const SolvedPolicy& p) { return b < p.bytes; });
    return behind == points.begin() ? nullptr : &*(behind - 1);
  }
  /// Pre: there is a point.
  const SolvedPolicy& smallest() const { return points.front(); }
};
namespace detail {
/// find_frontier() for a policy that was checked, compiled where LRCNN_PRECOMPILED says (precompiled/training.hpp).
template <class = void>
Frontier searched_frontier(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs,
                           int threads);
}   // namespace detail
/// The frontier of a network on an input. `policy`: what it names (PolicySpec::names()) holds at every point, as do precision, streams
/// and prefetch; all else is chosen.
/// Errors:  PlanError if no policy can be planned, as make_plan(), or if parts that are named contradict Fit
/// Cost:    on two cores, from some tenths of a second to four for 20 to 400 layers; more for batches of hundreds
/// `threads`: at most so many work on it; 0: as many as the process may use. The result is the same with any number.
inline Frontier find_frontier(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs,
                              int threads = 0) {
  check_policy(policy);
  detail::check_norms(table, policy, options.training);
  return detail::searched_frontier<>(table, policy, target, options, costs, threads > 0 ? threads : processor_count());
}
/// The fastest policy of a frontier whose plan takes at most policy.fit_bytes. `policy`: what the frontier was found for.
/// Errors:  PlanError naming the fewest bytes that there is a plan for
inline PolicySpec fit(const Frontier& frontier, const Table& table, const PolicySpec& policy) {
  if (const SolvedPolicy* const best = frontier.fastest(policy.fit_bytes)) return best->policy;
  const Index least = frontier.smallest().bytes;
  throw PlanError(error_text(to_string(policy) + " leaves " + format_bytes(policy.fit_bytes) + " for a step on input " + to_string(table.input),
                             "the fewest bytes that a plan was found for are " + std::to_string(least),
                             "use Fit<" + std::to_string(least) + "> or more, or " +
                                 (policy.named != 0 ? "name fewer parts of the policy, or " : "") + "give smaller batches"));
}
/// The same of a frontier that is found for this.
/// Errors:  as find_frontier(), too
inline PolicySpec fit(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs) {
  return fit(find_frontier(table, policy, target, options, costs), table, policy);
}
}   // namespace lrcnn
#if !defined(LRCNN_PRECOMPILED) || defined(LRCNN_PRECOMPILES_TRAINING)   // else it is in a library, and takes seconds to read
#include <lrcnn/plan/frontier_search.hpp>
#endif
