#pragma once
// What one section of a plan takes, without the other sections: buffers with the times at which they live, and seconds.
//
// The sections of a step run one after another: upward in the forward pass, downward in the backward pass. A section's profile comes from the
// emitter, which is led through the stages of this section alone, and has times of its own. Buffers that other sections use, too, are the
// tensors between sections, their gradients, and what belongs to norms between them; a profile names these by a key. Put side by side,
// the profiles of all sections give exactly what the whole plan takes. With GradientsInPlace, tensors and gradients of several sections share
// memory, so profiles are exact only if they are made with the whole plan's lags.
#include <lrcnn/plan/costs.hpp>
namespace lrcnn {
/// Which buffer of a whole plan a section's buffer is.
struct SharedKey {
  SharedBuffer kind{};
  Index number = 0;
  friend constexpr auto operator<=>(const SharedKey&, const SharedKey&) = default;
};
/// A buffer of a section, in use at the section's times [first, last).
struct SectionBuffer {
  Index bytes = 0;
  Index first = 0;
  Index last = 0;
  std::vector<SharedKey> keys{};   ///< empty: no other section uses it. Several: it is a gradient first, and then a norm's, or another tensor's
  bool from_start = false;         ///< it lives from the start of the step
  bool to_end = false;             ///< or to its end: the caller reads it
  bool own_workspace = false;      ///< it is the scratch of this section alone
  constexpr bool is_used() const { return first < last; }
  constexpr bool is_shared_workspace() const { return !keys.empty() && keys[0].kind == SharedBuffer::workspace; }
};
/// What a section of a plan takes. Times count the steps of one turn of each loop.
struct SectionProfile {
  std::vector<SectionBuffer> buffers{};
  Index forward_end = 0;         ///< one past the times of the forward pass, with the loss: the time at which other sections run
  Index end = 0;                 ///< one past the times of the backward pass, which begin at forward_end + 1
  double forward_seconds = 0;    ///< of all slabs of all images, with the loss
  double again_seconds = 0;      ///< what the backward pass computes again
  double backward_seconds = 0;   ///< the rest of the backward pass
  Index steps = 0;               ///< likewise of all slabs
  bool sampled = false;          ///< seconds and steps are of some slabs, which stand for the others
  double seconds() const { return forward_seconds + again_seconds + backward_seconds; }
};
/// Of which of many slabs some stand for the others when seconds are added up.
enum class Samples : std::uint8_t {
  none,             ///< all are heard
  of_images,        ///< slabs of images are alike except the first and a smaller last; one stands for those between, and seconds stay exact
  of_rows_as_well   ///< of slabs of rows, too, which are not quite alike
};
namespace detail {
/// Sink that adds up what steps cost, and keeps none.
class AddUp final : public Sink {
 public:
  AddUp(StepCosts& costs, SectionProfile& profile, Samples samples) : Sink(true), costs_(costs), profile_(profile), samples_(samples) {}
  double slabs_of_rows(Index slab, const std::vector<Index>& cuts) const override {
    const auto slabs = static_cast<Index>(cuts.size());
    if (samples_ != Samples::of_rows_as_well || slabs <= 4 || slab < edge || slab >= slabs - edge) return 1;
    if (item(cuts, edge) == item(cuts, edge - 1)) return 1;   // the one that would stand for the others has no rows
    profile_.sampled = true;   // step() cannot tell: if the slabs that are left out have no rows, the weight of the one for them is 1
    if (slab > edge) return 0;
    return static_cast<double>(item(cuts, slabs - edge - 1) - item(cuts, edge - 1)) / static_cast<double>(item(cuts, edge) - item(cuts, edge - 1));
  }
  double slabs_of_images(Index slab, Index images, Index of_slab) const override {
    const Index whole = images / of_slab;   // the last may have fewer images
    return samples_ == Samples::none || slab == 0 || slab >= whole ? 1 : slab == 1 ? static_cast<double>(whole - 1) : 0;
  }
  Index declare(Role, Index, Index, Index bytes, Index copies = 1) override {
    bytes_.insert(bytes_.end(), static_cast<std::size_t>(copies), bytes);
    return static_cast<Index>(bytes_.size()) - copies;
  }
  void touch(Index) override {}
  void span(Index, Index) override {}
  void step(const Step& s) override {
    if (is_nothing(s)) return;
    const double seconds = costs_.seconds(s, s.workspace < 0 ? 0 : item(bytes_, s.workspace));
    (s.pass == Pass::forward     ? profile_.forward_seconds
     : s.pass == Pass::recompute ? profile_.again_seconds
                                 : profile_.backward_seconds) += weight * seconds;
    profile_.steps += static_cast<Index>(weight + 0.5);
    profile_.sampled = profile_.sampled || weight != 1;
  }

 private:
  StepCosts& costs_;
  SectionProfile& profile_;
  Samples samples_;
  static constexpr Index edge = 1;   ///< slabs at either end that stand for themselves
  std::vector<Index> bytes_{};       ///< of each buffer
};
}   // namespace detail
/// The buffers of a section, without seconds. `stages`: those of the section, cut, as make_stages() or make_section_stages() has them;
/// `needs`: theirs, of needs_of(); `lags`: how far gradients lie behind their values, of the whole plan, for GradientsInPlace.
inline SectionProfile profile_section(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                                      const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs, const std::vector<Index>& lags = {}) {
  Measure sink;
  SectionProfile profile;
  Emitter emitter(table, policy, target, options, stages, needs, sink);
  emitter.run_section(lags, [&] { profile.forward_end = sink.now++; });
  profile.end = sink.now;
  for (const Buffer& b : sink.buffers)   // what is offloaded takes none of the arena
    profile.buffers.push_back({b.role == Role::offloaded ? 0 : b.bytes, b.first, b.last, {}, false, false, b.role == Role::workspace});
  const bool in_groups = group_images(table, policy) < table.input.n;
  emitter.for_shared([&](SharedBuffer kind, Index number, Index first) {
    const Index copies = item(sink.buffers, first).copies;
    for (Index copy = 0; copy < copies; ++copy) {
      SectionBuffer& buffer = item(profile.buffers, first + copy);
      buffer.keys.push_back({kind, number + copy});   // only the workspace, which has the number 0, has copies
      buffer.own_workspace = false;
      const bool output = kind == SharedBuffer::value && number == table.size();
      const bool results = output ? emitter.keeps_output() : options.input_gradient && kind == SharedBuffer::gradient && number == 0;
      buffer.to_end = results;
      buffer.from_start = results && in_groups;
    }
  });
  std::erase_if(profile.buffers, [](const SectionBuffer& b) { return !b.is_used() && b.keys.empty(); });
  return profile;
}
inline SectionProfile profile_section(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                                      const std::vector<Stage>& stages, const std::vector<Index>& lags = {}) {
  return profile_section(table, policy, target, options, stages, needs_of(table, policy, options, stages), lags);
}
/// Adds seconds and the number of steps to a section's profile. Pre: the arguments are those that the profile was made with.
/// Cost:    grows with the number of slabs: some 0.2 us for each step. With samples not beyond 8 slabs of rows or of images, since those
///          in the middle are alike;
///          seconds are then a close estimate. `steps`: others are left out
inline void add_seconds(SectionProfile& profile, const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                        const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs, StepCosts& costs, Samples samples = Samples::none,
                        SectionSteps steps = SectionSteps::all) {
  detail::AddUp sink(costs, profile, samples);
  Emitter(table, policy, target, options, stages, needs, sink)
      .run_section(
          {}, [] {}, steps);
}
inline void add_seconds(SectionProfile& profile, const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                        const std::vector<Stage>& stages, StepCosts& costs, Samples samples = Samples::none) {
  add_seconds(profile, table, policy, target, options, stages, needs_of(table, policy, options, stages), costs, samples);
}
/// Whether the seconds of the slabs of a section's forward pass do not depend on those of its backward pass, nor the other way round: slabs keep
/// nothing for each other. `needs`: the stages', of needs_of().
inline bool are_passes_apart(const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs) {
  for (std::size_t s = 0; s < stages.size(); ++s)
    if (stages[s].partition.cut == Cut::share || stages[s].passes > 0 || needs[s].any_kept) return false;
  return true;
}
/// The stages of each section, from the network's input upward; those with extra passes behind the others of their section.
inline std::vector<std::vector<Stage>> by_single_section(const std::vector<Stage>& stages) {
  std::vector<std::vector<Stage>> sections;
  for (const Stage& stage : stages) {
    if (stage.section >= static_cast<Index>(sections.size())) sections.resize(static_cast<std::size_t>(stage.section + 1));
    item(sections, stage.section).push_back(stage);
  }
  return sections;
}
/// The same, where sections whose inputs are made again are one with the section below them.
inline std::vector<std::vector<Stage>> by_section(const std::vector<Stage>& stages) {
  std::vector<std::vector<Stage>> together;
  std::vector<std::size_t> place;   // of each section
  for (const Stage& stage : stages) {
    if (stage.section >= static_cast<Index>(place.size())) {
      if (!stage.recomputes_input) together.emplace_back();
      place.push_back(together.size() - 1);
    }
    together[item(place, stage.section)].push_back(stage);
  }
  return together;
}
/// How many rows each tensor's gradient lies behind its values in a plan.
inline std::vector<Index> lags_of(const Plan& plan) {
  Measure unheard;
  return Emitter(plan.table, plan.policy, plan.target, plan.options, plan.stages, unheard).plan_lags();
}
/// The profiles of a plan's sections, from the network's input upward.
inline std::vector<SectionProfile> profile_sections(const Plan& plan, const Costs& costs) {
  std::vector<SectionProfile> profiles;
  StepCosts of_steps(costs, plan.table, plan.target);
  const auto lags = lags_of(plan);
  for (const std::vector<Stage>& stages : by_section(plan.stages)) {
    profiles.push_back(profile_section(plan.table, plan.policy, plan.target, plan.options, stages, lags));
    add_seconds(profiles.back(), plan.table, plan.policy, plan.target, plan.options, stages, of_steps);
  }
  return profiles;
}
/// Seconds of one run of a policy's plan, without the plan: those of make_plan(...), with seconds_left_out().
inline double plan_seconds(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, StepCosts& costs) {
  SectionProfile sum;
  for (const std::vector<Stage>& stages : by_section(make_stages(table, policy, target, group_images(table, policy), options)))
    add_seconds(sum, table, policy, target, options, stages, costs);
  return sum.seconds();
}
/// The most bytes that are live at once in a plan whose sections have these profiles, from the network's input upward: a plan's
/// arena.lower_bound. Shared workspaces are as large as the section that wants most has them.
inline Index lower_bound(const std::vector<SectionProfile>& sections) {
  struct Life {
    Index bytes = 0, first = 0, last = 0;
  };
  std::vector<Life> lives;
  std::map<SharedKey, std::size_t> known;
  std::vector<Index> backward_at(sections.size(), 0);   // where in the whole step a section's backward pass begins
  Index end = 0;
  for (const SectionProfile& section : sections) end += section.forward_end;
  for (std::size_t s = sections.size(); s-- > 0;) {
    backward_at[s] = end;
    end += sections[s].end - sections[s].forward_end - 1;
  }
  ++end;   // the caller reads results
  Index forward_at = 0;
  std::vector<std::size_t> same;   // lives that turned out to be of the same buffer: the other's number
  const auto home = [&](std::size_t i) {
    while (same[i] != i) i = same[i];
    return i;
  };
  for (std::size_t s = 0; s < sections.size(); ++s) {
    const SectionProfile& section = sections[s];
    const auto when = [&](Index time) { return time <= section.forward_end ? forward_at + time : backward_at[s] + time - section.forward_end - 1; };
    for (const SectionBuffer& b : section.buffers) {
      Life here{b.bytes, end, 0};   // not used: a workspace, or a copy of it
      if (b.is_used()) here.first = b.from_start ? 0 : when(b.first), here.last = b.to_end ? end : when(b.last);
      std::size_t place = lives.size();
      lives.push_back(here);
      same.push_back(place);
      for (const SharedKey& key : b.keys) {
        const auto [found, is_new] = known.try_emplace(key, place);
        if (is_new) continue;
        const std::size_t other = home(found->second), mine = home(place);
        if (other == mine) continue;
        Life& into = lives[other];
        into = {std::max(into.bytes, lives[mine].bytes), std::min(into.first, lives[mine].first), std::max(into.last, lives[mine].last)};
        lives[mine] = {};
        same[mine] = other;
      }
    }
    forward_at += section.forward_end;
  }
  Life shared;   // all copies of the workspace live as long as one
  shared.first = end;
  const auto each_workspace = [&](const auto& f) {
    for (const auto& [key, place] : known)
      if (key.kind == SharedBuffer::workspace) f(lives[home(place)]);
  };
  each_workspace([&](const Life& life) { shared.first = std::min(shared.first, life.first), shared.last = std::max(shared.last, life.last); });
  each_workspace([&](Life& life) { life.first = shared.first, life.last = shared.last; });
  std::vector<Index> change(static_cast<std::size_t>(end + 1), 0);
  for (const Life& life : lives)
    if (life.first < life.last) item(change, life.first) += life.bytes, item(change, life.last) -= life.bytes;
  Index live = 0, most = 0;
  for (const Index bytes : change) most = std::max(most, live += bytes);
  return most;
}
}   // namespace lrcnn
