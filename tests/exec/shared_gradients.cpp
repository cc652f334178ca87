// Gradients that sums share and inputs that are made again alone, on the reference backend.
#include "exec/shared_gradients.hpp"
#include "support/random_blocks.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("shared gradients and lone inputs give the bits of plans without them") {
  Reference<double> doubles(2);
  shared_gradients_law(doubles, 0);
  Reference<float> floats(2);
  shared_gradients_law(floats, 0);
}
TEST_CASE("gradients in place give the bits of gradients apart in random residual networks, whatever extra passes cover") {
  Reference<double> backend(1);
  Index runs = 0, in_place = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed + 7100000);
    const RandomNetwork net = random_blocks(dice);
    PolicySpec policy = random_blocks_policy(dice, net);
    policy.gradients_in_place = true, policy.conv_algorithm = ConvAlgorithm::direct;
    if (make_table(net.layers, net.input).shape(static_cast<Index>(net.layers.size())).h > 1) continue;
    const Problem<double> problem(net.layers, net.input, seed);
    try {
      const Plan plan = make_plan(problem.table, policy, {}, {.input_gradient = true});
      for (const StageNeeds& needs : needs_of(plan.table, policy, plan.options, plan.stages)) in_place += needs.sum_in_place >= 0;
    } catch (const PlanError&) {
      continue;
    }
    INFO("seed ", seed, ", ", to_string(policy));
    const Outcome<double> shared = run_once(problem, policy, backend);
    policy.gradients_in_place = false;
    check_same(shared, run_once(problem, policy, backend));
    ++runs;
  }
  MESSAGE(runs, " runs, ", in_place, " gradients of sums over those of outputs");
  CHECK(runs > 120);
  CHECK(in_place > 20);
}
