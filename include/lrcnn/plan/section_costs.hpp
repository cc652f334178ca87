#pragma once
// Seconds and steps of policies that have many sections in common: what a section takes is found once.
#include <lrcnn/plan/profile.hpp>
#include <mutex>
namespace lrcnn {
/// Costs of policies for one table that name the same parts and differ in their sections. Threads may share one.
class SectionCosts {
 public:
  /// Pre: the arguments outlive the object.
  SectionCosts(const Table& table, const Target& target, const PlanOptions& options, const Costs& costs)
      : table_(table), target_(target), options_(options), costs_(costs) {}
  /// Seconds and steps of a policy's plan, without buffers: exact but for sections of very many steps, of which some slabs stand for the others.
  SectionProfile of(const PolicySpec& policy) {
    const Index images = group_images(table_, policy);
    std::vector<Stage> stages = split_stages(table_, policy, options_.training);
    std::vector<char> made;
    if (options_.training) detail::mark_recomputed_inputs(table_, policy, stages, made);
    std::vector<std::vector<Stage>> sections = by_single_section(stages);
    // With one partition, counts are carried out as far as rows allow; a section may have two if it begins behind means.
    const bool whole = policy.partition_count == 1 || !std::all_of(sections.begin(), sections.end(), has_one_partition);
    if (whole) sections = by_single_section(make_stages(table_, policy, target_, images, options_));
    SectionProfile sum;
    for (const std::vector<Stage>& section : sections) {
      const SectionProfile cost = of_section(policy, section, images, !whole);
      sum.forward_seconds += cost.forward_seconds, sum.again_seconds += cost.again_seconds, sum.backward_seconds += cost.backward_seconds;
      sum.steps += cost.steps;
      sum.sampled = sum.sampled || cost.sampled;
    }
    return sum;
  }

 private:
  /// First and last layer, the partition, what the policy says of images, workspace and gradients, and whether the section supplies those above.
  using Key = std::array<Index, 15>;
  static constexpr Index most_counted = 100'000;   ///< steps of a section
  const Table& table_;
  const Target& target_;
  const PlanOptions& options_;
  const Costs& costs_;
  std::mutex mutex_;
  std::map<Key, SectionProfile> known_{};
  static bool has_one_partition(const std::vector<Stage>& section) {
    return std::all_of(section.begin(), section.end(),
                       [&](const Stage& stage) { return stage.partition_number == section.front().partition_number; });
  }
  /// `uncut`: the stages are not cut yet.
  SectionProfile of_section(const PolicySpec& policy, const std::vector<Stage>& stages, Index images, bool uncut) {
    const Partition& p = policy.partition(stages.front().partition_number);
    const Key key{stages.front().first,
                  stages.back().last,
                  static_cast<Index>(p.cut),
                  p.forward,
                  p.backward,
                  p.images,
                  p.passes,
                  p.forward_passes,
                  static_cast<Index>(policy.recompute_in(p)),
                  static_cast<Index>(policy.conv_algorithm_in(p)),
                  p.workspace_bytes,
                  policy.workspace_bytes,
                  policy.images,
                  policy.gradients_in_place,
                  stages.front().supplies};
    const bool one = has_one_partition(stages);   // else the key does not say all
    if (one) {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(key); known != known_.end()) return known->second;
    }
    std::vector<Stage> cut;
    if (uncut) {
      PolicySpec rest = policy;
      rest.checkpoints = {};
      cut = make_section_stages(table_, split_section(table_, stages.front().first, stages.back().last, options_.training), rest, p, target_, images,
                                options_);
      for (Stage& stage : cut) stage.supplies = stages.front().supplies;
    }
    StepCosts of_steps(costs_, table_, target_);
    SectionProfile cost;
    add_seconds(cost, table_, policy, target_, options_, uncut ? cut : stages, of_steps, Samples::of_rows_as_well);
    if (cost.sampled && cost.steps < most_counted) {
      cost = {};
      add_seconds(cost, table_, policy, target_, options_, uncut ? cut : stages, of_steps);
    }
    if (!one) return cost;
    const std::lock_guard lock(mutex_);
    return known_.try_emplace(key, cost).first->second;
  }
};
}   // namespace lrcnn
