#pragma once
// Policies that are a little faster than others, and may take a little more memory: sections in fewer slabs.
//
// A section that keeps nothing for its backward pass may go forward layer by layer, and backward slab by slab. Then its forward pass computes no
// halo rows and goes through no norm twice. Many plans have their peak in the backward pass, so this costs no bytes. And where sections are run as a
// group, slabs are as fine as the group's peak asks for, which only one of them has. A search that tried all of this for each section would follow
// fewer combinations of the other ways to run them; so it is tried on what the search has found.
#include <lrcnn/plan/solved_policy.hpp>
#include <optional>
#include <vector>
namespace lrcnn::detail {
/// The next smaller number of slabs that is worth a try: of 2, 3, 4, 6, 8, 12, 16 and so on.
constexpr Index fewer_slabs(Index slabs) { return (slabs & (slabs - 1)) == 0 ? slabs - slabs / 4 : slabs - slabs / 3; }
/// The partition with the forward pass of a column, or as it is if its passes keep something for each other.
constexpr Partition with_forward_column(const PolicySpec& policy, Partition p) {
  const bool keeps = policy.recompute_in(p) != Recompute::all || p.cut == Cut::share;
  if (keeps || (p.forward == 1 && !p.forward_passes)) return p;
  p.forward = 1, p.forward_passes = false;
  return p;
}
/// Partitions that are faster than one, as a rule: with the forward pass of a column, with fewer slabs in the forward pass alone, and in both.
inline std::vector<Partition> faster_partitions(const PolicySpec& policy, const Partition& p) {
  std::vector<Partition> list;
  const auto add = [&](const Partition& other) {
    if (other != p) list.push_back(other);
  };
  const Partition column = with_forward_column(policy, p);
  add(column);
  if (column != p && p.forward > 4) {   // a forward pass of slabs allows its section things that one of a column does not
    Partition few = p;
    few.forward = 4, few.forward_passes = false;
    add(few);
  }
  if (p.backward > 3) {
    Partition fewer = p;
    fewer.backward = fewer_slabs(p.backward), fewer.forward = std::min(p.forward, fewer.backward);
    add(fewer);
  }
  return list;
}
/// What is faster than a policy where its sections have the forward pass of a column: all of them; and, if these take more bytes, what takes no more,
/// section by section, as far as faster_partitions() lead. `measure(policy)`: its SolvedPolicy; none if it cannot be planned.
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
  take(all);
  const auto improve = [&](Index i) {
    for (const Partition& faster : faster_partitions(now.policy, now.policy.partition(i))) {
      PolicySpec one = now.policy;
      item(one.partitions, i) = faster;
      if (take(one)) return true;
    }
    return false;
  };
  for (Index i = 0; i < now.policy.partition_count; ++i)
    while (improve(i)) {
    }
  return found;
}
}   // namespace lrcnn::detail
