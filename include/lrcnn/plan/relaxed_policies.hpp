#pragma once
// Policies that are a little faster than others, and may take a little more memory: a section's forward pass has fewer slabs than its backward pass.
//
// A section that keeps nothing for its backward pass may go forward layer by layer, and backward slab by slab. Then its forward pass computes no
// halo rows and goes through no norm twice. Many plans have their peak in the backward pass, so this costs no bytes. A search that tried it for each
// section would follow fewer combinations of the other ways to run them; so it is tried on what the search has found.
#include <lrcnn/plan/solved_policy.hpp>
#include <optional>
#include <vector>
namespace lrcnn::detail {
/// The partition with the forward pass of a column, or as it is if its passes keep something for each other.
constexpr Partition with_forward_column(const PolicySpec& policy, Partition p) {
  const bool keeps = policy.recompute_in(p) != Recompute::all || p.cut == Cut::share;
  if (keeps || (p.forward == 1 && !p.forward_passes)) return p;
  p.forward = 1, p.forward_passes = false;
  return p;
}
/// What is faster than a policy where its sections have the forward pass of a column: all of them; and, if these take more bytes, as many of them as
/// take no more, one after the other. `measure(policy)`: its SolvedPolicy; none if it cannot be planned.
template <class Measure>
std::vector<SolvedPolicy> relaxed(const SolvedPolicy& from, const Measure& measure) {
  std::vector<SolvedPolicy> found;
  SolvedPolicy now = from;
  const auto take = [&](const PolicySpec& policy) {
    if (policy == now.policy) return false;
    const std::optional<SolvedPolicy> other = measure(policy);
    if (!other || other->seconds >= now.seconds) return false;
    found.push_back(*other);
    if (other->bytes > from.bytes) return false;
    now = *other;
    return true;
  };
  PolicySpec all = from.policy;
  for (Index i = 0; i < all.partition_count; ++i) item(all.partitions, i) = with_forward_column(all, all.partition(i));
  if (all == from.policy || take(all)) return found;
  for (Index i = 0; i < all.partition_count; ++i) {
    PolicySpec one = now.policy;
    item(one.partitions, i) = all.partition(i);
    take(one);
  }
  return found;
}
}   // namespace lrcnn::detail
