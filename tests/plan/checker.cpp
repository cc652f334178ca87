// The checker passes the plans of thousands of random networks, policies, targets and options. That it reports
// corrupted ones is tested in alone_checker_sensitivity.cpp.
#include <lrcnn/plan/checker.hpp>
#include <doctest/doctest.h>
#include <string>
#include "support/random_network.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
// Custom layers that are only planned, never run: all combinations of what a backward pass may want.
constexpr ParameterShapes one_parameter(const Layer&, const Shape& in) {
  ParameterShapes shapes;
  shapes.add({.name = "scale", .extents = {in.c, 1, 1, 1}});
  return shapes;
}
constexpr CustomLayer reads_output{.rules = {.name = "reads_output", .rows = RowMap::window, .backward = lrcnn::reads_output}};
constexpr CustomLayer reads_both{.rules = {.name = "reads_both",
                                           .rows = RowMap::window,
                                           .backward = reads_input_and_output,
                                           .cheap = false,
                                           .takes_activation = true,
                                           .parameters = one_parameter}};
constexpr CustomLayer reads_nothing{.rules = {.name = "reads_nothing", .overwrites_input = true, .overwrites_gradient = true}};
constexpr CustomLayer pointwise_output{
    .rules = {.name = "pointwise_output", .backward = lrcnn::reads_output, .overwrites_gradient = true, .parameters = one_parameter}};
ExtraLayers custom_layers() {
  return {{.kind = Kind::custom, .window = {.kernel = 3, .pad = 1}, .custom = &reads_output},
          {.kind = Kind::custom, .window = {.kernel = 2, .stride = 2}, .custom = &reads_both},
          {.kind = Kind::custom, .custom = &reads_nothing},
          {.kind = Kind::custom, .custom = &pointwise_output}};
}
Target random_target(Dice& dice) {
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
std::string first_problem(const Plan& plan) {
  const auto problems = check_plan(plan);
  return problems.empty() ? "" : problems[0];
}
}   // namespace
TEST_CASE("plans of random networks, policies, targets and options have no problems") {
  const ExtraLayers extra = custom_layers();
  Index plans = 0, infeasible = 0, packing = 0, steps = 0, sliced = 0;
  for (std::uint64_t seed = 1; plans < 4500; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = random_network(dice, 9, dice.chance(0.3) ? extra : ExtraLayers{});
    PolicySpec policy = random_policy(dice, net);
    policy.workspace_bytes = dice.pick({0, 1, 64, 5000});
    add_workspaces(dice, policy, {0, 1, 64, 5000});
    const Target target = random_target(dice);
    const PlanOptions options{.training = dice.chance(0.85), .input_gradient = dice.chance(0.5)};
    INFO("seed ", seed, ", ", to_string(policy));
    try {
      const Plan plan = make_plan(make_table(net.layers, net.input), policy, target, options);
      const auto problem = first_problem(plan);
      bool aligned = true, nested = true;
      for (const Buffer& b : plan.buffers) aligned = aligned && b.offset % target.alignment == 0 && b.bytes % target.alignment == 0;
      for (const Stage& s : plan.stages) sliced += s.forward.slabs() > 1, nested = nested && s.first < s.last;
      if (!problem.empty() || !aligned || !nested || arena_size(plan.table, policy, target, options) != plan.arena) {
        CHECK(problem == "");
        CHECK(aligned);
        CHECK(arena_size(plan.table, policy, target, options) == plan.arena);
      }
      ++plans;
      packing += target.packs_weights;
      steps += static_cast<Index>(plan.steps.size());
    } catch (const PlanError& e) {
      const std::string text = e.what();
      const bool known = text.find("feasible count") != std::string::npos || text.find("is to have its input made again") != std::string::npos;
      if (!known) CHECK(text == "");
      ++infeasible;
    }
  }
  MESSAGE(plans << " plans of " << steps << " steps, " << sliced << " stages cut, " << packing << " plans pack filters, " << infeasible
                << " requests refused");
  CHECK(packing > 1500);
  CHECK(sliced > 4000);
}
TEST_CASE("an activation joins the convolution before it where nobody else wants its input: one step less for each") {
  Index joined = 0, apart = 0, changed = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    Dice dice(seed + 70000);
    const RandomNetwork net = random_network(dice, 9);
    const PolicySpec policy = random_policy(dice, net);
    Target target = random_target(dice);
    target.activates = false;
    INFO("seed ", seed, ", ", to_string(policy));
    try {
      const Plan separate = make_plan(make_table(net.layers, net.input), policy, target, {.input_gradient = true});
      target.activates = true;
      Plan plan = make_plan(make_table(net.layers, net.input), policy, target, {.input_gradient = true});
      const auto joins = [](const Step& s) { return s.activates; };
      const Index count = std::count_if(plan.steps.begin(), plan.steps.end(), joins);
      CHECK(first_problem(plan) == "");
      Index most_saved = 0;   // saved state now lives beside the convolution's workspace
      for (const Buffer& b : plan.buffers) most_saved += b.role == Role::saved ? b.bytes : 0;
      CHECK(plan.arena.lower_bound <= separate.arena.lower_bound + most_saved);
      CHECK(plan.steps.size() + plan.left_out.size() == separate.steps.size() + separate.left_out.size() - static_cast<std::size_t>(count));
      joined += count;
      for (const Step& s : plan.steps) apart += s.op == Op::forward && plan.table.node(s.layer).layer.kind == Kind::activation;
      for (Step& s : plan.steps)   // a step that does less or more than it should is found
        if (s.op == Op::forward && is_conv(plan.table.node(s.layer).layer) && dice.chance(0.1)) {
          s.activates = !s.activates;
          CHECK(first_problem(plan) != "");
          s.activates = !s.activates;
          ++changed;
        }
    } catch (const PlanError&) {
    }
  }
  CHECK(joined > 400);
  CHECK(apart > 500);
  CHECK(changed > 300);
}
