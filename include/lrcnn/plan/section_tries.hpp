#pragma once
// The ways to run a section that are worth knowing: those that are tried, less those that another beats in everything.
#include <lrcnn/plan/section_choice.hpp>
#include <limits>
#include <optional>
namespace lrcnn {
class SectionTries {
 public:
  /// `policy`: what holds for the whole step; `names`: a bit for each PolicySpec::Part of it that is not to be chosen; `images`: how many the
  /// step has at once; `own_workspaces`: each section has a workspace of its own. Pre: the arguments outlive the object.
  SectionTries(const Table& table, const PolicySpec& policy, std::uint32_t names, const Target& target, const PlanOptions& options,
               const Costs& costs, Index images, bool own_workspaces)
      : table_(table),
        policy_(policy),
        names_(names),
        target_(target),
        options_(options),
        images_(images),
        rates_(costs.rates()),
        costs_(costs, table, target),
        own_workspaces_(own_workspaces) {}
  /// The choices of a section; none if it cannot be run. `followed`: a section without a partition of its own may follow, and is run likewise.
  std::vector<SectionChoice> find(const SectionBorder& border, bool followed) {
    border_ = &border;
    followed_ = followed;
    choices_.clear();
    const auto whole = detail::split_layers(table_, border.begin(), border.end(), options_.training, [](Index) { return false; });
    const bool numbered = !whole.back().behind_means;
    workspace_bytes_ = !own_workspaces_ ? -1 : numbered ? good_workspace(border.begin(), border.end()) : good_workspace(0, table_.size());
    if (is_named(PolicySpec::Part::partition)) try_named();
    else if (numbered) try_all(whole);
    else try_followers();
    if (numbered) drop_beaten();
    for (const SectionChoice& choice : choices_) choice.find_peaks();
    return std::move(choices_);
  }
  /// Whether a section without a partition of its own is run so, if the section before it has this partition.
  static bool follows(const Partition& p, const Partition& before) {
    return p.images == before.images && p.recompute == before.recompute && p.passes == before.passes && p.forward_passes == before.forward_passes;
  }

 private:
  static constexpr std::array recomputes{Recompute::none, Recompute::light, Recompute::cheap, Recompute::all};
  static constexpr double most_times = 8;    ///< how many times as long as the column a section may take
  static constexpr Index most_passed = 10;   ///< stages of a section that norms divide up to which extra passes are looked at: each norm adds one
  static constexpr Index most_cut = 48;      ///< layers of a section up to which slabs are tried: longer ones are not worth their halos
  static constexpr double hardly = 0.98;     ///< how much faster more slabs may be than fewer, for the caches' sake
  static constexpr double unknown = -1;
  static constexpr Index least_workspace = 256_KiB;
  struct Tried {
    SectionPeaks peaks;
    double seconds = 0;   ///< at least
  };
  const Table& table_;
  const PolicySpec& policy_;
  const std::uint32_t names_;
  const Target& target_;
  const PlanOptions& options_;
  const Index images_;
  const Rates& rates_;
  StepCosts costs_;
  const bool own_workspaces_;
  Index workspace_bytes_ = -1;              ///< of the section at hand; a follower has that of a section before it, here as much as any
  const SectionBorder* border_ = nullptr;   ///< of the section at hand
  bool followed_ = false;
  std::vector<SectionChoice> choices_{};

  bool is_named(PolicySpec::Part part) const { return PolicySpec::is_among(names_, part); }
  /// What Winograd's algorithm works well with in layers [begin, end), and a little for others that ask for some.
  Index good_workspace(Index begin, Index end) const {
    Index bytes = 0;
    for (Index l = begin; l < end; ++l) {
      const Node& node = table_.node(l);
      const LayerRules& rules = rules_of(node.layer);
      if (rules.uses_workspace || (rules.sums_channels && target_.sums_use_workspace)) bytes = std::max(bytes, least_workspace);
      if (detail::fits_winograd(node.layer)) bytes = std::max(bytes, rates_.good_scratch(node.in.c, node.out.c));
    }
    return bytes;
  }
  /// Whether a choice that is as fast makes another superfluous. Of what followers do likewise, images alone make a difference that counts.
  bool replaces(const SectionChoice& choice, const SectionChoice& other) const {
    return (!followed_ || choice.partition().images == other.partition().images) && choice.takes_no_more_bytes(other);
  }
  /// Tries one way to run the section. `at_least`: seconds that it will take, as far as they are known; if a choice takes no more, and no more
  /// bytes, this one need not be timed. Nothing if the rows do not carry the slabs.
  std::optional<Tried> try_one(Partition p, double at_least = unknown) {
    if (p.images == images_) p.images = 0;
    p.workspace_bytes = workspace_bytes_;
    const auto stages = make_section_stages(table_, border_->begin(), border_->end(), policy_, p, target_, images_, options_);
    if (stages.empty()) return {};
    SectionProfile profile = profile_section(table_, policy_, target_, options_, stages);
    SectionChoice choice(*border_, p, profile);
    const Tried beaten{choice.peaks(0), at_least};
    if (std::any_of(choices_.begin(), choices_.end(),
                    [&](const SectionChoice& other) { return other.seconds() <= at_least && replaces(other, choice); }))
      return beaten;
    add_seconds(profile, table_, policy_, target_, options_, stages, costs_, true);
    choice.set_seconds(profile.seconds());
    choices_.push_back(std::move(choice));
    return Tried{beaten.peaks, profile.seconds()};
  }
  /// Tries slabs of images, slabs of rows of all images or of one, and what is computed again.
  void try_all(const std::vector<Stage>& whole) {
    const bool vector = whole.back().vector, is_long = border_->end() - border_->begin() > most_cut;
    std::array<double, recomputes.size()> columns;   // seconds without slabs of rows, of more images
    columns.fill(unknown);
    for (Index images = images_; images >= 1; images = images == 1 ? 0 : ceil_div(images, 2)) {
      const bool rows = !vector && !is_long && (images == images_ || images == 1);
      for (std::size_t r = 0; r < recomputes.size(); ++r) {
        const Recompute recompute = recomputes[r];
        if (is_named(PolicySpec::Part::recompute) ? recompute != policy_.recompute : !options_.training && recompute != Recompute::none) continue;
        Partition p{.images = images, .recompute = recompute};
        if (const auto tried = try_one(p, columns[r])) columns[r] = hardly * tried->seconds;
        for (const Cut cut : {Cut::overlap, Cut::share}) {
          p.cut = cut;
          if (rows && recompute != Recompute::cheap) try_counts(p, columns[r]);
        }
      }
      for (const bool both_ways : {false, true}) {
        if (whole.size() == 1 || static_cast<Index>(whole.size()) > most_passed || !options_.training || !rows) continue;
        Partition p{.images = images, .passes = true, .forward_passes = both_ways, .recompute = Recompute::all};
        const auto tried = try_one(p);
        p.cut = Cut::overlap;
        try_counts(p, tried ? hardly * tried->seconds : unknown);
      }
      if (vector || is_long) break;
    }
  }
  /// All that the partition of the section before may say of factors of a scale, which are not cut into slabs of rows.
  void try_followers() {
    for (Index images = images_; images >= 1; images = images == 1 ? 0 : ceil_div(images, 2))
      for (const Recompute recompute : recomputes)
        for (const int passes : {0, 1, 2}) try_one({.images = images, .passes = passes > 0, .forward_passes = passes > 1, .recompute = recompute});
  }
  /// The partition that the policy names, with as many slabs as the rows carry.
  void try_named() {
    const Partition& named = policy_.partition(0);
    for (const Recompute recompute : recomputes) {
      if (named.recompute != Recompute::of_policy ? recompute != named.recompute
                                                  : is_named(PolicySpec::Part::recompute) && recompute != policy_.recompute)
        continue;
      Partition p = named;
      p.recompute = recompute;
      for (Index most = std::max(p.forward, p.backward); most >= 1; --most) {
        p.forward = std::min(named.forward, most), p.backward = std::min(named.backward, most);
        if (most == 1) p.cut = Cut::column;
        if (try_one(p)) break;
      }
    }
  }
  /// More and more slabs, as long as they save bytes. Where nothing is kept the forward pass may have fewer of them than the backward pass.
  /// `at_least`: seconds that any will take.
  void try_counts(Partition p, double at_least) {
    SectionPeaks least{std::numeric_limits<Index>::max(), std::numeric_limits<Index>::max()};
    int in_vain = 0;
    for (const Index slabs : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
      if (slabs * ceil_div(images_, p.images) > 128) return;
      p.forward = p.backward = slabs;
      const auto tried = try_one(p, at_least);
      if (!tried) return;
      const auto falls = [](Index from, Index to) { return to < from - from / 50; };
      in_vain = falls(least.forward, tried->peaks.forward) || falls(least.backward, tried->peaks.backward) ? 0 : in_vain + 1;
      if (in_vain > 1 || tried->seconds > most_times * choices_.front().seconds()) return;
      least = {std::min(least.forward, tried->peaks.forward), std::min(least.backward, tried->peaks.backward)};
      if (p.recompute == Recompute::all && !p.passes) {
        p.forward = 1;
        try_one(p, at_least);
        p.forward = slabs / 2;
        if (p.forward > 1) try_one(p, at_least);
      }
      at_least = hardly * tried->seconds;
    }
  }
  /// Drops ways to run a section that another beats in everything.
  void drop_beaten() {
    std::stable_sort(choices_.begin(), choices_.end(), [](const SectionChoice& a, const SectionChoice& b) { return a.seconds() < b.seconds(); });
    std::vector<SectionChoice> best;
    for (SectionChoice& c : choices_)
      if (std::none_of(best.begin(), best.end(), [&](const SectionChoice& b) { return replaces(b, c); })) best.push_back(std::move(c));
    choices_ = std::move(best);
  }
};
}   // namespace lrcnn
