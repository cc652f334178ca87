// The checker passes the plans of thousands of random networks that branch, under random policies, targets and options.
// That it reports corrupted ones is tested in alone_checker_sensitivity.cpp.
#include <lrcnn/plan/checker.hpp>
#include <doctest/doctest.h>
#include <string>
#include "support/random_graph.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Target any_target(Dice& dice) {
  return {.element_bytes = dice.pick({4, 8, 2}),
          .channel_block = dice.pick({1, 8, 16}),
          .plain_channels = dice.pick({0, 3}),
          .alignment = dice.pick({64, 64, 4096}),
          .packs_weights = dice.chance(0.5),
          .activates = dice.chance(0.5),
          .packs_linear = dice.chance(0.3),
          .convolves_rows = dice.chance(0.5),
          .packs_alike = dice.chance(0.5)};
}
}   // namespace
TEST_CASE("a tensor may have hundreds of readers") {
  std::vector<Layer> layers{{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 2}};
  Index sum = 0;   // of what has come from the readers so far: a tensor
  for (Index k = 0; k < 300; ++k) {
    layers.push_back({.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 2, .input = static_cast<Index>(layers.size())});
    const Index read = static_cast<Index>(layers.size());
    if (sum > 0) layers.push_back({.kind = Kind::sum, .input = 1, .other = read + 1 - sum});
    sum = static_cast<Index>(layers.size());
  }
  const Table table = make_table(layers, {1, 2, 12, 4});
  for (const PolicySpec& policy : {Policy<Overlap<3>>::value, Policy<Share<3>>::value, Policy<Column>::value}) {
    const auto problems = check_plan(make_plan(table, policy, {}, {.input_gradient = true}));
    CHECK((problems.empty() ? "" : problems[0]) == "");
  }
}
TEST_CASE("plans of random networks that branch, policies, targets and options have no problems") {
  Index plans = 0, networks = 0, infeasible = 0, packing = 0, activating = 0, blocked = 0, streaming = 0, steps = 0, sliced = 0;
  Index alone = 0, shared = 0, one_pass = 0;
  Index in_place = 0, both_ways = 0, statistics = 0, joins = 0, predictions = 0, again = 0, supplies = 0, handed_on = 0, handed_on_cut = 0;
  for (std::uint64_t seed = 1; networks < 2000; ++seed) {
    Dice dice(seed + 300000);
    const RandomNetwork whole_net = random_graph(dice), trunk = without_head(whole_net);
    ++networks;
    for (int round = 0; round < 4; ++round) {
      const bool hands_on = round == 3;   // a forward pass alone, whose output may be a map
      const RandomNetwork& net = hands_on && dice.chance(0.7) ? trunk : whole_net;
      const Table table = make_table(net.layers, net.input);
      PolicySpec policy = random_policy(dice, net);
      if (dice.chance(0.8)) policy.images = 0;   // a batch norm refuses groups
      if (hands_on && dice.chance(0.6))          // counts that only a forward pass allows
        policy.partition_count = 1, policy.partitions[0] = {Cut::share, dice.upto(2, net.input.h), 1, policy.partitions[0].images};
      policy.workspace_bytes = dice.pick({0, 1, 64, 5000});
      add_workspaces(dice, policy, {0, 1, 64, 5000});
      const Target target = any_target(dice);
      const PlanOptions options = hands_on ? predicting : PlanOptions{.training = dice.chance(0.85), .input_gradient = dice.chance(0.5)};
      INFO("seed ", seed, ", round ", round, ", ", to_string(policy));
      try {
        const Plan plan = make_plan(table, policy, target, options);
        const auto problems = check_plan(plan);
        const bool whole = arena_size(table, policy, target, options) == plan.arena;
        bool aligned = true;
        for (const Buffer& b : plan.buffers) aligned = aligned && b.offset % target.alignment == 0 && b.bytes % target.alignment == 0;
        if (!problems.empty() || !whole || !aligned) {
          CHECK((problems.empty() ? "" : problems[0]) == "");
          CHECK(whole);
          CHECK(aligned);
        }
        ++plans, packing += target.packs_weights, activating += target.activates, blocked += target.channel_block == 16;
        streaming += policy.streams > 1, predictions += !options.training, steps += static_cast<Index>(plan.steps.size());
        in_place += std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.y && s.y.held_rows.begin < 0; });
        const auto go_through = [&](auto so) {
          return std::any_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& s) { return s.passes > 0 && so(s.partition); });
        };
        both_ways += go_through([](const Partition& p) { return p.forward_passes; });
        one_pass += go_through([](const Partition& p) { return p.passes == NormPasses::one; });
        for (const Stage& s : plan.stages)
          sliced += s.forward.slabs() > 1, again += s.forward_repeated, supplies += s.supplies, alone += s.makes_input;
        for (const Step& s : plan.steps)   // the gradient of a sum is that of both of its inputs
          shared += s.op == Op::backward_data && table.node(s.layer).layer.kind == Kind::norm && s.dx.buffer == s.x.buffer;
        handed_on += hands_on;
        handed_on_cut += hands_on && std::any_of(plan.stages.begin(), plan.stages.end(), [](const Stage& s) { return s.forward.slabs() > 2; });
        for (const Step& s : plan.steps) statistics += s.op == Op::statistics, joins += static_cast<bool>(s.other);
      } catch (const PlanError& e) {
        const std::string text = e.what();
        const bool known = text.find("feasible count") != std::string::npos || text.find("cannot be cut into") != std::string::npos ||
                           text.find("statistics of a batch need all of its images") != std::string::npos ||
                           text.find("has one value in each") != std::string::npos ||
                           text.find("is to have its input made again") != std::string::npos;
        if (!known) CHECK(text == "");
        ++infeasible;
      }
    }
  }
  MESSAGE(networks << " networks, " << plans << " plans of " << steps << " steps, " << sliced << " stages cut, " << again << " made again, "
                   << supplies << " for sections above, " << alone << " for one alone, " << shared << " gradients shared, " << statistics
                   << " steps of statistics, " << joins << " of joins; " << packing << " plans pack filters, " << activating << " join activations, "
                   << blocked << " have blocks of 16 channels, " << streaming << " streams, " << predictions << " predict, " << handed_on
                   << " hand their output on (" << handed_on_cut << " with stages cut), " << in_place << " have gradients in place, " << both_ways
                   << " go through norms both ways, " << one_pass << " through the last alone; " << infeasible << " requests refused");
  CHECK(plans > 5000);
  CHECK(packing > 2000);
  CHECK(activating > 2000);
  CHECK(blocked > 1000);
  CHECK(streaming > 800);
  CHECK(again > 500);
  CHECK(supplies > 500);
  CHECK(alone > 200);
  CHECK(shared > 20);
  CHECK(in_place > 100);
  CHECK(both_ways > 100);
  CHECK(one_pass > 60);
  CHECK(handed_on_cut > 300);
}
