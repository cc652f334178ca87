#pragma once
// What to do when a plan is too large: the fewest slabs with which it fits.
#include <lrcnn/plan/plan.hpp>
#include <optional>
namespace lrcnn {
struct FewestSlabs {
  PolicySpec policy{};
  Index bytes = 0;   ///< its peak
};
/// The policy with all stages cut into as few slabs as let the step fit into `bytes`; with checkpoints at pools and
/// RecomputeAll where slabs alone do not help. Nothing if no number of slabs does.
/// Cost:    a plan without steps for each number of slabs that is tried, up to the input's rows
inline std::optional<FewestSlabs> fewest_slabs(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                                               Index bytes) {
  PolicySpec sparing = policy;
  sparing.checkpoints = {.rule = Checkpoints::Rule::pools};
  sparing.recompute = Recompute::all;
  for (PolicySpec p : {policy, sparing}) {
    const Cut cut = policy.partition(0).cut;
    p.partition_count = 1;
    for (Index slabs = 2; slabs <= table.input.h; ++slabs) {
      p.partitions[0] = {cut == Cut::column ? Cut::overlap : cut, slabs, slabs, policy.partition(0).images};
      try {
        if (const Index needed = arena_size(table, p, target, options).bytes; needed <= bytes) return FewestSlabs{p, needed};
      } catch (const PlanError&) {   // no stage has so many rows
        break;
      }
    }
  }
  return {};
}
}   // namespace lrcnn
