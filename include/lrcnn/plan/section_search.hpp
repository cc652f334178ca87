#pragma once
// The fastest way to run a network's step within a number of bytes, section by section.
//
// A network is divided into sections at layers whose outputs may be kept, and each section has many ways to be run (plan/section_choice.hpp).
// The search goes upward from the network's input. For every place where a section may end it keeps the best ways to get there: a way is
// better than another if it takes less time and leaves fewer bytes waiting for the backward pass. A section is added only if its two peaks,
// with all that waits below it and all that passes by, fit into the bytes, and if the sections above can come to a good end within what is left
// (plan/section_bounds.hpp). Bytes are exact but for buffers at the very start and end of a step,
// where a little more is counted; what the plan's placement adds is not: plan/frontier_search.hpp verifies each solution.
#include <lrcnn/plan/section_bounds.hpp>
#include <lrcnn/plan/solved_policy.hpp>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>
namespace lrcnn {
class SectionSearch {
 private:
  static constexpr double unbounded = std::numeric_limits<double>::infinity();
  static constexpr Index unlimited = SectionBounds::unlimited;   ///< bytes

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
    most_behind_.assign(static_cast<std::size_t>(table.size() + 1), 0);
    for (const SectionOfSearch& section : catalog_.sections()) {
      passages_.emplace_back(catalog_, section);
      Index& most = item(most_behind_, section.border.begin());
      for (const SectionChoice& choice : section.choices.of(StepMemory::in_place)) most = std::max(most, choice.behind());
    }
    for (Index at = table.size(); at-- > 0;) item(most_behind_, at) = std::max(item(most_behind_, at), item(most_behind_, at + 1));
    for (const StepMemory memory : catalog_.memories()) workspaces_[static_cast<std::size_t>(memory)] = find_workspaces(memory);
    const double least = SectionBounds(catalog_, passages_, catalog_.memories().front(), unlimited, 0).least(0, 0, unlimited);
    if (least < unbounded) section_rank_ = least / 10'000;
  }
  const SectionCatalog& catalog() const { return catalog_; }
  /// The fastest policies with such memory whose live bytes are at most `bytes`, a shared workspace of `workspace_bytes` among them, at most
  /// `count` of them, by rising seconds; none if there is none. Their `bytes` and `steps` are not filled in.
  /// `most_seconds`: those that take clearly longer are left out. Of large networks they are the fastest that `wide` ways at each layer lead to.
  std::vector<SolvedPolicy> fastest(StepMemory memory, Index bytes, Index workspace_bytes, std::size_t count = 1,
                                    double most_seconds = unbounded) const {
    const auto [fewest, most] = workspaces_[static_cast<std::size_t>(memory)];
    std::vector<SolvedPolicy> solved = fastest_with(most, memory, bytes, workspace_bytes, count, most_seconds);
    if (fewest == most || workspace_bytes == 0 || !target_.uses_workspace) return solved;
    for (SolvedPolicy& other : fastest_with(fewest, memory, bytes, workspace_bytes, count, most_seconds))
      if (std::none_of(solved.begin(), solved.end(), [&](const SolvedPolicy& known) { return known.policy == other.policy; }))
        solved.push_back(std::move(other));
    std::stable_sort(solved.begin(), solved.end(), [](const SolvedPolicy& a, const SolvedPolicy& b) { return a.seconds < b.seconds; });
    solved.resize(std::min(solved.size(), count));
    return solved;
  }
  /// Whether sections share a workspace where a step's memory is like this.
  bool shares_workspace(StepMemory memory) const { return memory == StepMemory::shared_workspace || !catalog_.looks_at(StepMemory::own_workspaces); }

 private:
  /// The same of ways to run sections that want at most so many of the workspaces that they share.
  std::vector<SolvedPolicy> fastest_with(Index workspaces, StepMemory memory, Index bytes, Index workspace_bytes, std::size_t count,
                                         double most_seconds) const {
    Labels labels;
    const Index room = bytes - constant_bytes(workspace_bytes, workspaces);
    if (room < 0) return {};
    const SectionBounds& bounds = bounds_of(memory, room, workspaces);
    const double most = 1.01 * most_seconds;   // a rank is a little more than the seconds
    Terms terms{memory, room, workspaces, &bounds, most};
    const auto solve = [&](std::size_t beam) {
      labels = find_labels(terms, beam);
      auto& complete = labels.back();
      const auto end = complete.begin() + static_cast<Index>(std::min(count, complete.size()));
      std::partial_sort(complete.begin(), end, complete.end(), [](const Label& x, const Label& y) { return x.rank < y.rank; });
      complete.erase(end, complete.end());
      return complete.size() == count;
    };
    const double least = bounds.least(0, 0, room);
    if (least == unbounded) return {};
    for (const double times : {1.02, 1.1, unbounded}) {   // most of the best take little longer than the least that is possible
      terms.bound = std::min(most, times * least);
      if (solve(narrow) || terms.bound == most) break;
    }
    if (labels.back().size() == count) terms.bound = labels.back().back().rank * (1 + 1e-9);   // sums in another order
    if (!solve(wide)) solve(all);
    std::vector<SolvedPolicy> solved;
    for (const Label& label : labels.back()) solved.push_back({policy_of(labels, label, workspace_bytes, memory), 0, label.seconds, 0});
    return solved;
  }
  /// A way to run all sections below a layer. There are very many of them.
  struct Label {
    double seconds = 0;
    double rank = 0;             ///< seconds, and a little for each section
    Index kept = 0;              ///< bytes that wait for the backward passes of these sections
    std::uint64_t tensors = 0;   ///< those of SectionCatalog::across() that are among them
    std::uint64_t offered = 0;   ///< those of SectionCatalog::across() whose places their gradients may have
    /// The most bytes that are live while one of these sections runs, from the first one on that offers a place which no section has taken yet.
    /// A section that takes a place makes it larger for as long as it lives, by SectionChoice::behind() bytes: these are added to the peak. 0 if
    /// no place is offered, or if not all ways to run sections are tried.
    Index peak = 0;
    const Partition* partition = nullptr;                   ///< the last one that a section has of its own
    std::int32_t sections = 0, partitions = 0, names = 0;   ///< sections; those of them with a partition, and those that end at a checkpoint
    std::int32_t before = 0, section = 0;                   ///< the label where its last section begins, and that section
    const SectionWay* way = nullptr;                        ///< how that is run
  };
  /// What is asked of a search.
  struct Terms {
    StepMemory memory{};
    Index room = 0;                          ///< bytes
    Index workspaces = 0;                    ///< that sections share, at most
    const SectionBounds* bounds = nullptr;   ///< within them
    double bound = 0;                        ///< ranks above it are of no use
  };
  using Labels = std::vector<std::vector<Label>>;                                                        ///< of each layer
  static constexpr std::size_t narrow = 12, wide = 128, all = std::numeric_limits<std::size_t>::max();   ///< labels at a layer that are followed
  const Table& table_;
  const PolicySpec policy_;
  const Target& target_;
  const PlanOptions& options_;
  const SectionCatalog catalog_;
  const Index images_;
  std::vector<SectionPassage> passages_{};   ///< of each section
  std::vector<Index> most_behind_{};         ///< of each layer: SectionChoice::behind() at most, of the sections that begin there or above
  mutable std::mutex mutex_{};
  std::array<std::pair<Index, Index>, step_memories.size()> workspaces_{};   ///< that sections share: the fewest and the most that any way wants
  mutable std::map<std::tuple<StepMemory, Index, Index>, SectionBounds> bounds_{};
  double section_rank_ = 0;   ///< of two ways that take equally long, the one of fewer sections is chosen

  /// Without what is to be chosen; seconds are with a workspace that is large enough for all.
  static PolicySpec of_search(PolicySpec policy, std::uint32_t names) {
    if (!PolicySpec::is_among(names, PolicySpec::Part::checkpoints)) policy.checkpoints = {};
    if (!PolicySpec::is_among(names, PolicySpec::Part::workspace)) policy.workspace_bytes = std::max<Index>(policy.workspace_bytes, 64_MiB);
    return policy;
  }
  /// The ways to run the sections below each layer that may come to a good end. `beam`: at most so many are followed at a layer, those that may
  /// come to the best.
  Labels find_labels(const Terms& terms, std::size_t beam) const {
    Labels labels(static_cast<std::size_t>(table_.size() + 1));
    labels[0].push_back({});
    for (Index at = 0; at < table_.size(); ++at) {
      auto& here = item(labels, at);
      keep_best(here, at, terms.room);
      if (here.size() > beam) {
        const auto end_of = [&](const Label& l) { return l.rank + terms.bounds->least(at, l.tensors, terms.room - l.kept); };
        std::stable_sort(here.begin(), here.end(), [&](const Label& a, const Label& b) { return end_of(a) < end_of(b); });
        here.resize(beam);
      }
      for (std::size_t l = 0; l < here.size(); ++l)
        for (const std::size_t s : catalog_.from(at)) extend(terms, labels, at, l, s);
    }
    return labels;
  }
  /// Those within so many bytes or a little more: few numbers of bytes have bounds of their own.
  const SectionBounds& bounds_of(StepMemory memory, Index room, Index workspaces) const {
    const Index most = room > unlimited / 2 ? unlimited : static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(room)));
    const std::lock_guard lock(mutex_);
    return bounds_.try_emplace({memory, most, workspaces}, catalog_, passages_, memory, most, section_rank_, workspaces).first->second;
  }
  /// How many workspaces sections share: the fewest and the most that any way wants.
  std::pair<Index, Index> find_workspaces(StepMemory memory) const {
    std::pair<Index, Index> counts{policy_.streams, 0};
    for (const SectionPassage& passage : passages_)
      for (const SectionWay& way : passage.ways(memory))
        counts = {std::min(counts.first, way.choice->shared_workspaces()), std::max(counts.second, way.choice->shared_workspaces())};
    return counts;
  }
  /// What lives through the whole step, whichever sections it has.
  Index constant_bytes(Index workspace_bytes, Index workspaces) const {
    Index bytes = target_.uses_workspace ? round_up(workspace_bytes, target_.alignment) * workspaces : 0;
    if (images_ < table_.input.n)
      bytes += (catalog_.keeps_output() ? catalog_.readers().bytes(table_.size()) : 0) +
               (options_.training && options_.input_gradient ? catalog_.readers().bytes(0) : 0);
    return bytes;
  }
  /// The ways to run one more section behind a label.
  void extend(const Terms& terms, Labels& labels, Index at, std::size_t number, std::size_t section_number) const {
    const Label label = item(labels, at)[number];
    const SectionOfSearch& section = catalog_.sections()[section_number];
    const SectionPassage& passage = passages_[section_number];
    const Index end = section.border.end();
    const std::vector<SectionWay>& ways = passage.ways(terms.memory);
    const Index room = terms.room - label.kept;
    const double fastest_above = terms.bounds->least(end, ~TensorSet{0}, room);
    if (ways.empty() || label.rank + ways.front().seconds + section_rank_ + fastest_above > terms.bound) return;
    const SectionPassage::Entry entry = passage.enter(label.tensors, label.offered);
    const Index forward_room = room - entry.passing, backward_room = room - passage.backward_bytes();
    std::vector<Label>& ends = item(labels, end);
    const std::size_t first = ends.size();
    for (const SectionWay& way : ways) {   // by rising seconds
      const double rank = label.rank + way.seconds + section_rank_;
      if (rank + fastest_above > terms.bound) break;
      if (way.choice->shared_workspaces() > terms.workspaces || SectionPassage::is_barred(way, entry)) continue;
      const std::int32_t more = way.choice->more_parts();
      const std::int32_t partitions = label.partitions + section.numbered + more, names = label.names + section.at_checkpoint + more;
      if (static_cast<std::size_t>(partitions) > PolicySpec::capacity || static_cast<std::size_t>(names) > Checkpoints::capacity) continue;
      const SectionPeaks& peaks = SectionPassage::peaks(way, entry);
      if (peaks.forward > forward_room || peaks.backward > backward_room) continue;
      const Index behind = SectionPassage::takes_places(way, entry) ? way.choice->behind() : 0;
      if (label.peak > 0 && behind > 0 && label.peak + behind > terms.room) continue;
      if (!section.numbered && !is_run_as(way.choice->partition(), *label.partition)) continue;
      auto [kept, tensors] = passage.leave(way, entry);
      kept += behind;   // until its backward pass, which has the rest of the place
      if (rank + terms.bounds->least(end, tensors, room - kept) > terms.bound) continue;
      Label next{.seconds = label.seconds + way.seconds,
                 .rank = rank,
                 .kept = label.kept + kept,
                 .tensors = tensors,
                 .offered = terms.memory == StepMemory::in_place ? passage.offer(way, entry) : 0,
                 .peak = 0,
                 .partition = section.numbered ? &way.choice->partition() : label.partition,
                 .sections = label.sections + 1,
                 .partitions = partitions,
                 .names = names,
                 .before = static_cast<std::int32_t>(number),
                 .section = static_cast<std::int32_t>(section_number),
                 .way = &way};
      if (next.offered != 0 && catalog_.is_thorough()) {
        next.peak = terms.room - std::min(forward_room - peaks.forward, backward_room - peaks.backward);
        if ((next.offered & ~way.offered) != 0) next.peak = std::max(next.peak, label.peak);
      }
      const auto beats = [&](const Label& b) {
        return b.seconds <= next.seconds && b.kept <= next.kept && (next.tensors & ~b.tensors) == 0 && (next.offered & ~b.offered) == 0 &&
               leads_on_like(b, next, end) && b.peak <= std::max(next.peak, terms.room - item(most_behind_, end));
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
        return b.kept <= least_saved && b.kept + bytes_of(at, less) <= least_saved && leads_on_like(b, label, at) &&
               b.peak <= std::max(label.peak, room - item(most_behind_, at));
      };
      if (std::none_of(best.rbegin(), best.rend(), beats)) best.push_back(label);
    }
    labels = std::move(best);
  }
  /// Whether what follows at this layer is run in the same way behind both labels.
  bool leads_on_like(const Label& a, const Label& b, Index at) const {
    return !catalog_.is_followed(at) || a.partition == nullptr || b.partition == nullptr ||
           (catalog_.is_thorough() ? is_run_as(*a.partition, *b.partition) : a.partition->images == b.partition->images);
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
  PolicySpec policy_of(const Labels& labels, const Label& last, Index workspace_bytes, StepMemory memory) const {
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
      const auto end_at = [&](Index end) {
        policy.checkpoints.rule = Checkpoints::Rule::named;
        policy.checkpoints.names[names++] = table_.node(end - 1).layer.name;
      };
      const SectionChoice& choice = *label->way->choice;
      for (std::int32_t part = 0; part < choice.more_parts(); ++part) {
        end_at(item(choice.parts(), part).end);
        item(policy.partitions, policy.partition_count++) = item(choice.parts(), part).partition;
      }
      if (section.at_checkpoint) end_at(section.border.end());
      if (section.numbered) item(policy.partitions, policy.partition_count++) = choice.partition();
    }
    policy.partition_count = std::max<Index>(policy.partition_count, 1);
    return policy;
  }
};
}   // namespace lrcnn
