#pragma once
// Policies for a number of bytes: the fastest that a network's step can be run with, from the fewest bytes to the most that are of use.
//
// The frontier of a network and an input does not depend on any budget. Its bytes are a grid; for each of them plan/section_search.hpp finds the
// fastest sections, and the plan's true peak, placement included, is measured. A budget takes the fastest point that fits, so
// more bytes are never slower. A PolicySpec with `fit_bytes` is such a budget: what else it names holds, the rest is chosen.
#include <lrcnn/plan/section_search.hpp>
#include <lrcnn/core/machine.hpp>
#include <cmath>
#include <optional>
namespace lrcnn {
/// The best policies by rising bytes and falling seconds.
struct Frontier {
  std::vector<SolvedPolicy> points{};
  /// The fastest that needs no more bytes; nullptr: none does.
  const SolvedPolicy* fastest(Index bytes) const {
    const auto behind = std::upper_bound(points.begin(), points.end(), bytes, [](Index b, const SolvedPolicy& p) { return b < p.bytes; });
    return behind == points.begin() ? nullptr : &*(behind - 1);
  }
  /// Pre: there is a point.
  const SolvedPolicy& smallest() const { return points.front(); }
};
namespace detail {
/// Collects the points of a frontier.
class FrontierSearch {
 public:
  FrontierSearch(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs, int threads)
      : table_(table), policy_(policy), target_(target), options_(options), costs_(costs), threads_(threads), of_steps_(costs, table, target) {
    if (!policy.names(PolicySpec::Part::conv_algorithm)) policy_.conv_algorithm = ConvAlgorithm::fastest;
    policy_.fit_bytes = 0, policy_.named = 0;
    for (std::size_t part = 0; part < PolicySpec::part_kinds; ++part)
      names_ |= policy.names(static_cast<PolicySpec::Part>(part)) ? std::uint32_t{1} << part : 0;
  }
  Frontier run() {
    if (named(PolicySpec::Part::partition) && policy_.partition_count > 1)
      throw PlanError(error_text("a policy with Fit names " + std::to_string(policy_.partition_count) + " partitions",
                                 "Fit chooses where sections end, and how many there are", "name one partition for all of them, or none"));
    const Index batch = table_.input.n;
    for (Index images = batch; images >= 1; images = images == 1 ? 0 : ceil_div(images, 2)) {
      if (!named(PolicySpec::Part::images)) policy_.images = images == batch ? 0 : images;
      search();
      if (named(PolicySpec::Part::images) || (options_.training && takes_statistics_of_batch())) break;
    }
    if (found_.empty()) add_uncut();   // more sections than a policy can name
    return frontier();
  }

 private:
  static constexpr std::size_t placed = 4;   ///< policies for a number of bytes whose plans are placed
  static constexpr double grid = 16;         ///< bytes of the grid that lie between one number and its double
  /// Searches for sections that share a workspace, and, where scratch is worth it, for such that each have their own.
  struct Searches {
    SectionSearch shared;
    std::optional<SectionSearch> apart;
  };
  const Table& table_;
  PolicySpec policy_;
  const Target& target_;
  const PlanOptions& options_;
  const Costs& costs_;
  const int threads_;
  StepCosts of_steps_;
  std::uint32_t names_ = 0;
  std::vector<SolvedPolicy> found_{};
  bool named(PolicySpec::Part part) const { return PolicySpec::is_among(names_, part); }
  bool takes_statistics_of_batch() const {
    return std::any_of(table_.nodes.begin(), table_.nodes.end(),
                       [](const Node& node) { return waits(node, true) && node.layer.norm.over == Norm::Over::batch; });
  }
  /// What Winograd's algorithm works well with in all convolutions that it fits, where the backend says so: then more is of use on large maps, up to
  /// a sixth of all bytes and 64 MiB. None where no layer wants any.
  std::vector<Index> workspaces_for(Index bytes) const {
    if (named(PolicySpec::Part::workspace) || !target_.uses_workspace) return {policy_.workspace_bytes};
    if (std::none_of(table_.nodes.begin(), table_.nodes.end(), [&](const Node& node) {
          const LayerRules& rules = rules_of(node.layer);
          return rules.uses_workspace || (rules.sums_channels && target_.sums_use_workspace);
        }))
      return {0};
    const Index least = costs_.rates().least_workspace;
    const Index large = std::max(least, bytes < 6 ? 0 : std::min<Index>(64_MiB, leap(bytes / 6)));
    if (costs_.rates().winograd_bytes == nullptr || policy_.conv_algorithm == ConvAlgorithm::direct)
      return large == least ? std::vector{least} : std::vector{large, std::max(least, large / 4), least};
    Index good = least;
    for (const Node& node : table_.nodes)
      if (fits_winograd(node.layer)) good = std::max(good, costs_.rates().good_scratch(node.in.c, node.out.c));
    return {std::max(large, good), std::min(large, good), least};
  }
  /// Along the grid downward, from what all could use to the fewest bytes. Small networks are searched for each byte that makes a difference.
  void search() {
    Searches sections{SectionSearch(table_, policy_, target_, options_, costs_, names_, threads_), {}};
    if (costs_.rates().winograd_bytes != nullptr && policy_.conv_algorithm != ConvAlgorithm::direct && workspaces_for(Index{1} << 40).size() > 1)
      sections.apart.emplace(table_, policy_, target_, options_, costs_, names_, threads_, true);
    const bool every_byte = sections.shared.choice_count() < 500;
    Index room = std::numeric_limits<Index>::max() / 2, live = solve(sections, room);
    if (live < 0) return;
    const double most = std::floor(std::log2(static_cast<double>(live)) * grid);
    Index feasible = room;   // the fewest bytes that were
    for (double step = 0; live >= 0; ++step) {
      feasible = std::min(room, live);
      const auto next = static_cast<Index>(std::exp2((most - step) / grid));
      room = every_byte ? feasible - 1 : std::min(feasible - 1, next);
      live = solve(sections, room);
    }
    for (Index low = room; !every_byte && feasible - low > std::max<Index>(1, feasible / 1000);) {   // the fewest bytes lie between
      const Index middle = low + (feasible - low) / 2;
      (solve(sections, middle) < 0 ? low : feasible) = middle;
    }
  }
  /// Adds the fastest policies for so many bytes. Returns the most bytes that are live at once under the fastest, or -1 if there is none.
  Index solve(const Searches& searches, Index room) {
    const std::vector<Index> workspaces = workspaces_for(room);
    const std::size_t shared = workspaces.size() > 1 ? workspaces.size() - 1 : 1;   // the last one only if no other will do
    std::vector<std::vector<SolvedPolicy>> found(shared + searches.apart.has_value());
    on_threads(found.size(), threads_, [&] {
      return [&](std::size_t w) {
        found[w] = with_seconds(w < shared ? searches.shared.fastest(room, workspaces[w], placed) : searches.apart->fastest(room, 0, placed));
      };
    });
    std::size_t best = 0;
    for (std::size_t w = 1; w < shared; ++w)   // a smaller one leaves more room; it makes convolutions a little slower
      if (!found[w].empty() && (found[best].empty() || found[w][0].seconds < 0.98 * found[best][0].seconds)) best = w;
    if (found[best].empty() && workspaces.size() > 1) found[best] = with_seconds(searches.shared.fastest(room, workspaces.back(), placed));
    const Index live = add_placed(searches.shared, found[best], room);
    return searches.apart ? std::max(live, add_placed(*searches.apart, found.back(), room)) : live;
  }
  /// Adds policies that a search found for so many bytes: several, since placement may make the very fastest larger, and more where it makes all
  /// larger. Returns the live bytes of the first; -1: there is none.
  Index add_placed(const SectionSearch& search, const std::vector<SolvedPolicy>& solved, Index room) {
    const std::size_t before = found_.size();
    const Index live = add(solved);
    const auto fits = [&](const SolvedPolicy& p) { return p.bytes <= room + room / 200; };
    if (live >= 0 && std::none_of(found_.begin() + static_cast<Index>(before), found_.end(), fits)) {
      const bool own = solved[0].policy.partition(0).workspace_bytes >= 0;
      std::vector<SolvedPolicy> more = with_seconds(search.fastest(room, own ? 0 : solved[0].policy.workspace_bytes, 4 * placed));
      more.erase(more.begin(), more.begin() + static_cast<Index>(std::min(more.size(), placed)));
      add(more);
    }
    return live;
  }
  /// Policies with the seconds of all their steps, by rising seconds; without those of too many steps.
  std::vector<SolvedPolicy> with_seconds(std::vector<SolvedPolicy> found) const {
    StepCosts of_steps(costs_, table_, target_);
    std::erase_if(found, [&](SolvedPolicy& p) {
      const SectionProfile cost = plan_cost(p.policy, of_steps);
      p.seconds = cost.seconds(), p.steps = cost.steps;
      return cost.steps > most_steps;
    });
    std::stable_sort(found.begin(), found.end(), [](const SolvedPolicy& a, const SolvedPolicy& b) { return a.seconds < b.seconds; });
    return found;
  }
  /// The policy as it is, with sections where barriers are and nothing chosen.
  void add_uncut() {
    SolvedPolicy uncut{.policy = policy_};
    if (!named(PolicySpec::Part::workspace) && target_.uses_workspace) uncut.policy.workspace_bytes = workspaces_for(64_MiB).front();
    const SectionProfile cost = plan_cost(uncut.policy, of_steps_);
    uncut.seconds = cost.seconds(), uncut.steps = cost.steps;
    add({uncut});
  }
  /// Seconds and steps of a policy's plan: exact but for plans of very many steps.
  SectionProfile plan_cost(const PolicySpec& policy, StepCosts& of_steps) const {
    SectionProfile cost = lrcnn::plan_cost(table_, policy, target_, options_, of_steps, true);
    if (cost.sampled && cost.steps < 100'000) cost = lrcnn::plan_cost(table_, policy, target_, options_, of_steps);
    return cost;
  }
  /// Adds policies, and the same with gradients in place where that saves bytes, with the bytes that their plans have. Returns the live bytes of
  /// the first.
  Index add(const std::vector<SolvedPolicy>& solved) {
    std::vector<ArenaSize> sizes(2 * solved.size());   // of each, and of it with gradients in place
    on_threads(sizes.size(), threads_, [&] {
      return [&](std::size_t i) {
        PolicySpec policy = solved[i / 2].policy;
        if (i % 2 == 1 && (!options_.training || policy.gradients_in_place)) return;
        policy.gradients_in_place |= i % 2 == 1;
        sizes[i] = arena_at_run_time<>(table_, policy, target_, options_);
      };
    });
    for (std::size_t i = solved.size(); i-- > 0;) {
      const ArenaSize &size = sizes[2 * i], &in_place = sizes[2 * i + 1];
      if (in_place.bytes > 0 && in_place.bytes < size.bytes) {
        SolvedPolicy other = solved[i];
        other.policy.gradients_in_place = true;
        const SectionProfile cost = plan_cost(other.policy, of_steps_);
        other.bytes = in_place.bytes, other.seconds = cost.seconds(), other.steps = cost.steps;
        found_.push_back(std::move(other));
      }
      found_.push_back(solved[i]);
      found_.back().bytes = size.bytes;
    }
    return solved.empty() ? -1 : sizes[0].lower_bound;
  }
  /// What no other point beats.
  Frontier frontier() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const SolvedPolicy& a, const SolvedPolicy& b) { return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds; });
    Frontier result;
    for (SolvedPolicy& p : found_)
      if (result.points.empty() || p.seconds < result.points.back().seconds) result.points.push_back(std::move(p));
    return result;
  }
};
}   // namespace detail
/// The frontier of a network on an input. `policy`: what it names (PolicySpec::names()) holds at every point, as do precision, streams
/// and prefetch; all else is chosen.
/// Errors:  PlanError if no policy can be planned, as make_plan(), or if parts that are named contradict Fit
/// Cost:    on two cores, from some tenths of a second to three for 20 to 400 layers; more for batches of hundreds
/// `threads`: at most so many work on it; 0: as many as the process may use. The result is the same with any number.
inline Frontier find_frontier(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs,
                              int threads = 0) {
  detail::check_norms(table, policy, options.training);
  return detail::FrontierSearch(table, policy, target, options, costs, threads > 0 ? threads : processor_count()).run();
}
/// The fastest policy of a frontier whose plan takes at most policy.fit_bytes. `policy`: what the frontier was found for.
/// Errors:  PlanError naming the fewest bytes that there is a plan for
inline PolicySpec fit(const Frontier& frontier, const Table& table, const PolicySpec& policy) {
  if (const SolvedPolicy* const best = frontier.fastest(policy.fit_bytes)) return best->policy;
  const Index least = frontier.smallest().bytes;
  throw PlanError(error_text(to_string(policy) + " leaves " + format_bytes(policy.fit_bytes) + " for a step on input " + to_string(table.input),
                             "the fewest bytes that a plan was found for are " + std::to_string(least),
                             "use Fit<" + std::to_string(least) + "> or more, or " +
                                 (policy.named != 0 ? "name fewer parts of the policy, or " : "") + "give smaller batches"));
}
/// The same of a frontier that is found for this.
/// Errors:  as find_frontier(), too
inline PolicySpec fit(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs) {
  return fit(find_frontier(table, policy, target, options, costs), table, policy);
}
}   // namespace lrcnn
