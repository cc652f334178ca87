#pragma once
// Seconds of ways to run one section, each part of which is timed once.
#include <lrcnn/plan/profile.hpp>
#include <array>
#include <map>
namespace lrcnn {
/// Seconds of a section's steps, and of those of its forward pass among them.
struct SecondsOfSection {
  double all = 0, forward = 0;
};
class SectionSeconds {
 public:
  /// Pre: the arguments outlive the object.
  SectionSeconds(const Table& table, const Target& target, const PlanOptions& options, const Costs& costs, Samples samples)
      : table_(table), target_(target), options_(options), costs_(costs, table, target), samples_(samples) {}
  /// Before another section.
  void forget() { known_.clear(); }
  /// Seconds of the section's steps, run by partition `p`. `stages`: as make_section_stages() has them; `needs`: theirs.
  SecondsOfSection of(const PolicySpec& policy, const Partition& p, const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs) {
    const auto some = [&](SectionSteps steps) { return seconds_of(policy, p, stages, needs, steps); };
    if (!are_passes_apart(stages, needs)) return some(SectionSteps::all);
    const SecondsOfSection forward = some(SectionSteps::of_forward_slabs), backward = some(SectionSteps::of_backward_slabs);
    return {forward.all + backward.all, forward.forward + backward.forward};
  }

 private:
  using SecondsKey = std::array<Index, 10>;
  const Table& table_;
  const Target& target_;
  const PlanOptions& options_;
  StepCosts costs_;
  const Samples samples_;
  std::map<SecondsKey, SecondsOfSection> known_{};
  /// Whether these steps are others where gradients take their values' places: the backward pass makes more again, and convolutions that read rows
  /// where they lie otherwise read copies.
  bool in_place_counts(const PolicySpec& policy, SectionSteps steps) const {
    return policy.gradients_in_place && (steps != SectionSteps::of_forward_slabs || target_.convolves_rows);
  }
  /// Seconds of these steps, each timed once. With samples of rows a count between two powers of two, as 12, is not timed for a section that norms
  /// part: each further slab takes about as long as the one before, so it lies on the line through the two powers before, 4 and 8.
  SecondsOfSection seconds_of(const PolicySpec& policy, const Partition& p, const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs,
                              SectionSteps steps) {
    const bool all = steps == SectionSteps::all;
    const Index slabs = steps == SectionSteps::of_forward_slabs ? p.forward : p.backward;
    const Index beside = !all ? 0 : p.forward == p.backward ? 1 : p.forward > 1 ? 2 : 3;   // how the forward pass is cut, where that counts
    const auto key = [&](Index count) {
      return SecondsKey{static_cast<Index>(steps),
                        beside,
                        p.images,
                        static_cast<Index>(p.recompute),
                        p.workspace_bytes,
                        2 * (p.cut == Cut::share) + p.again_as_backward,
                        2 * static_cast<Index>(p.passes) + p.forward_passes,
                        in_place_counts(policy, steps),
                        static_cast<Index>(p.input),
                        count};
    };
    if (const auto known = known_.find(key(slabs)); known != known_.end()) return known->second;
    if (p.passes != NormPasses::none && slabs > 3 && slabs % 3 == 0 && samples_ == Samples::of_rows_as_well) {
      const auto third = known_.find(key(slabs / 3)), two_thirds = known_.find(key(slabs / 3 * 2));
      if (third != known_.end() && two_thirds != known_.end()) {
        const SecondsOfSection &a = third->second, &b = two_thirds->second;
        return known_[key(slabs)] = {b.all + (b.all - a.all), b.forward + (b.forward - a.forward)};
      }
    }
    SectionProfile profile;
    add_seconds(profile, table_, policy, target_, options_, stages, needs, costs_, samples_, steps);
    return known_[key(slabs)] = {profile.seconds(), profile.forward_seconds};
  }
};
}   // namespace lrcnn
