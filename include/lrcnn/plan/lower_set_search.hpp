#pragma once
// The best chain of lower sets within a budget: dynamic programming over sets in order of cardinality.
//
// A chain that has come to set L has kept m bytes. A step to a larger set L' is allowed if its peak, m - 2 M(L) + need(L'), fits the budget;
// it keeps what is in the boundary of L' and not in L. A step has a cost of 0 or more that does not depend on m, so for each set the pairs of
// cost and m of which no other is at most as large in both (its Pareto front) are all that has to be known of the chains that lead to it.
//
// A front is merged when the search comes to its set, beginning with the steps from the largest sets: what comes from smaller ones is rarely
// better then, and is passed over.
//
// Fronts are kept short by lower bounds of what is ahead. One of them puts a price on bytes: the last step of a chain, from L to all nodes,
// fits if what is kept and 2 M(nodes outside L) are at most the budget. So for any price of a byte, the cost of a chain is at least that of
// the cheapest chain whose bytes are paid for, less the price of the whole budget (a Lagrangian bound).
#include <lrcnn/plan/lower_set_fronts.hpp>
#include <lrcnn/plan/lower_set_table.hpp>
namespace lrcnn::detail {
/// What a step from one set to a larger one keeps anew.
struct KeptAnew {
  Index bytes = 0;
  Index time = 0;
};
/// The steps from each set of a table to all larger ones. Those of small tables are written down.
class LowerSetSteps {
 public:
  explicit LowerSetSteps(const LowerSetTable& table) : table_(table) {
    if (table.size() > most_written_down) return;
    first_.push_back(0);
    for (std::size_t i = 0; i < table.size(); ++i) {
      scan(i, table.need.back(), [&](std::size_t j) { written_.push_back({static_cast<std::uint32_t>(j), kept_anew(i, j)}); });
      first_.push_back(written_.size());
    }
  }
  /// Calls f(j, kept anew) for each set j that contains set i, is larger, and needs at most `need`, in order of need.
  template <class F>
  void from(std::size_t i, Index need, F f) const {
    if (first_.empty()) return scan(i, need, [&](std::size_t j) { f(j, kept_anew(i, j)); });
    for (std::size_t s = first_[i]; s < first_[i + 1] && table_.need[written_[s].to] <= need; ++s) f(written_[s].to, written_[s].kept);
  }
  /// The least need beyond `need` of a larger set that contains set i. Pre: there is one
  Index next_need(std::size_t i, Index need) const {
    const auto begin = static_cast<std::size_t>(std::upper_bound(table_.need.begin(), table_.need.end(), need) - table_.need.begin());
    for (std::size_t j = begin;; ++j)
      if (j != i && table_.contains(j, i)) return table_.need[j];
  }

 private:
  static constexpr std::size_t most_written_down = 2048;   // sets: 2 million steps at most
  struct Step {
    std::uint32_t to = 0;
    KeptAnew kept{};
  };
  const LowerSetTable& table_;
  std::vector<Step> written_{};
  std::vector<std::size_t> first_{};   ///< of each set; empty if steps are found anew each time
  /// A larger set needs at least the bytes of the smaller one twice.
  template <class F>
  void scan(std::size_t i, Index need, F f) const {
    const auto begin = std::lower_bound(table_.need.begin(), table_.need.end(), 2 * table_.bytes[i]) - table_.need.begin();
    for (auto j = static_cast<std::size_t>(begin); j < table_.size() && table_.need[j] <= need; ++j)
      if (table_.contains(j, i) && j != i) f(j);
  }
  KeptAnew kept_anew(std::size_t i, std::size_t j) const {
    const Word *const set = table_.sets[i], *const boundary = table_.boundaries[j];
    KeptAnew kept;
    for (std::size_t w = 0; w < table_.sets.words(); ++w)
      for (Word rest = boundary[w] & ~set[w]; rest != 0; rest &= rest - 1) {
        const std::size_t v = w * 64 + static_cast<std::size_t>(std::countr_zero(rest));
        kept.bytes += table_.node_bytes[v], kept.time += table_.node_time[v];
      }
    return kept;
  }
};
/// What a chain is chosen for: the least sum of its steps' costs.
enum class StepCost : std::uint8_t {
  recomputed,   ///< time of what the step's segment computes again
  kept          ///< time of what it keeps
};
class LowerSetSearch {
 public:
  static constexpr Index unreached = std::numeric_limits<Index>::max();
  using Chain = std::vector<std::uint32_t>;   ///< sets from the empty one to that of all nodes
  explicit LowerSetSearch(const LowerSetTable& table) : table_(table), steps_(table), place_(table.size()) {
    for (std::size_t k = 0; k < table.size(); ++k) place_[table.by_size[k]] = static_cast<std::uint32_t>(k);
  }
  /// The least budget for which there is a chain. `feasible`: a budget for which there is one.
  Index least_budget(Index feasible) const {
    Index infeasible = -1;
    for (Index budget = feasible - 1; infeasible < feasible - 1; budget = infeasible + (feasible - infeasible) / 2) {
      const Reached reached = reach(budget);
      if (reached.bytes[table_.whole()] == unreached) infeasible = reached.next_peak - 1;   // below that peak, nothing else is reached
      else feasible = peak(chain_of(reached));
    }
    return feasible;
  }
  /// The chain of least cost within a budget; of these, the one that keeps fewest bytes. Empty if there is none.
  Chain best_chain(Index budget, StepCost cost) const {
    budget = std::min(budget, table_.need.back());   // a chain of one step needs no more
    if (budget < 0) return {};
    const Reached reached = reach(budget);
    if (reached.bytes[table_.whole()] == unreached) return {};
    const Ahead ahead = look_ahead(budget, cost, reached);
    const double priced = priced_cost(ahead, table_.none(), {}, budget);
    Index bound = ahead.cost[table_.none()];
    if (priced < static_cast<double>(unreached / 2)) bound = std::max(bound, static_cast<Index>(priced));
    for (Index step = bound / 32 + 1;; step *= 3) {   // find some chain first: its cost bounds the best one's
      bound = step > unreached / 8 || bound > unreached - step ? unreached : bound + step;
      const Fronts few = fronts(budget, cost, ahead, bound, few_labels);
      if (const Front& last = few[table_.whole()]; !last.empty())
        return chain_of(fronts(budget, cost, ahead, last.front().cost, std::numeric_limits<std::size_t>::max()));
    }
  }
  /// Of a chain, in bytes.
  Index peak(const Chain& chain) const {
    Index highest = 0, kept = 0;
    for (std::size_t s = 1; s < chain.size(); ++s) {
      highest = std::max(highest, kept + (table_.need[chain[s]] - 2 * table_.bytes[chain[s - 1]]));
      kept += kept_bytes(chain[s - 1], chain[s]);
    }
    return highest;
  }

 private:
  static constexpr std::size_t few_labels = 4, steps_that_wait = std::size_t{1} << 18;
  /// The fewest bytes that a chain can have kept at each set, and the set before.
  struct Reached {
    std::vector<Index> bytes;
    std::vector<std::uint32_t> from;
    Index next_peak = unreached;   ///< the least peak of a step that was not allowed
  };
  static constexpr std::size_t price_count = 12;
  using Prices = std::array<double, price_count>;
  /// What is ahead of each set, on the way to all nodes.
  struct Ahead {
    std::vector<Index> most_kept;         ///< bytes with which the budget still allows a chain; -1: none
    std::vector<Index> cost;              ///< a lower bound
    Prices prices{};                      ///< of a byte
    std::vector<Prices> cost_and_bytes;   ///< for each price: a lower bound of cost, bytes kept, and those of the last step
  };
  using Fronts = std::vector<Front>;
  const LowerSetTable& table_;
  LowerSetSteps steps_;
  std::vector<std::uint32_t> place_;   ///< of each set, by cardinality

  /// The largest need of a set to which a chain that has kept these bytes may go on from set i. At most that of all nodes.
  Index most_need(std::size_t i, Index kept, Index budget) const {
    const Index twice = 2 * table_.bytes[i];
    return std::min(budget - kept, table_.need.back() - twice) + twice;
  }
  Index cost_of(StepCost cost, std::size_t i, std::size_t j, const KeptAnew& kept) const {
    return cost == StepCost::kept ? kept.time : table_.time[j] - table_.time[i] - kept.time;
  }
  Index kept_bytes(std::size_t i, std::size_t j) const {
    Index bytes = 0;
    each_node(table_.boundaries[j], table_.sets.words(), [&](Index v) {
      if (!has(table_.sets[i], v)) bytes += item(table_.node_bytes, v);
    });
    return bytes;
  }
  Reached reach(Index budget) const {
    Reached reached{std::vector<Index>(table_.size(), unreached), std::vector<std::uint32_t>(table_.size(), 0)};
    reached.bytes[table_.none()] = 0;
    for (const std::uint32_t i : table_.by_size) {
      const Index kept = reached.bytes[i];
      if (kept == unreached || i == table_.whole()) continue;
      const Index need = most_need(i, kept, budget);
      steps_.from(i, need, [&](std::size_t j, const KeptAnew& anew) {
        if (kept + anew.bytes < reached.bytes[j]) reached.bytes[j] = kept + anew.bytes, reached.from[j] = i;
      });
      if (need < table_.need.back()) reached.next_peak = std::min(reached.next_peak, steps_.next_need(i, need) - 2 * table_.bytes[i] + kept);
    }
    return reached;
  }
  Ahead look_ahead(Index budget, StepCost cost, const Reached& reached) const {
    const std::size_t size = table_.size(), whole = table_.whole();
    Prices nothing{}, infinite{};
    infinite.fill(std::numeric_limits<double>::infinity());
    Ahead ahead{std::vector<Index>(size, -1), std::vector<Index>(size, unreached), {}, std::vector<Prices>(size, infinite)};
    ahead.most_kept[whole] = unreached, ahead.cost[whole] = 0, ahead.cost_and_bytes[whole] = nothing;
    double price = 4 * static_cast<double>(table_.time[whole]) / std::max(1.0, static_cast<double>(table_.need[whole]));
    for (double& p : ahead.prices) p = price, price /= 1.6;   // around the mean time of a byte
    for (auto at = table_.by_size.rbegin(); at != table_.by_size.rend(); ++at) {
      const std::uint32_t i = *at;
      if (reached.bytes[i] == unreached) continue;
      Index &most = ahead.most_kept[i], &least = ahead.cost[i];
      Prices& sums = ahead.cost_and_bytes[i];
      steps_.from(i, most_need(i, reached.bytes[i], budget), [&](std::size_t j, const KeptAnew& anew) {
        if (reached.bytes[i] + anew.bytes > ahead.most_kept[j]) return;
        most = std::max(most, std::min(budget - (table_.need[j] - 2 * table_.bytes[i]), ahead.most_kept[j] - anew.bytes));
        const Index added = cost_of(cost, i, j, anew);
        least = std::min(least, ahead.cost[j] + added);
        const auto costs = static_cast<double>(added);
        const auto bytes = static_cast<double>(j == whole ? table_.need[j] - 2 * table_.bytes[i] : anew.bytes);
        const Prices& further = ahead.cost_and_bytes[j];
        for (std::size_t p = 0; p < price_count; ++p) sums[p] = std::min(sums[p], further[p] + costs + ahead.prices[p] * bytes);
      });
    }
    return ahead;
  }
  /// A lower bound of the cost of all chains that begin with a label of set i, from the prices of bytes. Sums of doubles are wrong by far less
  /// than the share of their terms that is taken off, so that it is one.
  double priced_cost(const Ahead& ahead, std::size_t i, const Label& label, Index budget) const {
    double highest = 0;
    const auto cost = static_cast<double>(label.cost), room = static_cast<double>(budget - label.kept);
    for (std::size_t p = 0; p < price_count; ++p) {
      const double sum = cost + ahead.cost_and_bytes[i][p], paid = ahead.prices[p] * room;
      highest = std::max(highest, sum - paid - 1e-9 * (sum + paid));
    }
    return highest;
  }
  /// Takes out of the front of set i the labels that are beyond a bound of the cost, and all but `most` of the best and the last one.
  void thin(Front& front, std::size_t i, const Ahead& ahead, Index budget, Index bound, std::size_t most) const {
    const auto priced = [&](const Label& l) { return priced_cost(ahead, i, l, budget); };
    std::erase_if(front, [&](const Label& l) { return l.cost + ahead.cost[i] > bound || priced(l) > static_cast<double>(bound); });
    if (front.empty() || front.size() - 1 <= most) return;
    std::vector<std::pair<double, std::size_t>> by_price;
    for (std::size_t l = 0; l + 1 < front.size(); ++l) by_price.emplace_back(priced(front[l]), l);
    std::sort(by_price.begin(), by_price.end());
    by_price.resize(most);
    std::sort(by_price.begin(), by_price.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (std::size_t k = 0; k < most; ++k) front[k] = front[by_price[k].second];
    front[most] = front.back();
    front.resize(most + 1);
  }
  /// Labels without those at both ends that are beyond a bound of the cost with set j as the next. They are taken off in blocks: nothing in a
  /// block has less cost than its first label, or fewer bytes than its last.
  FrontStep within(const Front& front, FrontStep step, std::size_t j, const Ahead& ahead, Index budget, Index bound) const {
    const auto beyond = [&](std::uint32_t first, std::uint32_t end) {
      const Label least{front[first].cost + step.cost, front[end - 1].kept + step.kept, 0, 0};
      return priced_cost(ahead, j, least, budget) > static_cast<double>(bound);
    };
    for (std::uint32_t n = 1; n > 0 && step.begin < step.end;) {
      n = std::min(n, step.end - step.begin);
      if (beyond(step.begin, step.begin + n)) step.begin += n, n *= 2;
      else n /= 2;
    }
    for (std::uint32_t n = 1; n > 0 && step.begin < step.end;) {
      n = std::min(n, step.end - step.begin);
      if (beyond(step.end - n, step.end)) step.end -= n, n *= 2;
      else n /= 2;
    }
    return step;
  }
  /// The front of each set, without labels from which no chain leads to all nodes within the budget and at most cost `bound`. Where a front has
  /// more labels than `most` and one, only so many are used further, among them the one with the fewest bytes.
  Fronts fronts(Index budget, StepCost cost, const Ahead& ahead, Index bound, std::size_t most) const {
    Fronts all(table_.size());
    FrontMerger merger(place_);
    std::vector<std::vector<FrontStep>> waiting(table_.size());   // to be merged into each set's front
    const std::size_t most_waiting = std::max<std::size_t>(8, steps_that_wait / table_.size());
    const auto merge = [&](std::size_t j) {
      for (auto step = waiting[j].rbegin(); step != waiting[j].rend(); ++step) merger.merge(all[j], all[step->from], *step);
      waiting[j].clear();
    };
    all[table_.none()].push_back({});
    for (const std::uint32_t i : table_.by_size) {
      merge(i);
      Front& front = all[i];
      if (front.empty() || i == table_.whole()) continue;
      thin(front, i, ahead, budget, bound, most);
      if (front.empty()) continue;
      steps_.from(i, most_need(i, front.back().kept, budget), [&](std::size_t j, const KeptAnew& anew) {
        if (ahead.most_kept[j] < 0) return;
        const Index kept = std::min(budget - (table_.need[j] - 2 * table_.bytes[i]), ahead.most_kept[j] - anew.bytes);
        const Index added = cost_of(cost, i, j, anew), costs = bound - ahead.cost[j] - added;
        const auto begin = std::partition_point(front.begin(), front.end(), [&](const Label& l) { return l.kept > kept; });
        const auto end = std::partition_point(begin, front.end(), [&](const Label& l) { return l.cost <= costs; });
        const auto number = [&](auto label) { return static_cast<std::uint32_t>(label - front.begin()); };
        const FrontStep step = within(front, {i, number(begin), number(end), added, anew.bytes}, j, ahead, budget, bound);
        if (step.begin == step.end) return;
        if (j == table_.whole()) bound = std::min(bound, front[step.begin].cost + added);
        waiting[j].push_back(step);
        if (waiting[j].size() == most_waiting) merge(j);
      });
    }
    return all;
  }
  Chain chain_of(const Reached& reached) const {
    Chain chain{static_cast<std::uint32_t>(table_.whole())};
    while (chain.back() != table_.none()) chain.push_back(reached.from[chain.back()]);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }
  Chain chain_of(const Fronts& all) const {
    Chain chain{static_cast<std::uint32_t>(table_.whole())};
    for (const Label* label = &all[table_.whole()].front(); chain.back() != table_.none(); label = &all[chain.back()][label->label])
      chain.push_back(label->from);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }
};
}   // namespace lrcnn::detail
