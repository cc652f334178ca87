#pragma once
// Policies of a whole step that a search for sections does not find.
#include <lrcnn/network/table.hpp>
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
/// For the forward pass alone, `policy` with slabs of rows that are handed on through the whole network: nothing is computed twice, and nothing that
/// an image's rows go through is there in full height. Sections of many layers are not cut like this. `workspace`: bytes.
inline std::vector<PolicySpec> handed_on_for(const Table& table, PolicySpec policy, Index workspace) {
  Index rows = 0;
  for (Index t = 0; t <= table.size(); ++t) rows = std::max(rows, table.shape(t).h);
  policy.images = 0, policy.workspace_bytes = workspace;
  std::vector<PolicySpec> found;
  for (Index slabs = 2; slabs <= rows; slabs *= 2) {
    policy.partitions[0] = {.cut = Cut::share, .forward = slabs, .backward = slabs};
    found.push_back(policy);
  }
  return found;
}
}   // namespace lrcnn::detail
