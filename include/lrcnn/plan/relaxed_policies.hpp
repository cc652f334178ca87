#pragma once
// Policies that are a little faster than others, and may take a little more memory: passes of their sections have fewer slabs.
//
// A section that keeps nothing for its backward pass may go forward layer by layer, and backward slab by slab. Then its forward pass computes no
// halo rows and goes through no norm twice. Likewise the pass that makes an input again for one section alone may have fewer slabs than that section.
// Many plans have their peak elsewhere, so this costs no bytes. A search that tried it for each section would follow fewer combinations of the other
// ways to run them; so it is tried on what the search has found.
#include <lrcnn/plan/solved_policy.hpp>
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>
namespace lrcnn::detail {
/// The partition with the first forward pass of a column, or as it is if its passes keep something for each other. Where the forward pass is run
/// again it is a column, too, if `again`; else it has the slabs of the backward pass, or those that it had.
constexpr Partition with_forward_column(const PolicySpec& policy, Partition p, bool again) {
  if (policy.recompute_in(p) != Recompute::all || p.cut == Cut::share) return p;
  if (p.forward > 1) p.again_as_backward = p.backward > 1;
  if (again) p.again_as_backward = false;
  p.forward = 1, p.forward_passes = false;
  return p;
}
/// The partition with a third of its slabs, but not fewer than four, in the pass that makes its input again; or as it is if there is no such pass.
constexpr Partition with_fewer_maker_slabs(Partition p) {
  const Index slabs = std::max(p.forward, p.backward), fewer = std::max<Index>(4, slabs / 3);
  if (p.input == SectionInput::recompute_alone && p.cut != Cut::column && p.maker_slabs == 0 && fewer < slabs) p.maker_slabs = fewer;
  return p;
}
/// The partition with three quarters of its slabs in the backward pass, and in a forward pass that has as many; or as it is if these are few.
constexpr Partition with_fewer_slabs(Partition p) {
  if (p.cut == Cut::column || p.backward < 3) return p;
  const bool alike = p.forward == p.backward;
  p.backward = p.backward * 3 / 4;
  if (alike) p.forward = p.backward;
  return p;
}
/// A policy with each of its partitions changed.
template <class Change>
constexpr PolicySpec with_partitions(PolicySpec policy, const Change& change) {
  for (Index i = 0; i < policy.partition_count; ++i) item(policy.partitions, i) = change(policy.partition(i));
  return policy;
}
/// All sections with the forward pass of a column.
constexpr PolicySpec with_forward_columns(const PolicySpec& policy) {
  return with_partitions(policy, [&](const Partition& p) { return with_forward_column(policy, p, true); });
}
/// What is faster than a policy where passes of its sections have fewer slabs: for each kind of pass all sections at once; and, if these take more
/// than `most` bytes, as many of them as take no more, one after the other, beginning with those that gain most. with_seconds(policy): its
/// SolvedPolicy, but for the bytes, or none if that has too many steps; bytes_of(policy): those.
/// Errors:  what these two throw
template <class WithSeconds, class BytesOf>
std::vector<SolvedPolicy> relaxed(const SolvedPolicy& from, Index most, const WithSeconds& with_seconds, const BytesOf& bytes_of) {
  constexpr int most_rounds = 4;           // of fewer and fewer slabs: a third of them then
  constexpr std::size_t most_tried = 12;   // sections one after the other: to find bytes takes long
  constexpr double hardly = 0.0005;        // gains of a smaller part of the seconds are not worth that
  std::vector<SolvedPolicy> found;
  SolvedPolicy now = from;
  Index limit = from.bytes;
  const auto gain_of = [&](const std::optional<SolvedPolicy>& policy) { return policy ? now.seconds - policy->seconds : 0; };
  const auto take = [&](std::optional<SolvedPolicy> policy) {
    if (gain_of(policy) <= hardly * now.seconds) return false;
    policy->bytes = bytes_of(policy->policy);
    found.push_back(*policy);
    if (policy->bytes > limit) return false;
    now = std::move(*policy);
    return true;
  };
  const auto relax = [&](const auto& change) {
    const PolicySpec before = now.policy, all = with_partitions(before, change);
    if (all == before) return false;
    if (take(with_seconds(all))) return true;
    const auto with_one = [&](Index i) {
      PolicySpec one = now.policy;
      item(one.partitions, i) = all.partition(i);
      return with_seconds(one);
    };
    std::vector<std::pair<double, Index>> gains;
    for (Index i = 0; i < all.partition_count; ++i)
      if (all.partition(i) != before.partition(i)) gains.push_back({gain_of(with_one(i)), -i});
    std::sort(gains.rbegin(), gains.rend());
    gains.resize(std::min(gains.size(), most_tried));
    for (const auto& [gain, i] : gains) take(with_one(-i));
    return now.policy != before;
  };
  for (const Index room : {from.bytes, most}) {
    limit = room;
    relax(with_fewer_maker_slabs);
    for (const bool again : {true, false}) relax([&](const Partition& p) { return with_forward_column(from.policy, p, again); });
  }
  for (int round = 0; round < most_rounds && relax(with_fewer_slabs); ++round) {
  }
  return found;
}
}   // namespace lrcnn::detail
