#pragma once
// The ways to run a section that are worth knowing: those that are tried, less those that another beats in everything.
#include <lrcnn/plan/section_choice.hpp>
#include <lrcnn/plan/section_ends.hpp>
#include <lrcnn/plan/section_seconds.hpp>
#include <lrcnn/plan/section_variants.hpp>
#include <limits>
#include <optional>
#include <span>
namespace lrcnn {
class SectionTries {
 public:
  /// `policy`: what holds for the whole step; `names`: a bit for each PolicySpec::Part of it that is not to be chosen; `images`: how many the
  /// step has at once; `memories`: the sets of choices that are wanted; `thorough`: all ways are tried, and timed in full. Pre: the arguments
  /// outlive the object.
  SectionTries(const Table& table, const PolicySpec& policy, std::uint32_t names, const Target& target, const PlanOptions& options,
               const Costs& costs, Index images, const std::vector<StepMemory>& memories, bool thorough)
      : table_(table),
        policy_(policy),
        policy_in_place_(policy),
        names_(names),
        target_(target),
        options_(options),
        images_(images),
        rates_(costs.rates()),
        memories_(memories),
        named_workspace_(is_named(PolicySpec::Part::partition) ? policy.partition(0).workspace_bytes : -1),
        own_workspaces_(wants(StepMemory::own_workspaces) && named_workspace_ < 0),
        tells_workspaces_(!costs.measured().empty()),
        thorough_(thorough),
        seconds_(table, target, options, costs, thorough ? Samples::of_images : Samples::of_rows_as_well) {
    policy_in_place_.gradients_in_place = true;
  }
  /// The choices of a section, by rising seconds; none if it cannot be run. `beside`: what others may have in memory meanwhile; `followed`: a
  /// section without a partition of its own may follow, and is run likewise; `alone`: no section of the network has another partition, so that
  /// stages whose rows carry fewer slabs are cut as finely as they can be.
  SectionChoices find(const SectionBorder& border, const BytesBeside& beside, bool followed, bool alone) {
    section_ = {
        .border = &border, .beside = beside, .followed = followed, .whole = split_section(table_, border.begin(), border.end(), options_.training)};
    seconds_.forget();
    const bool numbered = !section_.whole.back().behind_means;
    const Index begin = numbered ? border.begin() : 0, end = numbered ? border.end() : table_.size();
    section_.workspace_bytes = !own_workspaces_ ? named_workspace_ : workspace_of(begin, end, &Rates::good_scratch);
    if (is_named(PolicySpec::Part::partition)) try_named();
    else if (numbered) section_.alone = alone, try_all();
    else try_followers();
    if (is_named(PolicySpec::Part::may_offload) && numbered && border.may_offload() && !section_.whole.back().vector) try_offloaded();
    keep_best(numbered);
    if (const Index ample = workspace_of(begin, end, &Rates::ample_scratch);
        own_workspaces_ && numbered && ample > section_.workspace_bytes && tells_workspaces_) {
      section_.workspace_bytes = ample;
      try_ample();
      keep_best(true);
    }
    for (const StepMemory memory : memories_)
      for (const SectionChoice& choice : section_.choices.of(memory)) choice.find_peaks();
    return std::move(section_.choices);
  }

 private:
  static constexpr auto& recomputes = detail::tried_recomputes;
  static constexpr std::array<Index, 13> slab_counts{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
  static constexpr double most_times = 8;       ///< how many times as long as the column a section may take
  static constexpr Index most_passed = 10;      ///< stages of a section that norms divide up to which extra passes are looked at: each norm adds one
  static constexpr Index most_kept = 3;         ///< stages of a section up to which the first of its extra passes may keep what norms read
  static constexpr Index most_cut = 32;         ///< layers of a section up to which slabs are tried: longer ones are not worth their halos
  static constexpr double hardly = 0.98;        ///< how much faster more slabs may be than fewer, for the caches' sake
  static constexpr double hardly_any = 1.005;   ///< how much longer more slabs in the forward pass take if fewer are not worth trying
  static constexpr double unknown = -1;
  static constexpr Index least_workspace = 256_KiB;
  struct Tried {
    SectionPeaks peaks, in_place;   ///< of gradients in places of their own, and in those of values
    double seconds = 0;             ///< at least
    bool forward_counts = false;    ///< its forward pass may decide how many bytes the section wants
  };
  /// The section that find() is asked for, and what is known of it.
  struct AtHand {
    const SectionBorder* border = nullptr;
    BytesBeside beside{};
    bool followed = false;
    bool alone = false;                ///< all sections of the network have its partition
    std::vector<Stage> whole{};        ///< its stages, not cut
    Index workspace_bytes = -1;        ///< its own; a follower has that of a section before it, here as much as any
    bool is_ample = false;             ///< that is more than the choices that are known have
    double column_seconds = unknown;   ///< of the first way that was tried
    SectionChoices choices{};
  };
  const Table& table_;
  const PolicySpec& policy_;
  PolicySpec policy_in_place_;
  const std::uint32_t names_;
  const Target& target_;
  const PlanOptions& options_;
  const Index images_;
  const Rates& rates_;
  const std::vector<StepMemory>& memories_;
  const Index named_workspace_;   ///< that every section has for itself; below 0: it is not named
  const bool own_workspaces_;
  const bool tells_workspaces_;   ///< estimates are the same in any workspace
  const bool thorough_;           ///< all is tried
  SectionSeconds seconds_;        ///< of ways to run the section at hand
  AtHand section_{};

  bool wants(StepMemory memory) const { return std::find(memories_.begin(), memories_.end(), memory) != memories_.end(); }
  bool is_named(PolicySpec::Part part) const { return PolicySpec::is_among(names_, part); }
  /// The next smaller groups of images that a section may be run in; 0: there are none. Who names how many images go through the network at once
  /// names that for its sections, too.
  Index fewer(Index images) const { return images == 1 || is_named(PolicySpec::Part::images) ? 0 : ceil_div(images, 2); }
  /// What Winograd's algorithm works with in layers [begin, end), as `scratch` says for their channels, and a little for others that ask for some.
  Index workspace_of(Index begin, Index end, ScratchOf scratch) const {
    Index bytes = most_scratch(table_, begin, end, rates_, scratch);
    for (Index l = begin; l < end; ++l)
      if (target_.gives_workspace(table_.node(l).layer)) bytes = std::max(bytes, least_workspace);
    return bytes;
  }
  /// Whether a choice that is as fast makes another superfluous. Of what followers do likewise, images alone make a difference that counts in large
  /// networks.
  bool replaces(const SectionChoice& choice, const SectionChoice& other) const {
    const Partition &p = choice.partition(), &q = other.partition();
    return (!thorough_ || choice.behind() <= other.behind()) && (!section_.followed || (thorough_ ? is_run_as(p, q) : p.images == q.images)) &&
           choice.takes_no_more_bytes(other, section_.beside);
  }
  /// Tries one way to run the section. `at_least`: seconds that it will take, as far as they are known; if a choice takes no more, and no more
  /// bytes, this one need not be timed. Nothing if the rows do not carry the slabs.
  std::optional<Tried> try_one(Partition p, double at_least = unknown) {
    if (p.images == images_) p.images = 0;
    p.workspace_bytes = section_.workspace_bytes;
    auto stages = make_section_stages(table_, section_.whole, policy_, p, target_, images_, options_, section_.alone);
    if (stages.empty()) return {};
    if (p.input == SectionInput::offload && !detail::offload_input(table_, policy_, options_, stages)) return {};
    const std::vector<StageNeeds> needs = needs_of(table_, policy_, options_, stages);
    const SectionProfile profile = profile_section(table_, policy_, target_, options_, stages, needs);
    const Index at_once = slabs_at_once(stages, images_, policy_.streams);
    Partition shared = p;
    shared.workspace_bytes = named_workspace_;
    std::vector<std::pair<StepMemory, SectionChoice>> trials;
    trials.emplace_back(StepMemory::shared_workspace, SectionChoice(*section_.border, shared, profile, at_once));
    const SectionPeaks peaks = trials.back().second.peaks(0);
    Tried tried{peaks, peaks, at_least, trials.back().second.forward_counts(section_.beside)};
    tried.forward_counts |= wants(StepMemory::in_place) && p.forward == 1;              // gradients in place want slabs in both passes
    for (const Stage& stage : stages) tried.forward_counts |= stage.forward_repeated;   // in the backward pass, too
    if (!wants(StepMemory::shared_workspace) || section_.is_ample) trials.clear();
    if (own_workspaces_) trials.emplace_back(StepMemory::own_workspaces, SectionChoice(*section_.border, p, profile));
    const std::vector<StageNeeds> remade = needs_in_place(stages);
    if (wants(StepMemory::in_place) && remade.empty()) {
      trials.emplace_back(StepMemory::in_place, SectionChoice(*section_.border, p, profile, at_once, tensor_places(table_, stages, needs)));
      note_in_place(trials.back().second, tried);
    }
    std::erase_if(trials, [&](const auto& trial) { return is_beaten(trial.first, trial.second, at_least); });
    if (!trials.empty()) {
      const SecondsOfSection seconds = seconds_.of(policy_, p, stages, needs);
      tried.seconds = seconds.all;
      if (section_.column_seconds < 0) section_.column_seconds = tried.seconds;
      for (auto& [memory, choice] : trials) {
        choice.set_seconds(seconds.all, seconds.forward);
        section_.choices.of(memory).push_back(std::move(choice));
      }
    }
    if (!remade.empty()) try_remade(p, stages, remade, at_least, tried);
    return tried;
  }
  void note_in_place(const SectionChoice& choice, Tried& tried) const {
    tried.in_place = choice.peaks(0, true);
    tried.forward_counts |= choice.forward_counts(section_.beside);
  }
  /// Whether a known choice takes no more bytes, and no more than so many seconds.
  bool is_beaten(StepMemory memory, const SectionChoice& choice, double seconds) const {
    return std::any_of(section_.choices.of(memory).begin(), section_.choices.of(memory).end(),
                       [&](const SectionChoice& other) { return other.seconds() <= seconds && replaces(other, choice); });
  }
  /// What these stages need with gradients in the places of values, if that is wanted and their steps are others then: they make something again
  /// for that, or inputs of a sum have one gradient; else empty.
  std::vector<StageNeeds> needs_in_place(const std::vector<Stage>& stages) const {
    if (policy_.gradients_in_place || !wants(StepMemory::in_place) || !options_.training) return {};
    const bool may_share = may_share_gradients(table_, stages);
    const bool may_differ =
        std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return s.partition.cut != Cut::share && s.backward.slabs() > 1; });
    if (!may_share && !may_differ) return {};
    std::vector<StageNeeds> in_place = needs_of(table_, policy_in_place_, options_, stages);
    if (!may_share && !remakes_in_slabs(in_place)) in_place.clear();
    return in_place;
  }
  /// The same way with gradients in the places of values, where it makes more again.
  void try_remade(const Partition& p, const std::vector<Stage>& stages, const std::vector<StageNeeds>& in_place, double at_least, Tried& tried) {
    SectionChoice choice(*section_.border, p, profile_section(table_, policy_in_place_, target_, options_, stages, in_place),
                         slabs_at_once(stages, images_, policy_.streams), tensor_places(table_, stages, in_place));
    if (is_beaten(StepMemory::in_place, choice, at_least)) return;
    note_in_place(choice, tried);
    const SecondsOfSection seconds = seconds_.of(policy_in_place_, p, stages, in_place);
    choice.set_seconds(seconds.all, seconds.forward);
    section_.choices.of(StepMemory::in_place).push_back(std::move(choice));
  }
  /// Tries slabs of images, slabs of rows of all images or of one, and what is computed again.
  void try_all() {
    const bool all_differ = !options_.training || is_named(PolicySpec::Part::recompute) || (section_.followed && thorough_);
    const auto differs = detail::find_different(table_, options_, section_.whole, all_differ);
    const bool vector = section_.whole.back().vector, is_long = section_.border->end() - section_.border->begin() > most_cut;
    std::array<double, recomputes.size()> columns;   // seconds without slabs of rows, of more images
    columns.fill(unknown);
    for (Index images = images_; images >= 1; images = fewer(images)) {
      const bool every = detail::is_small(table_) || images_ == table_.input.n || images_ == 1 || is_named(PolicySpec::Part::images);
      const bool rows = !vector && !is_long && (thorough_ || (every && (images == images_ || images == 1)));
      for (std::size_t r = 0; r < recomputes.size(); ++r) {
        const Recompute recompute = recomputes[r];
        if (is_named(PolicySpec::Part::recompute) ? recompute != policy_.recompute : !options_.training && recompute != Recompute::none) continue;
        if (!differs[r]) continue;
        Partition p{.images = images, .recompute = recompute};
        if (const auto tried = try_one(p, columns[r])) columns[r] = hardly * tried->seconds;
        for (const Cut cut : {Cut::overlap, Cut::share}) {
          p.cut = cut;
          if (rows && (thorough_ || detail::slabs_may_pay(table_, options_, cut, recompute, section_.whole.size() > 1)))
            try_counts(p, columns[r], slab_counts);
        }
      }
      if (section_.whole.size() > 1 && static_cast<Index>(section_.whole.size()) <= most_passed && options_.training && rows)
        for (const Recompute recompute : {Recompute::all, Recompute::cheap}) try_passes(images, recompute);
      if ((vector && !thorough_) || is_long) break;
    }
  }
  /// Tries extra passes of slabs, both ways where the forward pass wants most; there is hardly room then for what RecomputeCheap keeps.
  void try_passes(Index images, Recompute recompute) {
    const bool keeps = recompute == Recompute::cheap, named = is_named(PolicySpec::Part::recompute);
    if (named ? recompute != policy_.recompute : keeps && !thorough_ && static_cast<Index>(section_.whole.size()) > most_kept) return;
    const bool few = keeps && !named && !thorough_;
    for (const NormPasses passes : {NormPasses::one, NormPasses::all}) {
      if (passes == NormPasses::one && (few || detail::passes_through(table_, section_.whole, 0, section_.whole.size()) < 2)) continue;
      std::vector<Index> counts(slab_counts.begin(), slab_counts.end());
      for (const bool both_ways : {false, true}) {
        if (both_ways && few) break;
        Partition p{.images = images, .passes = passes, .forward_passes = both_ways, .recompute = recompute};
        const auto tried = try_one(p);
        p.cut = Cut::overlap;
        counts = try_counts(p, tried ? hardly * tried->seconds : unknown, counts);
      }
    }
  }
  /// The partitions of the choices that are known for such memories, each once and without a workspace.
  template <class Memories>
  std::vector<Partition> partitions_of(const Memories& memories) const {
    std::vector<Partition> partitions;
    for (const StepMemory memory : memories)
      for (const SectionChoice& choice : section_.choices.of(memory)) {
        Partition p = choice.partition();
        p.workspace_bytes = -1;
        if (std::find(partitions.begin(), partitions.end(), p) == partitions.end()) partitions.push_back(p);
      }
    return partitions;
  }
  /// Those that are worth knowing, once more with an input that is offloaded.
  void try_offloaded() {
    keep_best(true);
    for (Partition p : partitions_of(memories_)) {
      p.input = SectionInput::offload;
      try_one(p);
    }
  }
  /// Those that are worth knowing in workspaces of their own, once more with ample ones.
  void try_ample() {
    section_.is_ample = true;
    for (const Partition& partition : partitions_of(std::array{StepMemory::own_workspaces, StepMemory::in_place})) try_one(partition);
    section_.is_ample = false;
  }
  /// Sorts choices by their seconds. `all`: those that others beat in everything go.
  void keep_best(bool all) {
    for (const StepMemory memory : memories_) {
      std::vector<SectionChoice>& choices = section_.choices.of(memory);
      sort_by_seconds(choices);
      if (all) drop_beaten(choices);
    }
  }
  /// All that the partition of the section before may say of factors of a scale, which are not cut into slabs of rows.
  void try_followers() {
    const Index named = is_named(PolicySpec::Part::partition) ? policy_.partition(0).images : 0;   // the section before has as many
    for (Index images = named > 0 ? std::min(named, images_) : images_; images >= 1; images = fewer(images))
      for (const Recompute recompute : recomputes)
        for (const NormPasses passes : {NormPasses::none, NormPasses::one, NormPasses::all})
          for (const bool both_ways : {false, passes != NormPasses::none})
            try_one({.images = images, .passes = passes, .forward_passes = both_ways, .recompute = recompute});
  }
  /// The partition that the policy names, with as many slabs as the rows carry.
  void try_named() {
    const Partition& named = policy_.partition(0);
    Index rows = 1;   // that slabs could have at most
    for (Index l = section_.border->begin(); l < section_.border->end(); ++l) rows = std::max({rows, table_.node(l).in.h, table_.node(l).out.h});
    for (const Recompute recompute : recomputes) {
      if (named.recompute != Recompute::of_policy ? recompute != named.recompute
                                                  : is_named(PolicySpec::Part::recompute) && recompute != policy_.recompute)
        continue;
      Partition p = named;
      p.recompute = recompute, p.images = std::min(p.images, images_);
      for (Index most = std::min(std::max(p.forward, p.backward), rows); most >= 1; --most) {
        p.forward = std::min(named.forward, most), p.backward = std::min(named.backward, most);
        if (most == 1) p.cut = Cut::column;
        if (try_one(p)) break;
      }
    }
  }
  /// More and more slabs, as long as they save bytes. Where nothing is kept, the forward pass has fewer of them than the backward pass if these will
  /// do. `at_least`: seconds that any will take. Returns the counts less those with which the forward pass cannot decide how many bytes the
  /// section wants.
  std::vector<Index> try_counts(Partition p, double at_least, std::span<const Index> counts) {
    constexpr SectionPeaks most{std::numeric_limits<Index>::max() / 2, std::numeric_limits<Index>::max() / 2};
    Tried least{most, most};
    // These are there, however few bytes the section takes.
    const SectionPeaks passing{section_.border->passing_bytes(), section_.border->passing_gradients()};
    const auto falls = [&](SectionPeaks& from, const SectionPeaks& to) {
      const bool some =
          to.forward < from.forward - (from.forward + passing.forward) / 50 || to.backward < from.backward - (from.backward + passing.backward) / 50;
      from = {std::min(from.forward, to.forward), std::min(from.backward, to.backward)};
      return some;
    };
    std::vector<Index> left(counts.begin(), counts.end());
    int in_vain = 0;
    for (const Index slabs : counts) {
      const Index turns = slabs * ceil_div(images_, p.images);
      if (turns > 128) break;
      const bool apart = p.recompute == Recompute::all && p.passes == NormPasses::none;
      std::optional<Tried> one, all;   // slabs in the forward pass
      bool saves = false;
      const auto try_forward = [&](Index forward, double seconds) {
        p.forward = forward, p.backward = slabs;
        const auto tried = try_one(p, std::max(at_least, seconds));
        if (tried) {
          const bool own_places = falls(least.peaks, tried->peaks), in_place = falls(least.in_place, tried->in_place);
          saves = saves || own_places || in_place;
        }
        return tried;
      };
      if (apart && !(one = try_forward(1, 0))) break;
      if (!one || one->forward_counts) all = try_forward(slabs, one ? hardly * one->seconds : 0);
      if (!one && !all) break;
      if (one && all && slabs > 3 && all->seconds > hardly_any * one->seconds) try_forward(slabs / 2, hardly * one->seconds);
      if (!(all ? all : one)->forward_counts) std::erase(left, slabs);
      const double seconds = all ? all->seconds : one->seconds;
      if (saves) in_vain = 0;
      else if (turns >= 2 * policy_.streams) ++in_vain;   // fewer slabs, of which each stream has one, take as much as one that is not cut
      if (!thorough_ && (in_vain > 1 || seconds > most_times * section_.column_seconds)) break;
      at_least = hardly * seconds;
    }
    return left;
  }
  /// Drops ways to run a section that another beats in everything. Pre: they rise by their seconds.
  void drop_beaten(std::vector<SectionChoice>& choices) const {
    std::vector<SectionChoice> best;
    for (SectionChoice& c : choices)
      if (std::none_of(best.begin(), best.end(), [&](const SectionChoice& b) { return replaces(b, c); })) best.push_back(std::move(c));
    choices = std::move(best);
  }
};
}   // namespace lrcnn
