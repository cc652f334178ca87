// Frontiers of small networks against every policy of the space that is searched: sections that end at any of a few layers, and in each of them
// any way to cut, to keep and to compute again.
#include "plan/frontier_cases.hpp"
#include "support/thorough.hpp"
#include <lrcnn/plan/section_costs.hpp>
#include <lrcnn/plan/section_search.hpp>
#include <lrcnn/policy/parse.hpp>
#include <doctest/doctest.h>
#include <cmath>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// All policies that a search could choose for a network.
class Policies {
 public:
  explicit Policies(const FrontierCase& c)
      : c_(c), checkpoints_(SectionSearch(c.table, {}, c.target, c.options, frontier_costs).catalog().checkpoints()) {
    for (Index images = c.table.input.n; images >= 1; images = images == 1 ? 0 : ceil_div(images, 2)) images_.push_back(images);
    for (const Index images : images_) add_ways(images == c.table.input.n ? 0 : images);
  }
  std::size_t checkpoints() const { return checkpoints_.size(); }
  /// How many there are.
  double count() const {
    double sum = 0;
    for (std::uint32_t ends = 0; ends < sets(); ++ends) sum += of_step() * std::pow(ways_.size(), sections(ends));
    return sum;
  }
  /// Calls f(policy) for each; if there are more than `most`, for so many that are drawn.
  template <class F>
  void visit(std::size_t most, Dice& dice, const F& f) const {
    if (count() > static_cast<double>(most)) {
      for (std::size_t i = 0; i < most; ++i) {
        const auto ends = static_cast<std::uint32_t>(dice.upto(0, sets() - 1));
        std::vector<std::size_t> ways;
        for (Index s = 0; s < sections(ends); ++s) ways.push_back(static_cast<std::size_t>(dice.upto(0, static_cast<Index>(ways_.size()) - 1)));
        f(policy(ends, dice.upto(0, of_step() - 1), ways));
      }
      return;
    }
    for (std::uint32_t ends = 0; ends < sets(); ++ends)
      for (Index whole = 0; whole < of_step(); ++whole) {
        std::vector<std::size_t> ways(static_cast<std::size_t>(sections(ends)), 0);
        for (std::size_t s = 0; s < ways.size();) {   // the next number whose digits they are
          if (s == 0) f(policy(ends, whole, ways));
          if (++ways[s] < ways_.size()) s = 0;
          else ways[s++] = 0;
        }
      }
  }

 private:
  const FrontierCase& c_;
  std::vector<Index> checkpoints_, images_{};
  std::vector<Partition> ways_{};   ///< to run a section
  std::uint32_t sets() const { return std::uint32_t{1} << checkpoints_.size(); }
  /// What may be chosen for the whole step.
  Index of_step() const { return static_cast<Index>(images_.size()) * (c_.options.training ? 2 : 1); }
  void add_ways(Index images) {
    Index rows = 1;
    for (const Node& node : c_.table.nodes) rows = std::max(rows, node.out.h);
    for (const Recompute recompute : {Recompute::none, Recompute::light, Recompute::cheap, Recompute::all}) {
      if (!c_.options.training && recompute != Recompute::none) break;
      ways_.push_back({.images = images, .recompute = recompute});
      for (const Cut cut : {Cut::overlap, Cut::share})
        for (const Index slabs : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48}) {
          if (slabs > rows) break;
          for (const Index forward : {slabs, slabs / 2, Index{1}}) {
            ways_.push_back({.cut = cut, .forward = forward, .backward = slabs, .images = images, .recompute = recompute});
            if (recompute != Recompute::all || forward == 1) break;
          }
          if ((recompute == Recompute::all || recompute == Recompute::cheap) && cut == Cut::overlap && has_norms())
            for (const NormPasses passes : {NormPasses::one, NormPasses::all})
              for (const bool both_ways : {false, true}) ways_.push_back({Cut::overlap, slabs, slabs, images, passes, both_ways, recompute});
        }
    }
  }
  bool has_norms() const {
    return std::any_of(c_.table.nodes.begin(), c_.table.nodes.end(), [](const Node& node) { return node.layer.kind == Kind::norm; });
  }
  PolicySpec named(std::uint32_t ends) const {
    PolicySpec p;
    p.workspace_bytes = 0;
    std::size_t names = 0;
    for (std::size_t i = 0; i < checkpoints_.size(); ++i)
      if ((ends >> i & 1) != 0) p.checkpoints.names[names++] = c_.table.node(checkpoints_[i]).layer.name;
    if (names > 0) p.checkpoints.rule = Checkpoints::Rule::named;
    return p;
  }
  /// How many partitions policies with these checkpoints have.
  Index sections(std::uint32_t ends) const {
    Index most = 0;
    for (const Stage& stage : split_stages(c_.table, named(ends), c_.options.training)) most = std::max(most, stage.partition_number);
    return most + 1;
  }
  PolicySpec policy(std::uint32_t ends, Index whole, const std::vector<std::size_t>& ways) const {
    PolicySpec p = named(ends);
    p.partition_count = static_cast<Index>(ways.size());
    for (std::size_t s = 0; s < ways.size(); ++s) p.partitions[s] = ways_[ways[s]];
    const auto groups = static_cast<Index>(images_.size());
    p.images = whole % groups == 0 ? 0 : item(images_, whole % groups);
    p.gradients_in_place = whole >= groups;
    return p;
  }
};
struct Tried {
  Index bytes = 0;
  double seconds = 0;
};
}   // namespace
TEST_CASE("frontiers of small networks are hardly beaten by any policy of the space that is searched") {
  constexpr int budgets = 20;
  const std::size_t most = cases_to_do<std::size_t>(30'000, 3'000);
  const std::uint64_t cases = cases_to_do<std::uint64_t>(300, 12);
  std::size_t tried = 0, networks = 0, whole = 0, compared = 0, slower = 0, much_slower = 0, larger = 0;
  double worst = 1, worst_bytes = 1;
  std::uint64_t worst_seed = 0, worst_bytes_seed = 0;
  for (std::uint64_t seed = 0, done = 0; done < cases; ++seed) {
    const FrontierCase c = random_frontier_case(seed);
    Frontier frontier;
    if (!has_frontier(c, frontier)) continue;
    const Policies policies(c);
    if (policies.checkpoints() > 5) continue;
    ++done;
    std::vector<Tried> all;
    SectionCosts costs(c.table, c.target, c.options, frontier_costs);
    Dice dice(seed + 7);
    policies.visit(most, dice, [&](const PolicySpec& policy) {
      try {
        all.push_back({arena_size(c.table, policy, c.target, c.options).bytes, costs.of(policy).seconds()});
      } catch (const PlanError&) {   // more slabs than rows, or a batch norm and groups of images
      }
    });
    if (all.empty()) continue;
    ++networks, tried += all.size(), whole += policies.count() <= static_cast<double>(most);
    std::sort(all.begin(), all.end(), [](const Tried& a, const Tried& b) { return a.bytes < b.bytes; });
    const double least = static_cast<double>(all.front().bytes), least_found = static_cast<double>(frontier.smallest().bytes);
    if (least_found > worst_bytes * least) worst_bytes = least_found / least, worst_bytes_seed = seed;
    larger += least_found > 1.01 * least;
    const double highest = std::max(static_cast<double>(frontier.points.back().bytes), least_found * 1.01);
    for (int i = 0; i < budgets; ++i) {
      const auto budget = static_cast<Index>(std::ceil(least_found * std::pow(highest / least_found, static_cast<double>(i) / (budgets - 1))));
      double fastest = std::numeric_limits<double>::infinity();
      for (const Tried& t : all)
        if (t.bytes <= budget) fastest = std::min(fastest, t.seconds);
      const double times = frontier.fastest(budget)->seconds / fastest;
      ++compared, slower += times > 1.02, much_slower += times > 1.05;
      if (times > worst) worst = times, worst_seed = seed;
    }
  }
  MESSAGE(tried << " policies of " << networks << " networks, of " << whole << " all there are; of " << compared << " points " << slower
                << " take more than 2 % longer than the fastest of these, at most " << 100 * (worst - 1) << " % (seed " << worst_seed << "); "
                << larger << " smallest points are more than 1 % larger than the smallest, at most " << 100 * (worst_bytes - 1) << " % (seed "
                << worst_bytes_seed << ")");
  CHECK(networks > cases / 2);
  CHECK(slower <= compared / 200);
  CHECK(much_slower == 0);
  CHECK(larger == 0);
}
TEST_CASE("policies that beat a frontier before rows behind values were counted right do so no more") {
  struct Once {
    std::uint64_t seed;
    const char* policy;
  };
  for (const auto& [seed, text] :   // the rows rounded as plans do, and input that is not read again; in the sections above
       {Once{569,
             "Policy<Stages<Section<Share<4,8>, RecomputeAll>, Section<Share<3>, RecomputeLight>, Section<Share<12>, RecomputeAll>>, "
             "CheckpointAt<\"conv1\">, KeepAll, DirectConv, Workspace<0>, GradientsInPlace>"},
        Once{671,
             "Policy<Stages<Section<ByImages<1,Share<1,3>>, RecomputeAll>, Section<ByImages<2,Share<2>>, RecomputeAll>, Section<Share<16>, "
             "RecomputeAll>, Keep<ByImages<2,Share<16>>>>, Images<1>, CheckpointAt<\"relu1\",\"pad1\">, KeepAll, DirectConv, Workspace<0>, "
             "GradientsInPlace>"}}) {
    CAPTURE(seed);
    const FrontierCase c = random_frontier_case(seed);
    const PolicySpec policy = parse_policy(text);
    const ArenaSize size = arena_size(c.table, policy, c.target, c.options);
    Frontier frontier;
    REQUIRE(has_frontier(c, frontier));
    REQUIRE(frontier.fastest(size.bytes) != nullptr);
    CHECK(frontier.fastest(size.bytes)->seconds <= SectionCosts(c.table, c.target, c.options, frontier_costs).of(policy).seconds());
  }
}
