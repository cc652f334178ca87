// Frontiers of small networks hold what searches once missed, each for a cause of its own (complete.cpp compares with the whole space).
#include "plan/frontier_cases.hpp"
#include "support/thorough.hpp"
#include <lrcnn/plan/section_search.hpp>
#include <lrcnn/policy/parse.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("frontiers of small networks have a point for policies that searches once missed") {
  struct Missed {
    const char* cause;
    std::uint64_t seed;
    const char* policy;
  };
  const Missed all[] = {
      {"more slabs than eight times the column's time", 30, R"(Policy<Keep<ByImages<1,Overlap<12>>>, NoCheckpoints, DirectConv, Workspace<0>>)"},
      {"slabs of rows in which RecomputeCheap makes again", 88,
       R"(Policy<Section<ByImages<1,Overlap<6>>, RecomputeCheap>, Images<2>, NoCheckpoints, DirectConv, Workspace<0>>)"},
      {"more slabs than some stages of the only section carry", 97,
       R"(Policy<Section<ExtraPassesBothWays<Overlap<12>>, RecomputeAll>, NoCheckpoints, DirectConv, Workspace<0>, GradientsInPlace>)"},
      {"seconds by samples", 114,
       R"(Policy<Stages<Section<Overlap<12>, RecomputeCheap>, Section<Overlap<8>, RecomputeLight>>, NoCheckpoints, DirectConv, Workspace<0>>)"},
      {"rows by which gradients lie behind their values", 235,
       R"(Policy<Stages<Keep<ByImages<1,Overlap<8>>>, Keep<ByImages<1,Overlap<16>>>>, Images<1>, CheckpointAt<"conv1">, )"
       R"(DirectConv, Workspace<0>, GradientsInPlace>)"},
      {"rows by which gradients lie behind their values", 248,
       R"(Policy<Stages<Section<Overlap<12>, RecomputeLight>, Section<Overlap<3,6>, RecomputeAll>>, )"
       R"(CheckpointAt<"relu1">, DirectConv, Workspace<0>, GradientsInPlace>)"},
      {"rows by which gradients lie behind their values, two sections below", 601,
       R"(Policy<Stages<Section<Overlap<6,12>, RecomputeAll>, Section<Overlap<24>, RecomputeCheap>>, NoCheckpoints, )"
       R"(DirectConv, Workspace<0>, GradientsInPlace>)"},
      {"a section that follows another in what it computes again", 261,
       R"(Policy<Stages<Section<Overlap<1,6>, RecomputeAll>, Section<Column, RecomputeCheap>, Keep<Column>>, )"
       R"(CheckpointAt<"pool1">, DirectConv, Workspace<0>>)"}};
  for (const auto& [cause, seed, text] : all) {
    CAPTURE(std::string(cause));
    CAPTURE(seed);
    const FrontierCase c = random_frontier_case(seed);
    Frontier frontier;
    REQUIRE(has_frontier(c, frontier));
    const PolicySpec policy = parse_policy(text);
    StepCosts of_steps(frontier_costs, c.table, c.target);
    const SolvedPolicy* const point = frontier.fastest(arena_size(c.table, policy, c.target, c.options).bytes);
    CHECK(point != nullptr);
    if (point != nullptr) CHECK(point->seconds <= 1.02 * plan_seconds(c.table, policy, c.target, c.options, of_steps));
  }
}
TEST_CASE("the only section of a network is cut as a policy with its partition is, as finely as each stage's rows carry") {
  std::size_t cut = 0, uneven = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(3000, 600); ++seed) {
    Dice dice(seed);
    const RandomNetwork net = without_head(random_graph(dice, 4));
    if (net.layers.empty()) continue;
    const Table table = make_table(net.layers, net.input);
    const PlanOptions options{.training = dice.chance(0.9)};
    if (split_stages(table, PolicySpec{}, options.training).back().section > 0) continue;
    PolicySpec policy;
    Partition& p = policy.partitions[0];
    p.cut = dice.pick({Cut::overlap, Cut::share});
    p.backward = dice.upto(2, 12), p.forward = dice.chance(0.7) ? p.backward : 1;
    if (p.cut == Cut::overlap && dice.chance(0.3)) p.passes = dice.pick({NormPasses::one, NormPasses::all});
    p.recompute = dice.pick({Recompute::none, Recompute::all});
    const std::vector<Stage> stages =
        make_section_stages(table, split_section(table, 0, table.size(), options.training), policy, p, Target{}, table.input.n, options, true);
    CAPTURE(seed);
    try {
      const std::vector<Stage> whole = make_stages(table, policy, Target{}, table.input.n, options);
      REQUIRE(stages.size() == whole.size());
      const auto at_most = [](const Stage& stage) { return std::max(stage.partition.forward, stage.partition.backward); };
      for (std::size_t s = 0; s < stages.size(); ++s) {
        REQUIRE(stages[s].partition == whole[s].partition);
        REQUIRE(stages[s].forward == whole[s].forward);
        REQUIRE(stages[s].backward == whole[s].backward);
        uneven += at_most(stages[s]) < at_most(stages[0]);
      }
      ++cut;
    } catch (const PlanError&) {   // more slabs than any stage carries, or a norm that cannot be planned
      ++refused;
      bool norms_are_fine = true;
      try {
        make_stages(table, PolicySpec{}, Target{}, table.input.n, options);
      } catch (const PlanError&) {
        norms_are_fine = false;
      }
      if (norms_are_fine) REQUIRE(stages.empty());
    }
  }
  MESSAGE(cut << " sections, " << uneven << " stages with fewer slabs, " << refused << " refused");
  CHECK(cut > 30);
  CHECK(uneven > 0);
  CHECK(refused > 0);
}
TEST_CASE("what a predictor's input gradient would take makes no difference") {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    FrontierCase c = random_frontier_case(seed);
    if (c.options.training) continue;
    Frontier with, without;
    c.options.input_gradient = true;
    if (!has_frontier(c, with)) continue;
    c.options.input_gradient = false;
    REQUIRE(has_frontier(c, without));
    CAPTURE(seed);
    CHECK(with.points == without.points);
    ++compared;
  }
  CHECK(compared > 3);
}
