// Bytes at each step: every buffer that a step touches lives then, and the most is what the plan says.
#include "support/random_graph.hpp"
#include "support/random_network.hpp"
#include "support/thorough.hpp"
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/plan/memory_over_time.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("what lives at a step is all that it touches, and the most of all steps is the plan's lower bound, or less where filters stay packed") {
  std::size_t plans = 0, turns = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(4000, 400); ++seed) {
    Dice dice(seed);
    const RandomNetwork net = seed % 2 == 0 ? random_network(dice, 10) : random_graph(dice, 6);
    const PlanOptions options = with_drawn_output(dice, {.training = dice.chance(0.8), .input_gradient = dice.chance(0.2)});
    CAPTURE(seed);
    try {
      const Table table = make_table(net.layers, net.input);
      const PolicySpec policy = random_policy(dice, net);
      CAPTURE(to_string(policy));
      const Target target{
          .packs_weights = dice.chance(0.5), .convolves_rows = dice.chance(0.5), .packs_alike = dice.chance(0.5), .packs_together = dice.chance(0.5)};
      const Plan plan = make_plan(table, policy, target, options);
      const std::vector<Index> times = step_times(plan);
      const std::vector<LiveBytes> live = live_bytes(plan);
      REQUIRE(times.size() == plan.steps.size());
      REQUIRE(live.size() == plan.steps.size());
      ++plans;
      Index most = 0;
      for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& s = plan.steps[i];
        for (const Index id : {s.x.buffer, s.other.buffer, s.y.buffer, s.dy.buffer, s.dx.buffer, s.saved.buffer, s.statistics, s.sums, s.packed,
                               s.scratch, s.workspace}) {
          if (id < 0) continue;
          const Buffer& b = item(plan.buffers, id);
          REQUIRE(b.first <= times[i]);
          REQUIRE(times[i] < b.last);
        }
        most = std::max(most, live[i].sum());
        turns += i > 0 && times[i] < times[i - 1];
      }
      REQUIRE(most <= plan.arena.lower_bound);
      if (plan.left_out.empty()) REQUIRE(most == plan.arena.lower_bound);
    } catch (const PlanError&) {   // more slabs than rows, or a norm of one value
    }
  }
  MESSAGE(plans << " plans, " << turns << " turns of loops");
  CHECK(plans > 100);
  CHECK(turns > plans);
}
