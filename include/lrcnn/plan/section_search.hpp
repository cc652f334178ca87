#pragma once
// The fastest way to run a network's step within a number of bytes, section by section.
//
// A network is divided into sections at layers whose outputs may be kept, and each section has many ways to be run (plan/section_choice.hpp).
// The search goes upward from the network's input. For every place where a section may end it keeps the best ways to get there: a way is
// better than another if it takes less time and leaves fewer bytes waiting for the backward pass. A section is added only if its two peaks,
// with all that waits below it and all that passes by, fit into the bytes. Bytes are exact but for buffers at the very start and end of a step,
// where a little more is counted; what the plan's placement adds is not: plan/frontier.hpp verifies each solution.
#include <lrcnn/plan/section_catalog.hpp>
#include <bit>
#include <limits>
namespace lrcnn {
/// A policy that a search found.
struct SolvedPolicy {
  PolicySpec policy{};
  Index bytes = 0;      ///< at the plan's peak
  double seconds = 0;   ///< of a step
  Index steps = 0;      ///< of its plan
  friend bool operator==(const SolvedPolicy&, const SolvedPolicy&) = default;
};
class SectionSearch {
 private:
  static constexpr double unbounded = std::numeric_limits<double>::infinity();

 public:
  /// Arguments as for SectionCatalog.
  SectionSearch(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs,
                std::uint32_t names = 0, int threads = 1, std::vector<StepMemory> memories = {StepMemory::shared_workspace})
      : table_(table),
        policy_(of_search(policy, names)),
        target_(target),
        options_(options),
        catalog_(table, policy_, target, options, costs, names, threads, std::move(memories)),
        images_(catalog_.images()) {
    const double least = least_ranks(catalog_.memories().front(), std::numeric_limits<Index>::max())[0];
    if (least < unbounded) section_rank_ = least / 10'000;
  }
  const SectionCatalog& catalog() const { return catalog_; }
  /// The fastest policies with such memory whose live bytes are at most `bytes`, a shared workspace of `workspace_bytes` among them, at most
  /// `count` of them, by rising seconds; none if there is none. Their `bytes` and `steps` are not filled in.
  /// `most_seconds`: those that take clearly longer are left out.
  std::vector<SolvedPolicy> fastest(StepMemory memory, Index bytes, Index workspace_bytes, std::size_t count = 1,
                                    double most_seconds = unbounded) const {
    Labels labels;
    const Index room = bytes - constant_bytes(workspace_bytes);
    const std::vector<double> rest = least_ranks(memory, room);
    const auto solve = [&](std::size_t beam, double bound) {
      labels = find_labels(memory, room, rest, beam, bound);
      auto& complete = labels.back();
      const auto end = complete.begin() + static_cast<Index>(std::min(count, complete.size()));
      std::partial_sort(complete.begin(), end, complete.end(), [](const Label& x, const Label& y) { return x.rank < y.rank; });
      complete.erase(end, complete.end());
    };
    const double bound = 1.01 * most_seconds;   // a rank is a little more than the seconds
    solve(narrow, bound);
    solve(all, labels.back().size() < count ? bound : labels.back().back().rank);
    std::vector<SolvedPolicy> solved;
    for (const Label& label : labels.back()) solved.push_back({policy_of(memory, labels, label, workspace_bytes), 0, label.seconds, 0});
    return solved;
  }
  /// Whether sections share a workspace where a step's memory is like this.
  bool shares_workspace(StepMemory memory) const { return memory == StepMemory::shared_workspace || !catalog_.looks_at(StepMemory::own_workspaces); }

 private:
  /// A way to run all sections below a layer. There are very many of them.
  struct Label {
    double seconds = 0;
    double rank = 0;                                        ///< seconds, and a little for each section
    Index kept = 0;                                         ///< bytes that wait for the backward passes of these sections
    std::uint64_t tensors = 0;                              ///< those of SectionCatalog::across() that are among them
    std::uint64_t offered = 0;                              ///< those of SectionCatalog::across() whose places their gradients may have
    const Partition* partition = nullptr;                   ///< the last one that a section has of its own
    std::int32_t sections = 0, partitions = 0, names = 0;   ///< sections; those of them with a partition, and those that end at a checkpoint
    std::int32_t before = 0, section = 0, choice = 0;       ///< the label where its last section begins; that section and its choice
  };
  using Labels = std::vector<std::vector<Label>>;                                            ///< of each layer
  static constexpr std::size_t narrow = 24, all = std::numeric_limits<std::size_t>::max();   ///< labels at a layer that are followed
  const Table& table_;
  const PolicySpec policy_;
  const Target& target_;
  const PlanOptions& options_;
  const SectionCatalog catalog_;
  const Index images_;
  double section_rank_ = 0;   ///< of two ways that take equally long, the one of fewer sections is chosen

  /// Without what is to be chosen; seconds are with a workspace that is large enough for all.
  static PolicySpec of_search(PolicySpec policy, std::uint32_t names) {
    if (!PolicySpec::is_among(names, PolicySpec::Part::checkpoints)) policy.checkpoints = {};
    if (!PolicySpec::is_among(names, PolicySpec::Part::workspace)) policy.workspace_bytes = std::max<Index>(policy.workspace_bytes, 64_MiB);
    return policy;
  }
  /// The ways to run the sections below each layer within so many bytes. `beam`: at most so many are followed at a layer, spread from the fastest
  /// to those that leave fewest bytes waiting; `bound`: without those that no way to go on, which adds at least `rest`, brings to at most this rank.
  Labels find_labels(StepMemory memory, Index room, const std::vector<double>& rest, std::size_t beam, double bound) const {
    Labels labels(static_cast<std::size_t>(table_.size() + 1));
    labels[0].push_back({});
    for (Index at = 0; at < table_.size(); ++at) {
      auto& here = item(labels, at);
      keep_best(here, at, room);
      if (here.size() > beam) {
        for (std::size_t i = 0; i < beam; ++i) here[i] = here[i * (here.size() - 1) / (beam - 1)];
        here.resize(beam);
      }
      for (std::size_t l = 0; l < here.size(); ++l)
        for (const std::size_t s : catalog_.from(at)) extend(memory, labels, at, l, s, room, bound - item(rest, catalog_.sections()[s].border.end()));
    }
    return labels;
  }
  /// The least rank that the sections from each layer on add if each has so many bytes for itself.
  std::vector<double> least_ranks(StepMemory memory, Index room) const {
    std::vector<double> rest(static_cast<std::size_t>(table_.size() + 1), unbounded);
    rest.back() = 0;
    for (Index at = table_.size() - 1; at >= 0; --at)
      for (const std::size_t s : catalog_.from(at)) {
        const SectionOfSearch& section = catalog_.sections()[s];
        const double above = item(rest, section.border.end());
        for (const SectionChoice& choice : section.choices.of(memory)) {
          const SectionPeaks& peaks = choice.peaks(~std::uint64_t{0}, true);
          if (std::max(peaks.forward, peaks.backward) > room) continue;
          item(rest, at) = std::min(item(rest, at), choice.seconds() + section_rank_ + above);
          break;   // they rise by their seconds
        }
      }
    return rest;
  }
  /// What lives through the whole step, whichever sections it has.
  Index constant_bytes(Index workspace_bytes) const {
    Index bytes = target_.uses_workspace ? round_up(workspace_bytes, target_.alignment) * policy_.streams : 0;
    if (images_ < table_.input.n)
      bytes += (catalog_.keeps_output() ? catalog_.readers().bytes(table_.size()) : 0) + (options_.input_gradient ? catalog_.readers().bytes(0) : 0);
    return bytes;
  }
  void extend(StepMemory memory, Labels& labels, Index at, std::size_t number, std::size_t section_number, Index room, double bound) const {
    const Label label = item(labels, at)[number];
    const SectionOfSearch& section = catalog_.sections()[section_number];
    const SectionBorder& border = section.border;
    const std::int32_t partitions = label.partitions + section.numbered, names = label.names + section.at_checkpoint;
    if (static_cast<std::size_t>(partitions) > PolicySpec::capacity || static_cast<std::size_t>(names) > Checkpoints::capacity) return;
    const std::vector<Index>&below = catalog_.across(at), &above = catalog_.across(border.end());
    const auto bit_of = [](const std::vector<Index>& tensors, Index g) {
      const auto place = std::lower_bound(tensors.begin(), tensors.end(), g);
      const auto bit = static_cast<std::size_t>(place - tensors.begin());   // beyond the bits: counted by each section that keeps it
      return place != tensors.end() && *place == g && bit < bits ? std::uint64_t{1} << bit : 0;
    };
    const auto is_kept = [&](Index g) { return (label.tensors & bit_of(below, g)) != 0; };
    Index forward_room = room - label.kept, backward_room = forward_room - border.passing_gradients();
    if (!border.is_last() && catalog_.keeps_output() && images_ == table_.input.n)
      backward_room -= catalog_.readers().bytes(table_.size());   // the output
    std::uint64_t kept_above = 0;                                 // of what lives on above the section
    for (const Index g : border.passing()) is_kept(g) ? kept_above |= bit_of(above, g) : forward_room -= catalog_.readers().bytes(g);
    std::uint64_t already = 0;
    for (std::size_t i = 0; i < border.inputs().size(); ++i) {
      const Index g = border.inputs()[i];
      if (is_kept(g) && i < bits) already |= std::uint64_t{1} << i, kept_above |= bit_of(above, g);
    }
    const bool in_place = memory == StepMemory::in_place;
    const auto is_offered = [&](Index g) { return (label.offered & bit_of(below, g)) != 0; };
    std::uint64_t offered_above = 0;   // of tensors that pass by
    for (const Index g : border.passing())
      if (is_offered(g)) offered_above |= bit_of(above, g);
    std::vector<Label>& ends = item(labels, border.end());
    const std::size_t first = ends.size();
    const std::vector<SectionChoice>& choices = section.choices.of(memory);
    for (std::size_t c = 0; c < choices.size(); ++c) {   // by rising seconds
      const SectionChoice& choice = choices[c];
      if (label.rank + choice.seconds() + section_rank_ > bound) break;
      if (!section.numbered && !SectionTries::follows(choice.partition(), *label.partition)) continue;
      bool takes_places = in_place && choice.reads_places();
      for (std::size_t i = 0; takes_places && i < border.inputs().size(); ++i)
        takes_places = choice.place_use(i) != PlaceUse::reads || is_offered(border.inputs()[i]);
      const SectionPeaks& peaks = choice.peaks(already, takes_places);
      if (peaks.forward > forward_room || peaks.backward > backward_room) continue;
      Label next = label;
      next.seconds += choice.seconds(), next.rank += choice.seconds() + section_rank_;
      next.kept += choice.kept(), next.tensors = kept_above;
      ++next.sections, next.partitions = partitions, next.names = names;
      next.before = static_cast<std::int32_t>(number), next.section = static_cast<std::int32_t>(section_number);
      next.choice = static_cast<std::int32_t>(c);
      if (section.numbered) next.partition = &choice.partition();
      for (std::size_t i = 0; i < border.inputs().size(); ++i) {
        if (!choice.keeps_input(i) || (i < bits && (already >> i & 1) != 0)) continue;
        next.kept += catalog_.readers().bytes(border.inputs()[i]);
        next.tensors |= bit_of(above, border.inputs()[i]);
      }
      for (const Index g : choice.kept_outputs()) next.tensors |= bit_of(above, g);
      next.offered = offered_above;
      for (std::size_t i = 0; in_place && i < border.inputs().size(); ++i)
        if (const Index g = border.inputs()[i]; choice.place_use(i) == PlaceUse::ignores && is_offered(g)) next.offered |= bit_of(above, g);
      for (const Index g : choice.offered()) next.offered |= bit_of(above, g);
      const auto beats = [&](const Label& b) {
        return b.seconds <= next.seconds && b.kept <= next.kept && (next.tensors & ~b.tensors) == 0 && (next.offered & ~b.offered) == 0 &&
               leads_on_like(b, next, border.end());
      };
      if (std::none_of(ends.begin() + static_cast<Index>(first), ends.end(), beats)) ends.push_back(next);
    }
  }
  /// Of labels at one layer, those that no other beats; of those whose bytes hardly differ, the fastest. Another beats a label if it is as fast and
  /// leaves no more bytes waiting, those tensors counted that only the label has among its own, or whose places only the label offers.
  void keep_best(std::vector<Label>& labels, Index at, Index room) const {
    std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.kept != b.kept ? a.kept < b.kept : a.tensors < b.tensors;
    });
    const auto least = std::min_element(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.kept < b.kept; });
    const std::size_t fewest = static_cast<std::size_t>(least - labels.begin());
    std::vector<Label> best;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const Label& label = labels[i];
      const Index hardly = i == fewest ? 0 : room / 1000;
      const Index least_saved = label.kept + hardly;
      const auto beats = [&](const Label& b) {
        const std::uint64_t less = (label.tensors & ~b.tensors) | (label.offered & ~b.offered);   // a place that is taken saves one gradient
        return b.kept <= least_saved && b.kept + bytes_of(at, less) <= least_saved && leads_on_like(b, label, at);
      };
      if (std::none_of(best.rbegin(), best.rend(), beats)) best.push_back(label);
    }
    labels = std::move(best);
  }
  /// Whether what follows at this layer is run in the same way behind both labels.
  bool leads_on_like(const Label& a, const Label& b, Index at) const {
    return !catalog_.is_followed(at) || a.partition == nullptr || b.partition == nullptr || a.partition->images == b.partition->images;
  }
  /// Bytes of tensors across a layer.
  Index bytes_of(Index at, std::uint64_t tensors) const {
    Index bytes = 0;
    for (; tensors != 0; tensors &= tensors - 1)
      bytes += catalog_.readers().bytes(catalog_.across(at)[static_cast<std::size_t>(std::countr_zero(tensors))]);
    return bytes;
  }
  const Label& before(const Labels& labels, const Label& label) const {
    return item(item(labels, item(catalog_.sections(), label.section).border.begin()), label.before);
  }
  PolicySpec policy_of(StepMemory memory, const Labels& labels, const Label& last, Index workspace_bytes) const {
    std::vector<const Label*> way;
    for (const Label* label = &last; label->sections > 0; label = &before(labels, *label)) way.insert(way.begin(), label);
    PolicySpec policy = policy_;
    policy.partitions = {};
    if (target_.uses_workspace) policy.workspace_bytes = workspace_bytes;
    policy.partition_count = 0;
    policy.gradients_in_place = memory == StepMemory::in_place;
    std::size_t names = 0;
    for (const Label* label : way) {
      const SectionOfSearch& section = item(catalog_.sections(), label->section);
      if (section.at_checkpoint) {
        policy.checkpoints.rule = Checkpoints::Rule::named;
        policy.checkpoints.names[names++] = table_.node(section.border.end() - 1).layer.name;
      }
      if (section.numbered) item(policy.partitions, policy.partition_count++) = item(section.choices.of(memory), label->choice).partition();
    }
    policy.partition_count = std::max<Index>(policy.partition_count, 1);
    return policy;
  }
  static constexpr std::size_t bits = 64;   ///< of Label::tensors
};
}   // namespace lrcnn
