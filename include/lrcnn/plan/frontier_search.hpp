#pragma once
// How a frontier is found. It does not depend on any budget.
//
// Its bytes are a grid; for each of them plan/section_search.hpp finds the fastest sections, and the plan's true peak, placement included, is
// measured.
#include <lrcnn/plan/frontier.hpp>
#include <lrcnn/plan/relaxed_policies.hpp>
#include <lrcnn/plan/section_costs.hpp>
#include <lrcnn/plan/section_search.hpp>
#include <lrcnn/plan/whole_policies.hpp>
#include <cmath>
#include <map>
#include <set>
namespace lrcnn {
namespace detail {
/// Collects the points of a frontier.
class FrontierSearch {
 public:
  FrontierSearch(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs, int threads)
      : table_(table),
        policy_(policy),
        target_(target),
        options_(options),
        costs_(costs),
        threads_(threads),
        section_costs_(table, target, options, costs),
        names_(policy.named_parts()) {
    if (!policy.names(PolicySpec::Part::conv_algorithm)) policy_.conv_algorithm = ConvAlgorithm::fastest;
    policy_.fit_bytes = 0, policy_.named = 0, policy_.may_offload = false, policy_.workspace_bytes = target.workspace(policy_.workspace_bytes);
    if (!options.training) policy_.gradients_in_place = false;   // there are none
  }
  Frontier run() {
    if (named(PolicySpec::Part::partition) && policy_.partition_count > 1)
      throw PlanError(error_text("a policy that is chosen for some bytes names " + std::to_string(policy_.partition_count) + " partitions",
                                 "where sections end, and how many there are, is chosen, too", "name one partition for all of them, or none"));
    if (named(PolicySpec::Part::partition) && !policy_.keeps_inputs())
      throw PlanError(error_text("a policy that is chosen for some bytes names " + to_string(policy_.partition(0)) + " for all of its sections",
                                 "whether the input of a section is made again or offloaded is chosen, too",
                                 "leave RecomputeInput, RecomputeInputAlone and OffloadInput out of it; MayOffload allows offloading"));
    const Index batch = table_.input.n;
    for (Index images = batch; images >= 1; images = images == 1 ? 0 : ceil_div(images, 2)) {
      if (!named(PolicySpec::Part::images)) policy_.images = images == batch ? 0 : images;
      search();
      if (named(PolicySpec::Part::images) || (options_.training && takes_statistics_of_batch(table_))) break;
    }
    if (found_.empty()) add_uncut();   // more sections than a policy can name
    add_others();
    if (options_.training && !named(PolicySpec::Part::partition)) add_relaxed();
    return {best_of(found_)};
  }

 private:
  static constexpr std::size_t placed = 4;    ///< policies for a number of bytes whose plans are placed
  static constexpr double grid = 16;          ///< bytes of the grid that lie between one number and its double
  static constexpr std::size_t at_once = 4;   ///< bytes of the grid that are searched for at once, whatever the number of threads
  /// How thorough a search is: the fewer ways there are to run a network's sections, the more.
  struct Effort {
    bool every_byte = false;   ///< each byte that makes a difference is searched for, rather than those of a grid
    bool exact = false;        ///< all ways to run sections are tried, and their bytes are counted exactly
    bool every_kind = false;   ///< it goes on below the largest live bytes of all kinds of memory, which is slower, rather than of the first kind
    int steps_searched = 0;    ///< how often what lies below steps of the frontier is searched for
    explicit Effort(const SectionCatalog& catalog)
        : every_byte(catalog.choice_count() < 500),
          exact(catalog.is_thorough()),
          every_kind(!every_byte || exact),
          steps_searched(every_byte ? 0
                         : exact    ? 30
                                    : 3) {}
  };
  const Table& table_;
  PolicySpec policy_;
  const Target& target_;
  const PlanOptions& options_;
  const Costs& costs_;
  const int threads_;
  SectionCosts section_costs_;
  const std::uint32_t names_;
  std::vector<SolvedPolicy> found_{};
  std::map<Index, double> known_{};   ///< by bytes, the least seconds of what was found for no more
  std::set<Index> searched_{};        ///< bytes below steps
  std::mutex mutex_;
  std::map<std::string, ArenaSize> arenas_{};   ///< by a policy's text
  bool named(PolicySpec::Part part) const { return PolicySpec::is_among(names_, part); }
  /// Whether a partition is named with a workspace, which every section has for itself then: none is shared.
  bool names_own_workspace() const { return named(PolicySpec::Part::partition) && policy_.partition(0).workspace_bytes >= 0; }
  /// Whether the search chooses the workspace that sections share.
  bool chooses_workspace() const { return !named(PolicySpec::Part::workspace) && target_.uses_workspace && !names_own_workspace(); }
  /// What Winograd's algorithm works well with in all convolutions that it fits, where the backend says so: then more is of use on large maps, up to
  /// a sixth of all bytes and 64 MiB. None where no layer wants any.
  std::vector<Index> workspaces_for(Index bytes) const {
    if (!chooses_workspace()) return {policy_.workspace_bytes};
    if (std::none_of(table_.nodes.begin(), table_.nodes.end(), [&](const Node& node) { return target_.gives_workspace(node.layer); })) return {0};
    const Index least = costs_.rates().least_workspace;
    const Index large = std::max(least, bytes < 6 ? 0 : std::min<Index>(64_MiB, leap(bytes / 6)));
    if (costs_.rates().winograd_bytes == nullptr || policy_.conv_algorithm == ConvAlgorithm::direct)
      return large == least ? std::vector{least} : std::vector{large, std::max(least, large / 4), least};
    const Index good = std::max(least, most_scratch(table_, 0, table_.size(), costs_.rates(), &Rates::good_scratch));
    return {std::max(large, good), std::min(large, good), least};
  }
  /// What the memory of steps may be like: what a search looks at.
  std::vector<StepMemory> memories() const {
    const bool own =
        costs_.rates().winograd_bytes != nullptr && policy_.conv_algorithm != ConvAlgorithm::direct && workspaces_for(Index{1} << 40).size() > 1;
    std::vector<StepMemory> list;
    for (const StepMemory memory : step_memories) {
      const bool in_place = memory == StepMemory::in_place;
      if (in_place ? !options_.training : policy_.gradients_in_place || (memory == StepMemory::own_workspaces && !own)) continue;
      list.push_back(memory);
    }
    return list;
  }
  /// Along the grid downward, from what all could use to the fewest bytes. Small networks are searched for each byte that makes a difference.
  void search() {
    const SectionSearch sections(table_, policy_, target_, options_, costs_, names_, threads_, memories());
    const Effort effort(sections.catalog());
    const bool every_byte = effort.every_byte;
    Index feasible = std::numeric_limits<Index>::max() / 2;   // the fewest bytes that were
    Index live = solve(sections, effort, {feasible}).front();
    if (live < 0) return;
    const double most = std::floor(std::log2(static_cast<double>(live)) * grid);
    Index low = 0;   // the most bytes that were not
    bool ended = false;
    for (double step = 0; !ended && feasible > 0;) {
      feasible = std::min(feasible, live);
      const Index below = (feasible - 1) / target_.alignment * target_.alignment;   // buffers are multiples of it
      std::vector<Index> rooms{every_byte ? below : std::min(feasible - 1, static_cast<Index>(std::exp2((most - step++) / grid)))};
      while (!every_byte && rooms.size() < at_once)
        rooms.push_back(std::min(rooms.back() - 1, static_cast<Index>(std::exp2((most - step++) / grid))));
      const std::vector<Index> lives = solve(sections, effort, rooms);
      for (std::size_t i = 0; i < rooms.size() && !ended; ++i) {
        ended = lives[i] < 0;
        if (ended) low = rooms[i];
        else feasible = rooms[i], live = lives[i];
      }
    }
    feasible = std::min(feasible, live);
    while (!every_byte && feasible - low > std::max<Index>(1, feasible / 1000)) {   // the fewest bytes lie between
      const Index third = (feasible - low + 2) / 3;
      const std::vector<Index> rooms{low + third, std::max(low + third, feasible - third)}, lives = solve(sections, effort, rooms);
      if (lives[0] >= 0) feasible = rooms[0];
      else if (lives[1] >= 0) low = rooms[0], feasible = rooms[1];
      else low = rooms[1];
    }
    if (effort.exact) searched_.clear();   // groups of other sizes have sections of their own
    for (int i = 0; i < effort.steps_searched && search_below_steps(sections, effort); ++i) {
    }
  }
  /// Between points of which the smaller takes clearly longer: where fewer bytes than the grid tells apart make much of a difference. Just below
  /// the larger one if bytes are counted so exactly that this finds the next one, else halfway. Returns whether it has searched.
  bool search_below_steps(const SectionSearch& sections, const Effort& effort) {
    const bool next = effort.exact;
    std::vector<std::pair<double, Index>> steps;   // how many times as long; bytes
    const std::vector<SolvedPolicy> points = best_of(found_);
    for (std::size_t i = 1; i < points.size(); ++i) {
      const Index room = next ? points[i].bytes - 1 : (points[i - 1].bytes + points[i].bytes) / 2;
      const double times = points[i - 1].seconds / points[i].seconds;
      if (times > 1.02 && (next || room > points[i - 1].bytes + room / 200) && !searched_.contains(room)) steps.push_back({times, room});
    }
    std::sort(steps.rbegin(), steps.rend());
    steps.resize(std::min(steps.size(), at_once));
    std::vector<Index> rooms;
    for (const auto& [times, room] : steps) rooms.push_back(room);
    searched_.insert(rooms.begin(), rooms.end());
    solve(sections, effort, rooms);
    return !rooms.empty();
  }
  /// What was found for some bytes.
  struct Solution {
    std::vector<SolvedPolicy> policies{};
    Index live = -1;   ///< as solve() returns it
  };
  /// What is known to be the fastest within so many bytes: its bytes and seconds.
  std::pair<Index, double> known_within(Index room) const {
    const auto above = known_.upper_bound(room);
    if (above == known_.begin()) return {-1, std::numeric_limits<double>::infinity()};
    return *std::prev(above);
  }
  void add(SolvedPolicy policy) {
    if (policy.seconds < known_within(policy.bytes).second) {
      auto behind = known_.insert_or_assign(policy.bytes, policy.seconds).first;
      for (++behind; behind != known_.end() && behind->second >= policy.seconds;) behind = known_.erase(behind);
    }
    found_.push_back(std::move(policy));
  }
  /// Searches within each of these numbers of bytes, and adds the policies that it finds. An exact search leaves out those that are clearly slower
  /// than a policy known for as many bytes. Returns, for each, the bytes below which to search next: those that are live in a plan that was found;
  /// or else those of the best known policy; or a little less than `room` if a plan took more than its sections say; -1: none of these.
  std::vector<Index> solve(const SectionSearch& sections, const Effort& effort, const std::vector<Index>& rooms) {
    std::vector<Solution> solutions(rooms.size());
    on_threads(rooms.size(), threads_, [&] { return [&](std::size_t i) { solutions[i] = solve_one(sections, effort, rooms[i]); }; });
    std::vector<Index> lives;
    for (Solution& solution : solutions) {
      lives.push_back(solution.live);
      for (SolvedPolicy& policy : solution.policies) add(std::move(policy));
    }
    return lives;
  }
  /// Policies that a search finds for one kind of memory.
  struct Candidates {
    std::vector<SolvedPolicy> policies{};   ///< by rising seconds
    Index workspace = 0;                    ///< bytes of the workspace that sections share, if they do
  };
  /// Those with the best of some workspaces, which are `workspaces` by falling bytes; ask(workspace, count) searches for at most `count` with one.
  template <class Ask>
  static Candidates candidates(const SectionSearch& sections, StepMemory memory, const std::vector<Index>& workspaces, const Ask& ask) {
    if (!sections.shares_workspace(memory)) return {ask(0, placed), 0};
    Candidates best;
    const std::size_t tried = workspaces.size() > 1 ? workspaces.size() - 1 : 1;   // the last one only if no other will do
    const bool own = sections.catalog().looks_at(StepMemory::own_workspaces);      // then the largest serves nobody
    for (std::size_t w = tried > 1 && own; w < tried; ++w) {
      std::vector<SolvedPolicy> other = ask(workspaces[w], placed);   // a smaller one leaves more room; it makes convolutions a little slower
      if (other.empty() || (!best.policies.empty() && other[0].seconds >= 0.98 * best.policies[0].seconds)) continue;
      best = {std::move(other), workspaces[w]};
    }
    if (best.policies.empty() && workspaces.size() > 1) best = {ask(workspaces.back(), placed), workspaces.back()};
    return best;
  }
  /// Each kind of memory has to be faster than those before it.
  Solution solve_one(const SectionSearch& sections, const Effort& effort, Index room) {
    const std::vector<Index> workspaces = workspaces_for(room);
    Solution solution;
    bool misses = false;   // some would need more: gradients in place lie longer than the sections say
    // Of many sections what is slower than known counts, too: its plan may take far fewer bytes than there is room for.
    const std::pair<Index, double> known = known_within(effort.exact ? room : -1);
    double bound = known.second;
    for (const StepMemory memory : sections.catalog().memories()) {
      if (memory == StepMemory::in_place && !policy_.gradients_in_place && !sections.catalog().puts_in_place()) continue;
      const auto ask = [&](Index workspace, std::size_t count) { return with_seconds(sections.fastest(memory, room, workspace, count, bound)); };
      auto [found, workspace] = candidates(sections, memory, workspaces, ask);
      if (found.empty()) continue;
      Index live = -1, nearest = std::numeric_limits<Index>::max();
      const auto take = [&](const std::vector<SolvedPolicy>& policies) {   // down to the first that fits: the others are slower
        for (SolvedPolicy p : policies) {
          const ArenaSize size = arena_of(p.policy);
          p.bytes = size.bytes;
          nearest = std::min(nearest, size.bytes);
          if (size.lower_bound > room) misses = true;
          else if (live < 0) {
            live = size.lower_bound;
            if (solution.live < 0 || effort.every_kind) solution.live = std::max(solution.live, live);
          }
          const bool fits = p.bytes <= room;
          if (fits) bound = std::min(bound, p.seconds);
          solution.policies.push_back(std::move(p));
          if (fits) return true;
        }
        return false;
      };
      if (take(found)) continue;
      // Plans that make inputs again may be hard to place; then the next ones, which are like these, are not tried.
      if (nearest > room + room / 50 && found.front().policy.recomputes_inputs()) continue;
      found = ask(workspace, 4 * placed);   // placement made all of them larger
      found.erase(found.begin(), found.begin() + static_cast<Index>(std::min(found.size(), placed)));
      take(found);
    }
    if (solution.live < 0) solution.live = known.first;
    // What missed may fit a little below, or others of its kind.
    if (misses && effort.exact) solution.live = std::max(solution.live, room - room / 100);
    else if (misses && solution.live < 0) solution.live = room - room / 1000;
    return solution;
  }
  /// What a policy's plan takes, found once: searches for bytes that differ little find the same policies.
  ArenaSize arena_of(const PolicySpec& policy) {
    const std::string text = to_string(policy);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = arenas_.find(text); known != arenas_.end()) return known->second;
    }
    const ArenaSize size = arena_at_run_time<>(table_, policy, target_, options_);
    const std::lock_guard lock(mutex_);
    return arenas_.try_emplace(text, size).first->second;
  }
  /// Policies with the seconds of all their steps, by rising seconds; without those of too many steps.
  std::vector<SolvedPolicy> with_seconds(std::vector<SolvedPolicy> found) {
    std::erase_if(found, [&](SolvedPolicy& p) {
      const SectionProfile cost = section_costs_.of(p.policy);
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
    const SectionProfile cost = section_costs_.of(uncut.policy);
    uncut.seconds = cost.seconds(), uncut.steps = cost.steps;
    uncut.bytes = arena_at_run_time<>(table_, uncut.policy, target_, options_).bytes;
    add(uncut);
  }
  /// Policies that no search for sections finds, if nothing is named that they would contradict.
  void add_others() {
    std::vector<PolicySpec> others;
    if ((names_ & PolicySpec::may_be_chosen) == 0) others = ready_made_for(policy_, options_.training, costs_.rates().least_workspace);
    using enum PolicySpec::Part;
    if (!named(partition) && !named(images) && !named(checkpoints) && !named(recompute) && may_hand_on(table_, options_.training))
      add_handed_on(table_, policy_, options_.training, workspaces_for(Index{1} << 40), others);
    add_measured(others);   // but those that name another network's layers, or more slabs than there are rows
  }
  /// Those of these policies that have a plan.
  void add_measured(const std::vector<PolicySpec>& policies) {
    std::vector<std::optional<SolvedPolicy>> known(policies.size());
    on_threads(policies.size(), threads_, [&] { return [&](std::size_t i) { known[i] = measured(policies[i]); }; });
    for (std::optional<SolvedPolicy>& policy : known)
      if (policy) add(std::move(*policy));
  }
  /// A policy with its seconds. Nothing if it has too many steps.
  std::optional<SolvedPolicy> timed(const PolicySpec& policy, Index bytes = 0) {
    std::vector<SolvedPolicy> one = with_seconds({{.policy = policy, .bytes = bytes}});
    return one.empty() ? std::nullopt : std::optional(std::move(one.front()));
  }
  /// The same with its plan's bytes. Nothing if there is no plan.
  std::optional<SolvedPolicy> measured(const PolicySpec& policy) {
    const auto size = arena_if_possible(table_, policy, target_, options_);
    return size ? timed(policy, size->bytes) : std::nullopt;
  }
  /// Points once more, with passes of fewer slabs, within the bytes up to the next point; and each point that comes of it with forward passes of
  /// columns.
  void add_relaxed() {
    const std::vector<SolvedPolicy> points = best_of(found_);
    std::vector<std::vector<SolvedPolicy>> found(points.size());
    on_threads(points.size(), threads_, [&] {
      return [&](std::size_t i) {
        const Index most = i + 1 < points.size() ? points[i + 1].bytes - 1 : points[i].bytes;
        try {
          found[i] = relaxed(
              points[i], most, [&](const PolicySpec& p) { return timed(p); }, [&](const PolicySpec& p) { return arena_of(p).bytes; });
        } catch (const PlanError&) {   // one of its policies has no plan: the point stays as it is
        }
      };
    });
    for (std::vector<SolvedPolicy>& of_point : found)
      for (SolvedPolicy& policy : of_point) add(std::move(policy));
    std::vector<PolicySpec> columns;
    for (const SolvedPolicy& point : best_of(found_))
      if (PolicySpec all = with_forward_columns(point.policy); all != point.policy) columns.push_back(std::move(all));
    add_measured(columns);
  }
};
template <class>
Frontier searched_frontier(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs,
                           int threads) {
  return FrontierSearch(table, policy, target, options, costs, threads).run();
}
}   // namespace detail
}   // namespace lrcnn
