#pragma once
// The fastest way to run a network's step within a number of bytes, section by section.
//
// A network is divided into sections at layers whose outputs may be kept, and each section has many ways to be run (plan/section_choice.hpp).
// The search goes upward from the network's input. For every place where a section may end it keeps the best ways to get there: a way is
// better than another if it takes less time and leaves fewer bytes waiting for the backward pass. A section is added only if its two peaks,
// with all that waits below it and all that passes by, fit into the bytes. Bytes are exact but for buffers at the very start and end of a step,
// where a little more is counted; what the plan's placement adds is not: plan/frontier.hpp verifies each solution.
#include <lrcnn/plan/section_choice.hpp>
#include <lrcnn/plan/section_ends.hpp>
#include <bit>
#include <limits>
namespace lrcnn {
/// A policy that a search found.
struct SolvedPolicy {
  PolicySpec policy{};
  Index bytes = 0;      ///< at the plan's peak
  double seconds = 0;   ///< of a step
  friend bool operator==(const SolvedPolicy&, const SolvedPolicy&) = default;
};
/// A section of a network with the ways to run it.
struct SectionOfSearch {
  SectionBorder border;
  bool numbered = true;         ///< it has a partition of its own in a policy: not if it is the factors of a scale alone
  bool at_checkpoint = false;   ///< it ends because a policy says so, rather than at a barrier
  std::vector<SectionChoice> choices{};
};
class SectionSearch {
 public:
  /// Looks at all sections. `policy`: what holds for the whole step; `names`: a bit for each PolicySpec::Part of it that is not to be chosen.
  /// Pre: the table, the target, the options and the costs outlive the object.
  SectionSearch(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs,
                std::uint32_t names = 0)
      : table_(table),
        policy_(policy),
        names_(names),
        target_(target),
        options_(options),
        images_(group_images(table, policy)),
        costs_(costs, table, target),
        readers_(table, target, options, images_) {
    if (!is_named(PolicySpec::Part::checkpoints)) policy_.checkpoints = {};
    policy_.workspace_bytes = std::max<Index>(policy_.workspace_bytes, is_named(PolicySpec::Part::workspace) ? 0 : 64_MiB);   // seconds are with such
    find_sections();
    if (const auto quickest = fastest(std::numeric_limits<Index>::max() / 2, 0); !quickest.empty()) section_rank_ = quickest[0].seconds / 10'000;
  }
  /// The fastest policies whose live bytes are at most `bytes`, a workspace of `workspace_bytes` among them, at most `count` of them, by rising
  /// seconds; none if there is none. Their `bytes` are not filled in.
  std::vector<SolvedPolicy> fastest(Index bytes, Index workspace_bytes, std::size_t count = 1) const {
    const Index always = constant_bytes(workspace_bytes), room = bytes - always;
    std::vector<std::vector<Label>> labels(static_cast<std::size_t>(table_.size() + 1));
    labels[0].push_back({});
    for (Index at = 0; at < table_.size(); ++at) {
      keep_best(item(labels, at), at, room);
      for (std::size_t l = 0; l < item(labels, at).size(); ++l)
        for (const std::size_t s : item(sections_from_, at)) extend(labels, at, l, s, room);
    }
    auto& complete = labels.back();
    const auto end = complete.begin() + static_cast<Index>(std::min(count, complete.size()));
    std::partial_sort(complete.begin(), end, complete.end(), [](const Label& a, const Label& b) { return a.rank < b.rank; });
    std::vector<SolvedPolicy> solved;
    for (auto label = complete.begin(); label != end; ++label) solved.push_back({policy_of(labels, *label, workspace_bytes), 0, label->seconds});
    return solved;
  }
  /// Layers behind which a policy may end a section, as far as this search looks at them.
  std::vector<Index> checkpoints() const {
    std::vector<Index> layers;
    for (const SectionOfSearch& s : sections_)
      if (s.at_checkpoint) layers.push_back(s.border.end() - 1);
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    return layers;
  }
  /// Sections that were looked at, and ways to run them that none other beats.
  std::size_t section_count() const { return sections_.size(); }
  std::size_t choice_count() const {
    std::size_t count = 0;
    for (const SectionOfSearch& s : sections_) count += s.choices.size();
    return count;
  }

 private:
  /// A way to run all sections below a layer.
  struct Label {
    double seconds = 0;
    double rank = 0;                                 ///< seconds, and a little for each section
    Index kept = 0;                                  ///< bytes that wait for the backward passes of these sections
    std::uint64_t tensors = 0;                       ///< those of across_[layer] that are among them
    Index sections = 0, partitions = 0, names = 0;   ///< sections; those of them with a partition, and those that end at a checkpoint
    Index from = 0;                                  ///< the layer at which its last section begins, and the label there
    std::size_t before = 0;
    std::size_t section = 0, choice = 0;
    const Partition* partition = nullptr;   ///< the last one that a section has of its own
  };
  const Table& table_;
  PolicySpec policy_;
  const std::uint32_t names_;
  const Target& target_;
  const PlanOptions& options_;
  const Index images_;
  StepCosts costs_;
  detail::TensorReaders readers_;
  std::vector<SectionOfSearch> sections_{};
  double section_rank_ = 0;                                 ///< of two ways that take equally long, the one of fewer sections is chosen
  std::vector<std::vector<std::size_t>> sections_from_{};   ///< numbers of the sections that begin at each layer
  std::vector<std::vector<Index>> across_{};                ///< of each layer: tensors from below that are read from there on

  bool is_named(PolicySpec::Part part) const { return (names_ >> static_cast<unsigned>(part) & 1) != 0; }

  // ---- sections ----------------------------------------------------------------------------------------------------
  void find_sections() {
    for (Index l = 0; l <= table_.size(); ++l) across_.push_back(readers_.across(l));
    sections_from_.resize(static_cast<std::size_t>(table_.size() + 1));
    const bool given = is_named(PolicySpec::Part::checkpoints);
    const std::vector<char> ends = given ? detail::ends_of(table_, policy_) : detail::SectionEnds(table_, readers_, across_).find();
    std::vector<char> begins(static_cast<std::size_t>(table_.size() + 1), 0);
    begins[0] = 1;
    for (Index begin = 0; begin < table_.size(); ++begin) {
      if (!item(begins, begin)) continue;
      Index last = detail::section_end(table_, begin, options_.training);
      for (Index end = begin + 1; given && end < last; ++end)
        if (item(ends, end - 1)) last = end;
      for (Index end = begin + 1; end <= last; ++end) {
        if (end < last && (given || !item(ends, end - 1))) continue;
        add_section(begin, end, end < last);
        item(begins, end) = 1;
      }
    }
  }
  void add_section(Index begin, Index end, bool at_checkpoint) {
    SectionOfSearch section{SectionBorder(table_, readers_, target_, options_, images_, begin, end)};
    section.at_checkpoint = at_checkpoint;
    const auto whole = detail::split_layers(table_, begin, end, options_.training, [](Index) { return false; });
    section.numbered = !whole.back().behind_means;
    const auto twin =
        std::find_if(sections_.begin(), sections_.end(), [&](const SectionOfSearch& other) { return section.border.is_twin(other.border); });
    if (twin == sections_.end()) add_choices(section, whole);
    else
      for (const SectionChoice& choice : twin->choices) section.choices.push_back(choice.moved(begin - twin->border.begin()));
    if (section.choices.empty()) return;
    item(sections_from_, begin).push_back(sections_.size());
    sections_.push_back(std::move(section));
  }

  // ---- choices -----------------------------------------------------------------------------------------------------
  /// Adds a way to run a section. Whether its rows carry the slabs.
  bool add_choice(SectionOfSearch& section, Partition p) {
    if (p.images == images_) p.images = 0;
    const auto stages = make_section_stages(table_, section.border.begin(), section.border.end(), policy_, p, target_, images_, options_);
    if (stages.empty()) return false;
    SectionProfile profile = profile_section(table_, policy_, target_, options_, stages);
    add_seconds(profile, table_, policy_, target_, options_, stages, costs_, true);
    section.choices.emplace_back(section.border, p, profile);
    return true;
  }
  /// Tries what a section may do: slabs of images, slabs of rows of all images or of one, and what is computed again.
  void add_choices(SectionOfSearch& section, const std::vector<Stage>& whole) {
    if (!section.numbered) {
      add_followers(section);
      return;
    }
    const bool vector = whole.back().vector;
    if (is_named(PolicySpec::Part::partition)) {
      add_named(section);
      return;
    }
    for (Index images = images_; images >= 1; images = images == 1 ? 0 : ceil_div(images, 2)) {
      const bool rows = !vector && (images == images_ || images == 1);
      for (const Recompute recompute : {Recompute::none, Recompute::light, Recompute::cheap, Recompute::all}) {
        if (is_named(PolicySpec::Part::recompute) ? recompute != policy_.recompute : !options_.training && recompute != Recompute::none) continue;
        Partition p{.images = images, .recompute = recompute};
        add_choice(section, p);
        for (const Cut cut : {Cut::overlap, Cut::share}) {
          p.cut = cut;
          if (rows && recompute != Recompute::cheap) add_counts(section, p);
        }
      }
      for (const bool both_ways : {false, true}) {
        if (whole.size() == 1 || static_cast<Index>(whole.size()) > most_passed || !options_.training || !rows) continue;
        Partition p{.images = images, .passes = true, .forward_passes = both_ways, .recompute = Recompute::all};
        add_choice(section, p);
        p.cut = Cut::overlap;
        add_counts(section, p);
      }
      if (vector) break;
    }
    drop_beaten(section.choices);
  }
  /// All that the partition of the section before may say of factors of a scale, which are not cut into slabs of rows.
  void add_followers(SectionOfSearch& section) {
    if (is_named(PolicySpec::Part::partition)) return add_named(section);
    for (Index images = images_; images >= 1; images = images == 1 ? 0 : ceil_div(images, 2))
      for (const Recompute recompute : {Recompute::none, Recompute::light, Recompute::cheap, Recompute::all})
        for (const int passes : {0, 1, 2})
          add_choice(section, {.images = images, .passes = passes > 0, .forward_passes = passes > 1, .recompute = recompute});
  }
  /// Whether a section without a partition of its own is run so, if the section before it has this partition.
  static bool follows(const Partition& p, const Partition& before) {
    return p.images == before.images && p.recompute == before.recompute && p.passes == before.passes && p.forward_passes == before.forward_passes;
  }
  /// The partition that the policy names, with as many slabs as the rows carry.
  void add_named(SectionOfSearch& section) {
    const Partition& named = policy_.partition(0);
    for (const Recompute recompute : {Recompute::none, Recompute::light, Recompute::cheap, Recompute::all}) {
      if (named.recompute != Recompute::of_policy ? recompute != named.recompute
                                                  : is_named(PolicySpec::Part::recompute) && recompute != policy_.recompute)
        continue;
      Partition p = named;
      p.recompute = recompute;
      for (Index most = std::max(p.forward, p.backward); most >= 1; --most) {
        p.forward = std::min(named.forward, most), p.backward = std::min(named.backward, most);
        if (most == 1) p.cut = Cut::column;
        if (add_choice(section, p)) break;
      }
    }
    if (section.numbered) drop_beaten(section.choices);
  }
  /// More and more slabs, as long as they save bytes. Where nothing is kept the forward pass may have fewer of them than the backward pass.
  void add_counts(SectionOfSearch& section, Partition p) {
    SectionPeaks least{std::numeric_limits<Index>::max(), std::numeric_limits<Index>::max()};
    int in_vain = 0;
    for (const Index slabs : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
      if (slabs * ceil_div(images_, p.images) > 128) return;
      p.forward = p.backward = slabs;
      if (!add_choice(section, p)) return;
      const SectionPeaks peaks = section.choices.back().peaks(0);
      const auto falls = [](Index from, Index to) { return to < from - from / 50; };
      in_vain = falls(least.forward, peaks.forward) || falls(least.backward, peaks.backward) ? 0 : in_vain + 1;
      if (in_vain > 1 || section.choices.back().seconds() > most_times * section.choices.front().seconds()) return;
      least = {std::min(least.forward, peaks.forward), std::min(least.backward, peaks.backward)};
      if (p.recompute != Recompute::all || p.passes) continue;
      p.forward = 1;
      add_choice(section, p);
      p.forward = slabs / 2;
      if (p.forward > 1) add_choice(section, p);
    }
  }
  /// Drops ways to run a section that another beats in everything.
  static void drop_beaten(std::vector<SectionChoice>& choices) {
    std::stable_sort(choices.begin(), choices.end(), [](const SectionChoice& a, const SectionChoice& b) { return a.seconds() < b.seconds(); });
    std::vector<SectionChoice> best;
    for (SectionChoice& c : choices)
      if (std::none_of(best.begin(), best.end(), [&](const SectionChoice& b) { return b.takes_no_more(c); })) best.push_back(std::move(c));
    choices = std::move(best);
  }

  // ---- search ------------------------------------------------------------------------------------------------------
  /// What lives through the whole step, whichever sections it has.
  Index constant_bytes(Index workspace_bytes) const {
    Index bytes = target_.uses_workspace ? round_up(workspace_bytes, target_.alignment) * policy_.streams : 0;
    if (images_ < table_.input.n)
      bytes += (options_.stores_output ? 0 : readers_.bytes(table_.size())) + (options_.input_gradient ? readers_.bytes(0) : 0);
    return bytes;
  }
  void extend(std::vector<std::vector<Label>>& labels, Index at, std::size_t number, std::size_t section_number, Index room) const {
    const Label label = item(labels, at)[number];
    const SectionOfSearch& section = sections_[section_number];
    const SectionBorder& border = section.border;
    const Index partitions = label.partitions + section.numbered, names = label.names + section.at_checkpoint;
    if (partitions > static_cast<Index>(PolicySpec::capacity) || names > static_cast<Index>(Checkpoints::capacity)) return;
    const std::vector<Index>&below = item(across_, at), &above = item(across_, border.end());
    const auto bit_of = [](const std::vector<Index>& tensors, Index g) {
      const auto place = std::lower_bound(tensors.begin(), tensors.end(), g);
      const auto bit = static_cast<std::size_t>(place - tensors.begin());   // beyond the bits: counted by each section that keeps it
      return place != tensors.end() && *place == g && bit < bits ? std::uint64_t{1} << bit : 0;
    };
    const auto is_kept = [&](Index g) { return (label.tensors & bit_of(below, g)) != 0; };
    Index forward_room = room - label.kept, backward_room = forward_room - border.passing_gradients();
    if (!border.is_last() && !options_.stores_output && images_ == table_.input.n) backward_room -= readers_.bytes(table_.size());   // the output
    std::uint64_t kept_above = 0;   // of what lives on above the section
    for (const Index g : border.passing()) is_kept(g) ? kept_above |= bit_of(above, g) : forward_room -= readers_.bytes(g);
    std::uint64_t already = 0;
    for (std::size_t i = 0; i < border.inputs().size(); ++i) {
      const Index g = border.inputs()[i];
      if (is_kept(g) && i < bits) already |= std::uint64_t{1} << i, kept_above |= bit_of(above, g);
    }
    for (std::size_t c = 0; c < section.choices.size(); ++c) {
      const SectionChoice& choice = section.choices[c];
      if (!section.numbered && !follows(choice.partition(), *label.partition)) continue;
      const SectionPeaks& peaks = choice.peaks(already);
      if (peaks.forward > forward_room || peaks.backward > backward_room) continue;
      Label next = label;
      next.seconds += choice.seconds(), next.rank += choice.seconds() + section_rank_;
      next.kept += choice.kept(), next.tensors = kept_above;
      ++next.sections, next.partitions = partitions, next.names = names;
      next.from = at, next.before = number, next.section = section_number, next.choice = c;
      if (section.numbered) next.partition = &choice.partition();
      for (std::size_t i = 0; i < border.inputs().size(); ++i) {
        if (!choice.keeps_input(i) || (i < bits && (already >> i & 1) != 0)) continue;
        next.kept += readers_.bytes(border.inputs()[i]);
        next.tensors |= bit_of(above, border.inputs()[i]);
      }
      for (const Index g : choice.kept_outputs()) next.tensors |= bit_of(above, g);
      item(labels, border.end()).push_back(next);
    }
  }
  /// Of labels at one layer, those that no other beats; of those whose bytes hardly differ, the fastest. Another beats a label if it is as fast and
  /// leaves no more bytes waiting, those tensors counted that only the label has among its own.
  void keep_best(std::vector<Label>& labels, Index at, Index room) const {
    std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.kept != b.kept ? a.kept < b.kept : a.tensors < b.tensors;
    });
    const auto least = std::min_element(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.kept < b.kept; });
    const std::size_t fewest = static_cast<std::size_t>(least - labels.begin());
    std::vector<Label> best;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const Label& label = labels[i];
      const Index hardly = i == fewest ? 0 : room / 250;
      const Index least_saved = label.kept + hardly;
      const auto beats = [&](const Label& b) { return b.kept <= least_saved && b.kept + bytes_of(at, label.tensors & ~b.tensors) <= least_saved; };
      if (std::none_of(best.rbegin(), best.rend(), beats)) best.push_back(label);
    }
    labels = std::move(best);
  }
  /// Bytes of tensors across a layer.
  Index bytes_of(Index at, std::uint64_t tensors) const {
    Index bytes = 0;
    for (; tensors != 0; tensors &= tensors - 1) bytes += readers_.bytes(item(across_, at)[static_cast<std::size_t>(std::countr_zero(tensors))]);
    return bytes;
  }
  PolicySpec policy_of(const std::vector<std::vector<Label>>& labels, const Label& last, Index workspace_bytes) const {
    std::vector<const Label*> way;
    for (const Label* label = &last; label->sections > 0; label = &item(labels, label->from)[label->before]) way.insert(way.begin(), label);
    PolicySpec policy = policy_;
    policy.partitions = {};
    if (target_.uses_workspace) policy.workspace_bytes = workspace_bytes;
    policy.partition_count = 0;
    std::size_t names = 0;
    for (const Label* label : way) {
      const SectionOfSearch& section = sections_[label->section];
      if (section.at_checkpoint) {
        policy.checkpoints.rule = Checkpoints::Rule::named;
        policy.checkpoints.names[names++] = table_.node(section.border.end() - 1).layer.name;
      }
      if (section.numbered) item(policy.partitions, policy.partition_count++) = section.choices[label->choice].partition();
    }
    policy.partition_count = std::max<Index>(policy.partition_count, 1);
    return policy;
  }
  static constexpr std::size_t bits = 64;    ///< of Label::tensors
  static constexpr double most_times = 8;    ///< how many times as long as the column a section may take
  static constexpr Index most_passed = 10;   ///< stages of a section that norms divide up to which extra passes are looked at: each norm adds one
};
}   // namespace lrcnn
