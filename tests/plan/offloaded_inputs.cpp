// Inputs of sections that lie in the larger memory between the passes (OffloadInput): plans of random networks have no problems, sizes are known
// without a plan, and the arena has fewer bytes by what is not there.
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <string>
#include "support/random_graph.hpp"
#include "support/thorough.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Index count(const Plan& plan, Op op) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& s) { return s.op == op; });
}
std::string first_problem(const Plan& plan) {
  const auto problems = check_plan(plan);
  return problems.empty() ? "" : problems[0];
}
using Three = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, Conv<8>, ReLU, Conv<4>>;
const Input input{2, 3, 32, 16};
const Target target{.alignment = 64};
}   // namespace
TEST_CASE("an offloaded input goes out once for a section, comes back slab by slab, and is not in the arena when the section goes backward") {
  const Table table = make_table(Three::layers, input);
  const auto keeps = make_plan(table, Policy<Stages<Overlap<2>, Overlap<2>, Overlap<2>>, CheckpointEvery<2>, RecomputeAll>::value, target);
  const auto plan = make_plan(
      table, Policy<Stages<Overlap<2>, OffloadInput<Overlap<2>>, OffloadInput<Overlap<2>>>, CheckpointEvery<2>, RecomputeAll>::value, target);
  CHECK(first_problem(plan) == "");
  CHECK(count(plan, Op::offload) == 3);   // the fourth section has the third one's partition
  CHECK(count(plan, Op::fetch) == 6);     // each in two slabs, in one pass
  CHECK(plan.offloaded_bytes() == 3 * target.bytes(2, 8, 32, 16));
  CHECK(plan.peak_bytes() < keeps.peak_bytes());
  CHECK(plan.arena == arena_size(table, plan.policy, target));
  for (const Buffer& b : plan.buffers) CHECK((b.role == Role::offloaded) == (b.offset >= plan.arena.bytes));
  Index back = 0;   // rows that have come back
  for (const Step& s : plan.steps) {
    if (s.op == Op::offload) CHECK((s.pass == Pass::forward && s.y.rows == Range{0, 32} && s.y.images == Range{0, 2}));
    if (s.op == Op::fetch) back += s.y.rows.size() * s.y.images.size();
  }
  CHECK(back == 3 * 2 * (32 + 2));   // a row of the other slab at each side of the cut
  CHECK(plan_seconds(table, plan.policy, target, {}, *std::make_unique<StepCosts>(Costs{}, table, target)) > 0);
}
TEST_CASE("only what no other section further up reads is offloaded, and a network's input is not") {
  // The sum of the last section reads the first section's output, too.
  const std::vector<Layer> layers{{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 4},
                                  {.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 4},
                                  {.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 4},
                                  {.kind = Kind::sum, .input = 1, .other = 3}};
  const Table table = make_table(layers, input);
  const Plan plan = make_plan(table, Policy<OffloadInput<>, CheckpointEvery<1>>::value, target);
  CHECK(first_problem(plan) == "");
  CHECK(plan.offloaded_bytes() == target.bytes(2, 4, 32, 16));   // what the second layer makes; a sum reads no values in the backward pass
  CHECK_THROWS_WITH_AS(make_plan(table, Policy<Stages<Column, OffloadInput<>, Column>, CheckpointEvery<1>>::value, target),
                       doctest::Contains("is to have its input offloaded by OffloadInput<Column>, and all that it reads is read further up, too"),
                       PlanError);
  CHECK_THROWS_WITH_AS(make_plan(table, Policy<Stages<OffloadInput<>, Column>, CheckpointEvery<1>>::value, target),
                       doctest::Contains("it is the network's first section"), PlanError);
  CHECK(make_plan(table, Policy<OffloadInput<>, CheckpointEvery<1>>::value, target, predicting).offloaded_bytes() == 0);
}
TEST_CASE("sections above make their inputs again from an offloaded one") {
  const Table table = make_table(Three::layers, input);
  for (const PolicySpec& policy :
       {Policy<Stages<Column, OffloadInput<Overlap<3>>, RecomputeInputAlone<Overlap<2>>, Column>, CheckpointEvery<2>, RecomputeAll>::value,
        Policy<Stages<Column, OffloadInput<Overlap<3>>, RecomputeInput<Overlap<2>>, Column>, CheckpointEvery<2>, RecomputeAll>::value}) {
    const Plan plan = make_plan(table, policy, target);
    INFO(to_string(policy));
    CHECK(first_problem(plan) == "");
    CHECK(count(plan, Op::offload) == 1);
    CHECK(count(plan, Op::fetch) > 3);   // by the pass for the section above, too
  }
}
TEST_CASE("with Prefetch, rows are fetched on a stream of their own, into one of two places") {
  const Table table = make_table(Three::layers, input);
  const Plan plan = make_plan(table, Policy<OffloadInput<Overlap<4>>, CheckpointEvery<2>, RecomputeAll, Prefetch>::value, target);
  CHECK(first_problem(plan) == "");
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (const Step& s = plan.steps[i]; s.op == Op::fetch || s.op == Op::offload) CHECK(s.stream == 1);
  Index switches = 0, last = -1;
  for (const Step& s : plan.steps)
    if (s.op == Op::fetch && s.y.tensor == 6) switches += s.y.buffer != last, last = s.y.buffer;
  CHECK(switches == 4);
}
TEST_CASE("plans of random networks that offload inputs have no problems, and sizes are known without them") {
  Index plans = 0, offloads = 0, fetches = 0, sliced = 0, again = 0, passes = 0, streams = 0, in_place = 0;
  for (std::uint64_t seed = 1; seed <= cases_to_do<std::uint64_t>(3000, 500); ++seed) {
    Dice dice(seed + 910'000);
    const RandomNetwork net = random_graph(dice);
    const Table table = make_table(net.layers, net.input);
    PolicySpec policy = random_policy(dice, net);
    if (dice.chance(0.8)) policy.images = 0;
    if (dice.chance(0.5)) policy.checkpoints = {.rule = Checkpoints::Rule::every, .every = dice.upto(1, 4)};
    for (Index i = 0; i < policy.partition_count; ++i) {
      Partition& part = item(policy.partitions, i);
      if (dice.chance(0.3))
        part.cut = Cut::overlap, part.forward = part.backward = dice.upto(2, 6), part.passes = dice.pick({NormPasses::one, NormPasses::all});
      if (dice.chance(0.6)) part.input = SectionInput::offload;
    }
    policy.gradients_in_place = dice.chance(0.5);
    const Target any{.element_bytes = dice.pick({4, 8, 2}),
                     .channel_block = dice.pick({1, 8}),
                     .alignment = 64,
                     .packs_weights = dice.chance(0.5),
                     .activates = dice.chance(0.5),
                     .convolves_rows = dice.chance(0.5)};
    const PlanOptions options{.input_gradient = dice.chance(0.5)};
    INFO("seed ", seed, ", ", to_string(policy));
    try {
      const Plan plan = make_plan(table, policy, any, options);
      ++plans;
      if (plan.offloaded_bytes() == 0) continue;
      REQUIRE(first_problem(plan) == "");
      REQUIRE(plan.arena == arena_size(table, policy, any, options));
      ++offloads, fetches += count(plan, Op::fetch), streams += policy.streams > 1;
      REQUIRE(profile_sections(plan, Costs{}).size() > 0);
      if (const std::vector<SectionProfile> profiles = profile_sections(plan, Costs{}); !policy.gradients_in_place && policy.streams == 1)
        REQUIRE(lower_bound(profiles) == plan.arena.lower_bound);
      for (const Stage& s : plan.stages)
        if (s.partition.input == SectionInput::offload)
          sliced += s.backward.slabs() > 1, again += s.forward_repeated || s.supplies, passes += s.passes > 0;
      in_place += std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.y && s.y.held_rows.begin < 0; });
    } catch (const PlanError&) {
    }
  }
  MESSAGE(plans << " plans, " << offloads << " that offload, " << fetches << " fetches, " << sliced << " stages in slabs, " << again << " run again, "
                << passes << " with extra passes, " << streams << " with streams, " << in_place << " with gradients in place");
  CHECK(offloads > plans / 5);
  for (const Index some : {fetches, sliced, again, passes, streams}) CHECK(some > 5);
  CHECK(in_place > 0);
}
