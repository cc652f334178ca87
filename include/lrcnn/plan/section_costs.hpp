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
    for (Index i = 0; i < policy.partition_count; ++i)   // what a section offloads, or fetches, depends on all others, and no key says it
      if (policy.partition(i).input == SectionInput::offload) return of_offloading(policy, images);
    std::vector<Stage> stages = split_stages(table_, policy, options_.training);
    std::vector<char> made;
    std::vector<Stage> makers;
    if (options_.training) makers = detail::find_lone_inputs(table_, policy, stages).makers;
    if (options_.training) detail::mark_recomputed_inputs(table_, policy, stages, made);
    std::vector<std::vector<Stage>> sections = by_single_section(stages);
    // With one partition, counts are carried out as far as rows allow; a section may have two if it begins behind means.
    const bool whole = policy.partition_count == 1 || !std::all_of(sections.begin(), sections.end(), has_one_partition);
    if (whole) sections = by_single_section(make_stages(table_, policy, target_, images, options_));
    SectionProfile sum;
    for (std::vector<Stage>& section : sections) {
      std::erase_if(section, [](const Stage& stage) { return stage.makes_input; });   // they have costs of their own
      add(sum, of_section(policy, section, images, !whole));
    }
    for (const Stage& maker : makers) {
      Index end = maker.last;   // of the section that it is for, which says what it leaves
      for (const Stage& stage : stages)
        if (stage.section == maker.section) end = std::max(end, stage.last);
      add(sum, of_maker(policy, maker, end, images));
    }
    return sum;
  }

 private:
  /// First and last layer, the partition, what the policy says of images, workspace and gradients, and whether the section supplies those above.
  using Key = std::array<Index, 16>;
  static constexpr Index most_counted = 100'000;   ///< steps of a section
  const Table& table_;
  const Target& target_;
  const PlanOptions& options_;
  const Costs& costs_;
  std::mutex mutex_;
  std::map<Key, SectionProfile> known_{};
  /// Stages of a section, or of several whose inputs are made again, cut, and with sections and partitions counted from the first one.
  struct KnownStages {
    PolicySpec policy{};   ///< without partitions and checkpoints
    std::vector<Stage> stages{};
    SectionProfile profile{};
  };
  std::map<Index, std::vector<KnownStages>> known_stages_{};   ///< by their first layers
  static void add(SectionProfile& sum, const SectionProfile& cost) {
    sum.forward_seconds += cost.forward_seconds, sum.again_seconds += cost.again_seconds, sum.backward_seconds += cost.backward_seconds;
    sum.steps += cost.steps;
    sum.sampled = sum.sampled || cost.sampled;
  }
  static bool has_one_partition(const std::vector<Stage>& section) {
    return std::all_of(section.begin(), section.end(),
                       [&](const Stage& stage) { return stage.partition_number == section.front().partition_number; });
  }
  SectionProfile of_offloading(const PolicySpec& policy, Index images) {
    PolicySpec rest = policy;   // what steps depend on beside the stages
    rest.partitions = {}, rest.partition_count = 1, rest.checkpoints = {};
    SectionProfile sum;
    for (std::vector<Stage>& stages : by_section(make_stages(table_, policy, target_, images, options_))) {
      const Index section = stages.front().section, partition_number = stages.front().partition_number;
      for (Stage& stage : stages) stage.section -= section, stage.partition_number -= partition_number;
      add(sum, of_stages(rest, std::move(stages)));
    }
    return sum;
  }
  /// Of stages as KnownStages has them.
  SectionProfile of_stages(const PolicySpec& rest, std::vector<Stage> stages) {
    const Index first = stages.front().first;
    {
      const std::lock_guard lock(mutex_);
      for (const KnownStages& known : known_stages_[first])
        if (known.stages == stages && known.policy == rest) return known.profile;
    }
    const SectionProfile profile = counted([&](SectionProfile& cost, StepCosts& of_steps, Samples samples) {
      add_seconds(cost, table_, rest, target_, options_, stages, of_steps, samples);
    });
    const std::lock_guard lock(mutex_);
    known_stages_[first].push_back({rest, std::move(stages), profile});
    return profile;
  }
  /// Of a stage that makes an input again, not cut yet, for the section that ends before layer `end`.
  SectionProfile of_maker(const PolicySpec& policy, Stage maker, Index end, Index images) {
    detail::cut_maker(table_, policy, target_, images, maker);
    const Partition& p = maker.partition;
    const Key key{maker.first,
                  maker.last,
                  static_cast<Index>(p.cut),
                  p.forward,
                  -1,   // no section's
                  p.images,
                  end,
                  0,
                  0,
                  static_cast<Index>(policy.conv_algorithm_in(p)),
                  p.workspace_bytes,
                  policy.workspace_bytes,
                  policy.images,
                  policy.gradients_in_place,
                  0,
                  0};
    return remembered(key, [&] {
      const std::vector<Stage> stages(1, maker);
      return counted([&](SectionProfile& cost, StepCosts& of_steps, Samples samples) {
        detail::AddUp sink(of_steps, cost, samples);
        Emitter(table_, policy, target_, options_, stages, sink).run_makers();
      });
    });
  }
  /// What is known under a key, or else what find() finds.
  template <class Find>
  SectionProfile remembered(const Key& key, const Find& find) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(key); known != known_.end()) return known->second;
    }
    const SectionProfile cost = find();
    const std::lock_guard lock(mutex_);
    return known_.try_emplace(key, cost).first->second;
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
                  static_cast<Index>(p.passes),
                  p.forward_passes,
                  static_cast<Index>(policy.recompute_in(p)),
                  static_cast<Index>(policy.conv_algorithm_in(p)),
                  p.workspace_bytes,
                  policy.workspace_bytes,
                  policy.images,
                  policy.gradients_in_place,
                  stages.front().supplies,
                  p.again_as_backward};
    const auto find = [&] { return timed_section(policy, p, stages, images, uncut); };
    return has_one_partition(stages) ? remembered(key, find) : find();   // else the key does not say all
  }
  SectionProfile timed_section(const PolicySpec& policy, const Partition& p, const std::vector<Stage>& stages, Index images, bool uncut) {
    std::vector<Stage> cut;
    if (uncut) {
      PolicySpec rest = policy;
      rest.checkpoints = {};
      cut = make_section_stages(table_, split_section(table_, stages.front().first, stages.back().last, options_.training), rest, p, target_, images,
                                options_);
      for (Stage& stage : cut) stage.supplies = stages.front().supplies;
    }
    return counted([&](SectionProfile& cost, StepCosts& of_steps, Samples samples) {
      add_seconds(cost, table_, policy, target_, options_, uncut ? cut : stages, of_steps, samples);
    });
  }
  /// Adds up what add(profile, costs, samples) finds: of all slabs, unless they have very many steps.
  template <class Add>
  SectionProfile counted(const Add& add) const {
    StepCosts of_steps(costs_, table_, target_);
    SectionProfile cost;
    add(cost, of_steps, Samples::of_rows_as_well);
    if (!cost.sampled || cost.steps >= most_counted) return cost;
    cost = {};
    add(cost, of_steps, Samples::none);
    return cost;
  }
};
}   // namespace lrcnn
