#pragma once
// Policies of a whole step that a search for sections does not find.
#include <lrcnn/layer/statistics.hpp>
#include <lrcnn/plan/plan.hpp>
#include <lrcnn/policy/ready_made.hpp>
#include <algorithm>
#include <vector>
namespace lrcnn::detail {
/// The ready-made policies, with what is never chosen taken from `policy`. `least_workspace`: bytes below which none is of use.
inline std::vector<PolicySpec> ready_made_for(const PolicySpec& policy, bool training, Index least_workspace) {
  std::vector<PolicySpec> found;
  for (const ReadyMadePolicy& made : ready_made_policies) {
    PolicySpec other = made.policy;
    other.take_never_chosen(policy);
    other.gradients_in_place |= policy.gradients_in_place;
    other.named = 0;
    if (other.most_workspace_bytes() >= least_workspace && (training || !other.gradients_in_place)) found.push_back(other);
  }
  return found;
}
/// Whether add_handed_on() has what sections have not. In training, norms that wait for all rows divide a network, and a short one is a section as a
/// whole.
inline bool may_hand_on(const Table& table, bool training) {
  constexpr Index short_ones = 32;
  return !training || (table.size() > short_ones &&
                       std::none_of(table.nodes.begin(), table.nodes.end(), [](const Node& node) { return has_statistics(node.layer, true); }));
}
/// Adds `policy` with slabs of rows that are handed on through the whole network, of all images at once and of one after the other: no row is
/// computed twice in a pass, and nothing that an image's rows go through is there in full height. Sections of many layers are not cut like this.
/// `workspaces`: bytes, by falling size; of very long networks, whose plans take a second each, only the last.
inline void add_handed_on(const Table& table, PolicySpec policy, bool training, const std::vector<Index>& workspaces, std::vector<PolicySpec>& to) {
  if (training) policy.recompute = Recompute::all;
  constexpr Index very_long = 1000;
  Index rows = 0;
  for (Index t = 0; t <= table.size(); ++t) rows = std::max(rows, table.shape(t).h);
  for (std::size_t w = table.size() > very_long ? workspaces.size() - 1 : 0; w < workspaces.size(); ++w)
    for (Index images = table.input.n > 1 ? 1 : 0; images >= 0; --images)
      for (Index slabs = 2; slabs <= rows && slabs * table.size() <= most_steps; slabs *= 2) {
        policy.images = images, policy.workspace_bytes = workspaces[w];
        policy.partitions[0] = {.cut = Cut::share, .forward = slabs, .backward = slabs};
        to.push_back(policy);
      }
}
}   // namespace lrcnn::detail
