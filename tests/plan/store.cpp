// Plans that hand the network's output on: nothing is wrong with them, over random networks, policies and targets; what is put into
// them is found; and what they take.
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/peak.hpp>
#include <lrcnn/plan/print.hpp>
#include "support/error_of.hpp"
#include "support/random_network.hpp"
#include <doctest/doctest.h>
#include <sstream>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Three in five without the layers from the first global pooling or flatten on: the output is a map then.
RandomNetwork drawn(Dice& dice) {
  RandomNetwork net = random_network(dice, 9);
  if (dice.chance(0.4)) return net;
  const auto end =
      std::find_if(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::global_avg_pool || y.kind == Kind::flatten; });
  net.layers.erase(dice.chance(0.8) || end->kind == Kind::flatten ? end : end + 1, net.layers.end());
  return net;
}
/// Counts that only a forward pass alone allows, too.
PolicySpec policy_for(Dice& dice, const RandomNetwork& net) {
  PolicySpec policy = random_policy(dice, net);
  if (dice.chance(0.4)) policy.partitions[0] = {Cut::share, dice.upto(2, net.input.h), 1, policy.partitions[0].images};
  return policy;
}
Target target_for(Dice& dice) {
  return {.element_bytes = dice.pick({4, 8, 2}),
          .channel_block = dice.pick({1, 8, 16}),
          .plain_channels = dice.pick({0, 3}),
          .packs_weights = dice.chance(0.5),
          .activates = dice.chance(0.5)};
}
std::string first_problem(const Plan& plan) {
  const auto problems = check_plan(plan);
  return problems.empty() ? "" : problems[0];
}
}   // namespace
TEST_CASE("plans that hand their output on have no problems") {
  Index plans = 0, stores = 0, infeasible = 0, partial = 0;
  for (std::uint64_t seed = 1; plans < 3000; ++seed) {
    Dice dice(seed + 500'000);
    const RandomNetwork net = drawn(dice);
    const PolicySpec policy = policy_for(dice, net);
    const Target target = target_for(dice);
    INFO("seed ", seed, ", ", to_string(policy));
    try {
      const Plan plan = make_plan(make_table(net.layers, net.input), policy, target, predicting);
      const auto problem = first_problem(plan);
      if (!problem.empty()) CHECK(problem == "");
      if (arena_size(plan.table, policy, target, predicting) != plan.arena) CHECK(false);
      if (plan.results.output) CHECK(false);
      Index here = 0;
      for (const Step& s : plan.steps) {
        here += s.op == Op::store;
        if (s.op == Op::loss || s.pass != Pass::forward) CHECK(false);
        partial += s.op == Op::store && s.x.rows.size() < plan.table.shape(plan.table.size()).h;
      }
      if (here == 0) CHECK(false);
      stores += here;
      ++plans;
    } catch (const PlanError& e) {
      if (std::string(e.what()).find("feasible count") == std::string::npos) CHECK(std::string(e.what()) == "");
      ++infeasible;
    }
  }
  MESSAGE(plans, " plans, ", stores, " steps that hand rows on, ", partial, " of them parts of a map; ", infeasible, " requests refused");
  CHECK(partial > 5000);
}
TEST_CASE("what is put into a plan that hands its output on is found") {
  Index changed = 0;
  const auto wrong = [&](Plan plan, const char* how, auto change) {
    INFO(how);
    change(plan);
    CHECK(first_problem(plan) != "");
    ++changed;
  };
  for (std::uint64_t seed = 1; changed < 900; ++seed) {
    Dice dice(seed + 600'000);
    const RandomNetwork net = drawn(dice);
    const PolicySpec policy = policy_for(dice, net);
    INFO("seed ", seed, ", ", to_string(policy));
    Plan plan;
    try {
      plan = make_plan(make_table(net.layers, net.input), policy, target_for(dice), predicting);
    } catch (const PlanError&) {
      continue;
    }
    std::vector<std::size_t> stores;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      if (plan.steps[i].op == Op::store) stores.push_back(i);
    const std::size_t at = stores[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(stores.size()) - 1))];
    const auto step = [at](Plan& p) -> Step& { return p.steps[at]; };
    wrong(plan, "left out", [&](Plan& p) { p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(at)); });
    wrong(plan, "twice", [&](Plan& p) { p.steps.insert(p.steps.begin() + static_cast<std::ptrdiff_t>(at), step(p)); });
    wrong(plan, "before it is done", [&](Plan& p) { std::swap(step(p), p.steps[at - 1]); });
    wrong(plan, "one row further", [&](Plan& p) { ++step(p).x.rows.begin, ++step(p).x.rows.end; });
    wrong(plan, "a row less", [&](Plan& p) { --step(p).x.rows.end; });
    wrong(plan, "the next image's", [&](Plan& p) { ++step(p).x.images.begin, ++step(p).x.images.end; });
    wrong(plan, "another tensor", [&](Plan& p) { --step(p).x.tensor; });
    wrong(plan, "in a plan that keeps its output", [](Plan& p) { p.options.stores_output = false; });
    if (stores.size() > 1 && plan.steps[stores[0]].x.images == plan.steps[stores[1]].x.images)
      wrong(plan, "from the bottom up", [&](Plan& p) { std::swap(p.steps[stores[0]].x, p.steps[stores[1]].x); });
  }
}
TEST_CASE("a training plan cannot hand its output on") {
  const Table table = make_table(SmallNet<>::layers, {2, 3, 32, 32});
  const std::string text =
      "lrcnn: a plan for training is to hand its output over row by row; a loss wants the whole output, so it stays until the step is done; "
      "plan with the options `predicting`, or without stores_output";
  CHECK(error_of<PlanError>([&] { make_plan(table, Policy<>::value, {}, {.stores_output = true}); }) == text);
  CHECK(error_of<PlanError>([&] { arena_size(table, Policy<>::value, {}, {.stores_output = true}); }) == text);
}
TEST_CASE("a plan that hands its output on prints its slabs and steps") {
  using Net = VggTrunk<1, 1, 1, 1, 1>;
  std::ostringstream out, steps;
  const Plan plan = make_plan(table_of<Net>({1, 3, 64, 32}), Policy<Share<8>, Workspace<0>>::value, {}, predicting);
  out << plan;
  print_steps(steps, plan);
  CHECK(out.str().find("ByImages<1,Share<8>>  1x3x64x32 -> 1x512x2x1, slabs of ") != std::string::npos);
  CHECK(steps.str().find("store                                 stage 0 slab ") != std::string::npos);
}
namespace {
/// Storage like oneDNN's.
struct Blocked {
  static constexpr Target target{.channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
};
using Trunk = VggTrunk<2, 2, 3, 3, 3>;
constexpr Input photograph{1, 3, 2700, 5400};
// A photograph of fourteen megapixels goes through the trunk of VGG-16 in less memory than its first map's tenth.
static_assert(peak_bytes<Trunk, Policy<Share<60>>, Blocked>(photograph, predicting) < 200'000'000);
static_assert(peak_bytes<Trunk, Policy<Share<84>>, Blocked>(photograph, predicting) < 180'000'000);
static_assert(10 * peak_bytes<Trunk, Policy<Share<60>>, Blocked>(photograph, predicting) < Shape{1, 64, 2700, 5400}.count() * 4);
}   // namespace
TEST_CASE("the constant peak of a forward pass alone is the plan's") {
  const auto same = [](auto policy, const Input& input, Index constant) {
    CHECK(make_plan(table_of<Trunk>(input), decltype(policy)::value, Blocked::target, predicting).peak_bytes() == constant);
  };
  constexpr Index fine = peak_bytes<Trunk, Policy<Share<60>>, Blocked>(photograph, predicting);
  constexpr Index overlap = peak_bytes<Trunk, Policy<Overlap<12>>, Blocked>(photograph, predicting);
  constexpr Index pools = peak_bytes<Trunk, Policy<Share<40>, CheckpointAtPools>, Blocked>(photograph, predicting);
  same(Policy<Share<60>>{}, photograph, fine);
  same(Policy<Overlap<12>>{}, photograph, overlap);
  same(Policy<Share<40>, CheckpointAtPools>{}, photograph, pools);
  CHECK(fine < overlap);
  CHECK(fine < pools);   // checkpoints lie in full height
}
