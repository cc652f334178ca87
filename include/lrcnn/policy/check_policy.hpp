#pragma once
// Refuses a policy whose members a program has set to numbers or enumerators that make no sense. The compiler checks policies that are types, and
// parse_policy() those that are texts.
#include <lrcnn/core/error.hpp>
#include <lrcnn/policy/spec.hpp>
#include <limits>
#include <string>
namespace lrcnn {
namespace detail {
/// Refuses a member of PolicySpec that is not from `least` to `most`.
constexpr void check_member(Index value, Index least, Index most, const char* member, const char* rule, const char* change) {
  if (value < least || value > most) throw PlanError(error_text(std::string(member) + " is " + std::to_string(value), rule, change));
}
/// Refuses a member whose enumerator is behind `last`.
template <class E>
constexpr void check_choice(E value, E last, const char* member, const char* rule) {
  check_member(static_cast<Index>(value), 0, static_cast<Index>(last), member, rule, "set it to one of them");
}
}   // namespace detail
/// Errors:  PlanError naming the member of PolicySpec, or of its Partition or Checkpoints, whose number or enumerator makes no sense
constexpr void check_policy(const PolicySpec& policy) {
  constexpr Index any = std::numeric_limits<Index>::max();
  constexpr auto check = detail::check_member;
  using detail::check_choice;
  check(policy.partition_count, 1, static_cast<Index>(PolicySpec::capacity), "PolicySpec::partition_count",
        "a policy has 1 to 64 partitions; the last one serves all further sections", "set it to the number of partitions that are given, or to 1");
  for (Index i = 0; i < policy.partition_count; ++i) {
    const Partition& p = policy.partition(i);
    check(p.forward, 1, any, "Partition::forward", "rows are cut into at least one slab", "set it to 1 or more");
    check(p.backward, 1, any, "Partition::backward", "rows are cut into at least one slab", "set it to 1 or more");
    check(p.maker_slabs, 0, any, "Partition::maker_slabs", "an input is made again in at least one slab, and 0 stands for as many as the section has",
          "set it to 0 or more");
    check(p.images, 0, any, "Partition::images", "a slab has at least one image, and 0 stands for all of them", "set it to 0 or more");
    check(p.workspace_bytes, std::numeric_limits<Index>::min(), most_workspace, "Partition::workspace_bytes", "a workspace has 1 PiB at most",
          "set it to the bytes that a step may use, or below 0 for what the policy says");
    check_choice(p.cut, Cut::share, "Partition::cut", "sections are cut as Column, Overlap or Share");
    check_choice(p.passes, NormPasses::all, "Partition::passes", "a section has one of the enumerators of NormPasses");
    check_choice(p.input, SectionInput::offload, "Partition::input", "a section has one of the enumerators of SectionInput");
    check_choice(p.recompute, Recompute::of_policy, "Partition::recompute", "a section has one of the enumerators of Recompute");
    check_choice(p.conv_algorithm, ConvAlgorithm::of_policy, "Partition::conv_algorithm", "a section has one of the enumerators of ConvAlgorithm");
  }
  check(policy.images, 0, any, "PolicySpec::images", "a group has at least one image, and 0 stands for all of them", "set it to 0 or more");
  if (const auto rule = policy.checkpoints.rule; rule == Checkpoints::Rule::every || rule == Checkpoints::Rule::sums)
    check(policy.checkpoints.every, 1, any, "Checkpoints::every", "from one checkpoint to the next there is at least one layer, or one sum",
          "set it to 1 or more, or leave the rule at none");
  check_choice(policy.checkpoints.rule, Checkpoints::Rule::sums, "Checkpoints::rule", "it is one of the enumerators of Rule");
  check_choice(policy.recompute, Recompute::light, "PolicySpec::recompute",
               "it is none, all, cheap or light; of_policy is for a partition, which asks the policy");
  check_choice(policy.conv_algorithm, ConvAlgorithm::fastest, "PolicySpec::conv_algorithm",
               "it is direct, winograd or fastest; of_policy is for a partition, which asks the policy");
  check_choice(policy.precision, Precision::bf16, "PolicySpec::precision", "it is one of the enumerators of Precision");
  check(policy.workspace_bytes, -1, most_workspace, "PolicySpec::workspace_bytes", "a workspace has 0 bytes to 1 PiB, and -1 is for the backend's",
        "set it to the bytes that a step may use");
  check(policy.streams, 1, most_streams, "PolicySpec::streams", "a step has 1 to 8 streams; each takes a slab's memory",
        "set it to 1, its default, or up to 8");
  check(policy.fit_bytes, 0, any, "PolicySpec::fit_bytes", "a plan takes more than 0 bytes, and 0 stands for a policy that is not chosen",
        "set it to 0 or more");
}
}   // namespace lrcnn
