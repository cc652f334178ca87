#pragma once
// Plans from policies, and the bytes that they take. A policy with Fit is chosen here.
#include <lrcnn/plan/frontier.hpp>
namespace lrcnn {
namespace detail {
/// A policy that says its workspace.
constexpr PolicySpec for_target(PolicySpec policy, const Target& target) {
  policy.workspace_bytes = target.workspace(policy.workspace_bytes);
  return policy;
}
/// The policy that is carried out: itself for the target, or what Fit chooses. Compiled where LRCNN_PRECOMPILED says (precompiled/training.hpp).
template <class = void>
PolicySpec chosen_policy(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs) {
  return policy.fit_bytes > 0 ? fit(table, policy, target, options, costs) : for_target(policy, target);
}
}   // namespace detail
/// Sizes of the arena that a plan will have, without its steps. With Fit, of the plan that make_plan() makes with these costs.
/// Errors:  ShapeError, PlanError as make_stages(); PlanError if options contradict each other; with Fit, as fit()
/// Cost:    grows with layers, not with slabs; with Fit, as find_frontier()
inline ArenaSize arena_size(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs) {
  return detail::arena_at_run_time<>(table, detail::chosen_policy<>(table, policy, target, options, costs), target, options);
}
/// The same with default costs. Without Fit it may stand in constant expressions.
constexpr ArenaSize arena_size(const Table& table, const PolicySpec& policy, const Target& target = {}, const PlanOptions& options = {}) {
  if (!std::is_constant_evaluated()) return arena_size(table, policy, target, options, Costs{});
  if (policy.fit_bytes > 0)
    throw PlanError(
        error_text("a constant expression asks for the bytes of a policy with Fit", "Fit chooses at run time", "call arena_size() there"));
  return detail::measured_arena(table, policy, target, options);
}
/// The plan of one step. Its `policy` is the one that is carried out: with the target's workspace if none was named, or with Fit the one that was
/// chosen. to_string(plan.policy) is a type to paste. `costs`: what steps take, for Fit; those of a backend are Costs(rates_of<B>()).
/// Post:    plan.arena == arena_size(...) with the same costs; check_plan(plan) finds nothing
/// Errors:  PlanError as arena_size()
inline Plan make_plan(Table table, const PolicySpec& policy, const Target& target = {}, const PlanOptions& options = {}, const Costs& costs = {}) {
  const PolicySpec chosen = detail::chosen_policy<>(table, policy, target, options, costs);
  return detail::recorded_plan<>(std::move(table), chosen, target, options);
}
}   // namespace lrcnn
