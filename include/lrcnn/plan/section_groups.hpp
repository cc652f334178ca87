#pragma once
// Ways to run a section as several whose inputs are made again: segments within a segment.
//
// Such a group (RecomputeInput) is one more way to run all of its layers: from outside it takes what a section takes that recomputes all. It is put
// together from ways to run its parts. What it takes is estimated from theirs; of the groups that are worth knowing so, the bytes are then found
// exactly, by leading the emitter through the group's stages.
#include <lrcnn/plan/section_choice.hpp>
#include <functional>
namespace lrcnn {
class SectionGroups {
 public:
  /// The ways to run layers [begin, end) with such memory; nullptr: no section is there, or it has no partition of its own.
  using ChoicesOf = std::function<const std::vector<SectionChoice>*(Index begin, Index end)>;
  /// `ends`: of each layer, whether a section may end behind it; `images`: how many the step has at once. Pre: the arguments outlive the object.
  SectionGroups(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const detail::TensorReaders& readers,
                Index images, StepMemory memory, const std::vector<char>& ends)
      : table_(table), policy_(policy), target_(target), options_(options), readers_(readers), images_(images), memory_(memory), ends_(ends) {
    policy_.gradients_in_place |= memory == StepMemory::in_place;
    for (Index g = 1; g < table.size(); ++g) largest_ = std::max(largest_, readers.bytes(g));
  }
  /// Goes on to the sections that begin with another layer.
  void start(Index begin) {
    begin_ = begin;
    groups_.assign(static_cast<std::size_t>(table_.size() + 1), {});
  }
  /// The groups of layers [begin, end) that are worth knowing beside `known`, the other ways to run them. Pre: it has been called for the ends
  /// below this one, since it puts longer groups together from shorter ones. `exactly`: their bytes are wanted.
  std::vector<SectionChoice> find(const SectionBorder& border, const std::vector<SectionChoice>& known, const ChoicesOf& choices_of, bool exactly) {
    std::vector<Group>& here = item(groups_, border.end());
    for (Index inner = begin_ + 1; inner < border.end(); ++inner) {
      if (!item(ends_, inner - 1) || readers_.bytes(inner) < largest_ / worth_dropping) continue;
      const std::vector<SectionChoice>* const upper = choices_of(inner, border.end());
      if (upper == nullptr) continue;
      std::vector<Group> lower = item(groups_, inner);
      if (const std::vector<SectionChoice>* const single = choices_of(begin_, inner))
        for (const SectionChoice& choice : *single)
          if (recomputes_all(choice)) lower.push_back(of_one(choice, inner));
      for (const Group& group : lower)
        for (const SectionChoice& choice : *upper)
          if (recomputes_all(choice) && group.parts.size() < most_parts) consider(extended(group, choice, border.end(), inner), known, here);
    }
    std::vector<SectionChoice> found;
    for (std::size_t i = 0; exactly && i < here.size(); ++i)
      if (auto choice = choice_of(border, here[i])) found.push_back(std::move(*choice));
    return found;
  }

 private:
  static constexpr std::size_t most_groups = 3, most_parts = 4;
  static constexpr Index worth_dropping = 16;   ///< a tensor has at least this part of the bytes of the largest one
  /// What a group takes, estimated.
  struct Group {
    std::vector<SectionPart> parts{};
    double seconds = 0;
    double again = 0;      ///< seconds of one more forward pass of its last part
    Index forward = 0;     ///< bytes at the peak of the forward pass
    Index backward = 0;    ///< and of the backward pass
    Index for_above = 0;   ///< and while its parts go forward once more, if a part above has its input made again
    Index made = 0;        ///< bytes of the inputs that are made again
  };
  const Table& table_;
  PolicySpec policy_;
  const Target& target_;
  const PlanOptions& options_;
  const detail::TensorReaders& readers_;
  const Index images_;
  const StepMemory memory_;
  const std::vector<char>& ends_;
  Index begin_ = 0;
  Index largest_ = 0;                          ///< bytes of the largest tensor
  std::vector<std::vector<Group>> groups_{};   ///< of the sections from the present layer on, by their ends

  bool recomputes_all(const SectionChoice& choice) const {
    return choice.parts().empty() && (choice.partition().passes || policy_.recompute_in(choice.partition()) == Recompute::all);
  }
  static Group of_one(const SectionChoice& choice, Index end) {
    const SectionPeaks& peaks = choice.peaks(0);
    return {{{end, choice.partition()}}, choice.seconds(), choice.forward_seconds(), peaks.forward, peaks.backward, peaks.forward, 0};
  }
  Group extended(const Group& group, const SectionChoice& choice, Index end, Index inner) const {
    const SectionPeaks& peaks = choice.peaks(0);
    Group longer = group;
    longer.parts.push_back({end, choice.partition()});
    longer.parts.back().partition.recompute_input = true;
    longer.seconds += choice.seconds() + group.again, longer.again = choice.forward_seconds();
    longer.forward = std::max(group.forward, peaks.forward);
    longer.backward = std::max({group.backward, peaks.backward + group.made, group.for_above + readers_.bytes(end)});
    longer.made += readers_.bytes(inner);
    longer.for_above = std::max(group.for_above, peaks.forward + group.made);
    return longer;
  }
  /// Adds a group to the best ones, unless one of them or of the other ways takes no more of anything.
  void consider(Group group, const std::vector<SectionChoice>& known, std::vector<Group>& best) const {
    for (const SectionChoice& choice : known)
      if (const SectionPeaks& peaks = choice.peaks(0); choice.seconds() <= group.seconds && peaks.backward <= group.backward &&
                                                       peaks.forward <= group.forward && choice.kept() <= readers_.bytes(begin_))
        return;
    const auto is_no_worse = [](const Group& a, const Group& b) {
      return a.seconds <= b.seconds && a.backward <= b.backward && a.forward <= b.forward;
    };
    for (const Group& other : best)
      if (is_no_worse(other, group)) return;
    std::erase_if(best, [&](const Group& other) { return is_no_worse(group, other); });
    best.push_back(std::move(group));
    if (best.size() <= most_groups) return;
    // Of neighbours by their bytes, the two that differ least in time become one: the faster stays if it takes hardly more bytes.
    std::sort(best.begin(), best.end(),
              [](const Group& a, const Group& b) { return a.backward != b.backward ? a.backward < b.backward : a.seconds < b.seconds; });
    std::size_t least = 1;
    const auto gap = [&](std::size_t i) {
      return std::abs(best[i].seconds - best[i - 1].seconds) / best[i].seconds +
             static_cast<double>(best[i].backward - best[i - 1].backward) / static_cast<double>(best[i].backward);
    };
    for (std::size_t i = 2; i < best.size(); ++i)
      if (gap(i) < gap(least)) least = i;
    best.erase(best.begin() + static_cast<Index>(least));
  }
  /// A group as a way to run the section. Nothing if it cannot be run so.
  std::optional<SectionChoice> choice_of(const SectionBorder& border, const Group& group) const {
    const std::vector<Stage> stages = make_group_stages(table_, begin_, group.parts, policy_, target_, images_, options_);
    if (stages.empty()) return {};
    const std::vector<StageNeeds> needs = needs_of(table_, policy_, options_, stages);
    const SectionProfile profile = profile_section(table_, policy_, target_, options_, stages, needs);
    std::vector<TensorPlace> places;
    if (memory_ == StepMemory::in_place)
      places = tensor_places(table_, stages, needs, std::count_if(stages.begin(), stages.end(), [](const Stage& s) { return s.passes == 0; }));
    SectionChoice choice(border, group.parts, profile, places);
    choice.set_seconds(group.seconds, group.again);
    choice.find_peaks();
    return choice;
  }
};
}   // namespace lrcnn
