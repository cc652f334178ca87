#pragma once
// Ways to run a section as several whose inputs are made again: segments within a segment.
//
// Such a group is one more way to run all of its layers: from outside it takes what a section takes that recomputes all. Its inputs are made again
// all at once (RecomputeInput), or each alone (RecomputeInputAlone), for fewer bytes and more forward passes. It is put together from ways to run its
// parts. What it takes is estimated from theirs; of the groups that are worth knowing so, the bytes are then found exactly, by leading the
// emitter through the group's stages.
#include <lrcnn/plan/section_choice.hpp>
#include <cmath>
#include <functional>
namespace lrcnn {
class SectionGroups {
 public:
  /// The ways to run layers [begin, end) with such memory; nullptr: no section is there, or it has no partition of its own.
  using ChoicesOf = std::function<const std::vector<SectionChoice>*(Index begin, Index end)>;
  /// For sections that begin with layer `begin`. `across`: of each layer, tensors from below that are read from there on; `ends`: whether a section
  /// may end behind it; `images`: how many the step has at once. Pre: the arguments outlive the object.
  SectionGroups(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const detail::TensorReaders& readers,
                const std::vector<std::vector<Index>>& across, Index images, StepMemory memory, const std::vector<char>& ends, Index begin)
      : table_(table),
        policy_(policy),
        target_(target),
        options_(options),
        readers_(readers),
        across_(across),
        images_(images),
        memory_(memory),
        ends_(ends),
        most_found_(table.size() > many_layers   ? 2
                    : table.size() > some_layers ? 4
                                                 : 8),
        begin_(begin),
        groups_(static_cast<std::size_t>(table.size() + 1)) {
    policy_.gradients_in_place |= memory == StepMemory::in_place;
    for (Index g = 1; g < table.size(); ++g) largest_ = std::max(largest_, readers.bytes(g));
  }
  /// The groups of layers [begin, end) that are worth knowing beside `known`, the other ways to run them. Pre: it has been called for the ends
  /// below this one, since it puts longer groups together from shorter ones. `exactly`: their bytes are wanted.
  std::vector<SectionChoice> find(const SectionBorder& border, const std::vector<SectionChoice>& known, const ChoicesOf& choices_of, bool exactly) {
    std::array<std::vector<Group>, 2>& here = item(groups_, border.end());
    const std::vector<const SectionChoice*> single = that_recompute_all(known);
    for (Index inner = begin_ + 1; inner < border.end(); ++inner) {
      if (!item(ends_, inner - 1)) continue;
      const Index made = bytes_made(inner, border.end());
      const std::vector<SectionChoice>* const upper = choices_of(inner, border.end());
      if (made < largest_ / worth_dropping || upper == nullptr) continue;
      const std::vector<const SectionChoice*> choices = that_recompute_all(*upper);
      for (const bool alone : {false, true}) {
        const auto extend = [&](const Group& lower) {
          for (const SectionChoice* choice : choices)
            if (lower.parts.size() < most_parts) consider(lower, *choice, alone, made, border.end(), single, here[alone]);
        };
        for (const Group& group : item(groups_, inner)[alone]) extend(group);
        if (const std::vector<SectionChoice>* const lower = choices_of(begin_, inner))
          for (const SectionChoice* choice : that_recompute_all(*lower)) extend(of_one(*choice, inner));
      }
    }
    std::vector<SectionChoice> found;
    if (!exactly) return found;
    for (const bool alone : {false, true}) {
      std::vector<Group> groups = here[alone];
      while (groups.size() > (alone ? 2 * most_found_ : most_found_)) thin(groups);
      for (const Group& group : groups)
        if (auto choice = choice_of(border, group)) found.push_back(std::move(*choice));
    }
    return found;
  }

 private:
  static constexpr Index some_layers = 100, many_layers = 400;
  static constexpr std::size_t most_parts = 6, most_kept = 32;   ///< sections of a group; groups of each kind that longer ones are made of
  static constexpr Index worth_dropping = 16;                    ///< what is not kept has at least this part of the bytes of the largest tensor
  /// What a group takes, estimated.
  struct Takes {
    double seconds = 0;
    double again = 0;      ///< seconds of one more forward pass: of its last part, or of all if inputs are made again alone
    Index forward = 0;     ///< bytes at the peak of the forward pass
    Index backward = 0;    ///< and of the backward pass
    Index for_above = 0;   ///< and while its parts go forward once more, if a part above has its input made again
    Index made = 0;        ///< bytes of the inputs that are made again
    Index peak() const { return std::max(forward, backward); }
    bool no_more_than(const Takes& other) const { return seconds <= other.seconds && backward <= other.backward && forward <= other.forward; }
  };
  struct Group {
    std::vector<SectionPart> parts{};
    Takes takes{};
  };
  const Table& table_;
  PolicySpec policy_;
  const Target& target_;
  const PlanOptions& options_;
  const detail::TensorReaders& readers_;
  const std::vector<std::vector<Index>>& across_;
  const Index images_;
  const StepMemory memory_;
  const std::vector<char>& ends_;
  /// Whose bytes are found exactly; twice as many whose inputs are made again alone. Fewer in networks of many layers, where the emitter takes long.
  const std::size_t most_found_;
  const Index begin_;
  Index largest_ = 0;                                       ///< bytes of the largest tensor
  std::vector<std::array<std::vector<Group>, 2>> groups_;   ///< of these sections, by their ends: inputs made again at once, and each alone

  /// Ways that keep nothing of their own for the backward pass. What they take depends on little else than slabs.
  std::vector<const SectionChoice*> that_recompute_all(const std::vector<SectionChoice>& choices) const {
    std::vector<const SectionChoice*> list;
    for (const SectionChoice& choice : choices)
      if (choice.parts().empty() && !choice.offloads() &&
          (choice.partition().passes == NormPasses::all || policy_.recompute_in(choice.partition()) == Recompute::all))
        list.push_back(&choice);
    return list;
  }
  /// Bytes that need not be kept if the input of a part from layer `inner` on is made again: tensors of the group that are read below `end` alone.
  Index bytes_made(Index inner, Index end) const {
    Index bytes = 0;
    for (const Index g : item(across_, inner))
      if (g > begin_ && !readers_.read_from(g, end)) bytes += readers_.bytes(g);
    return bytes;
  }
  static Takes taken_by(const SectionChoice& choice) {
    const SectionPeaks& peaks = choice.peaks(0);
    return {choice.seconds(), choice.forward_seconds(), peaks.forward, peaks.backward, peaks.forward, 0};
  }
  static Group of_one(const SectionChoice& choice, Index end) { return {{{end, choice.partition()}}, taken_by(choice)}; }
  /// Adds the group of `lower` and one more part to the best ones, unless one of them, or of the ways to run the layers as one section, takes no
  /// more of anything. `made`: bytes of the part's input, which is made again, `alone` or with those of others.
  void consider(const Group& lower, const SectionChoice& choice, bool alone, Index made, Index end, const std::vector<const SectionChoice*>& single,
                std::vector<Group>& best) const {
    const Takes &below = lower.takes, part = taken_by(choice);
    Takes takes{.seconds = below.seconds + part.seconds + below.again,
                .again = part.again,
                .forward = std::max(below.forward, part.forward),
                .backward = std::max({below.backward, part.backward + below.made, below.for_above + readers_.bytes(end)}),
                .for_above = std::max(below.for_above, part.forward + below.made),
                .made = below.made + made};
    if (alone) {
      const bool takes_place = memory_ == StepMemory::in_place && choice.reads_places();
      const Index backward = takes_place ? choice.peaks(0, true).backward : part.backward;
      takes.again = below.again + part.again;
      takes.backward = std::max({below.backward, backward, made + readers_.bytes(end)});   // and slabs of the pass that makes the input
      takes.for_above = takes.made = 0;
    }
    for (const SectionChoice* other : single)
      if (taken_by(*other).no_more_than(takes)) return;
    for (const Group& other : best)
      if (other.takes.no_more_than(takes)) return;
    std::erase_if(best, [&](const Group& other) { return takes.no_more_than(other.takes); });
    Group group{lower.parts, takes};
    group.parts.push_back({end, choice.partition()});
    group.parts.back().partition.input = alone ? SectionInput::recompute_alone : SectionInput::recompute;
    best.push_back(std::move(group));
    if (best.size() > most_kept) thin(best);
  }
  /// Takes away the group whose loss costs least: for numbers of bytes from its own up to the next group's there is the slower one below it then, or,
  /// below the least, none, which counts as eight times as slow. One that is slower than that one is the first to go, though one of its passes
  /// may take fewer bytes.
  static void thin(std::vector<Group>& best) {
    std::sort(best.begin(), best.end(), [](const Group& a, const Group& b) {
      return a.takes.peak() != b.takes.peak() ? a.takes.peak() < b.takes.peak() : a.takes.seconds < b.takes.seconds;
    });
    const auto bytes = [&](std::size_t i) { return static_cast<double>(best[i].takes.peak()); };
    const auto cost = [&](std::size_t i) {
      const double slower = i == 0 ? 8 : best[i - 1].takes.seconds / best[i].takes.seconds, up_to = i + 1 < best.size() ? bytes(i + 1) : 2 * bytes(i);
      return (slower - 1) * std::log2(up_to / bytes(i));
    };
    std::size_t least = 0;
    for (std::size_t i = 1; i < best.size(); ++i)
      if (cost(i) < cost(least)) least = i;
    best.erase(best.begin() + static_cast<Index>(least));
  }
  /// How far gradients of tensors between the parts lie behind their values.
  std::vector<Index> lags_within(const SectionBorder& border, const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs) const {
    std::vector<Index> lags = gradient_lags(table_, stages, needs);
    for (Index g = 0; g < table_.tensors(); ++g)
      if (g <= border.begin() || g >= border.end() || border.read_above(g)) item(lags, g) = 0;
    return lags;
  }
  /// A group as a way to run the section. Nothing if it cannot be run so.
  std::optional<SectionChoice> choice_of(const SectionBorder& border, const Group& group) const {
    const std::vector<Stage> stages = make_group_stages(table_, begin_, group.parts, policy_, target_, images_, options_);
    if (stages.empty()) return {};
    const std::vector<StageNeeds> needs = needs_of(table_, policy_, options_, stages);
    const bool in_place = memory_ == StepMemory::in_place;
    const SectionProfile profile =
        profile_section(table_, policy_, target_, options_, stages, needs, in_place ? lags_within(border, stages, needs) : std::vector<Index>{});
    SectionChoice choice(border, group.parts, profile, slabs_at_once(stages, images_, policy_.streams),
                         in_place ? tensor_places(table_, stages, needs) : std::vector<TensorPlace>{});
    choice.set_seconds(group.takes.seconds, group.takes.again);
    choice.find_peaks();
    return choice;
  }
};
}   // namespace lrcnn
