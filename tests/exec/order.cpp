// Streams: every two steps that cannot change places are in order, as worked out from the bytes that steps declare, and no
// more waits than needed make streams useless.
#include "coverage.hpp"
#include "declared.hpp"
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/order.hpp>
#include <lrcnn/plan/print.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// before[i][j]: step j is done before step i starts.
std::vector<std::vector<char>> order_of(const Plan& plan, const std::vector<std::vector<Index>>& waits) {
  const std::size_t steps = plan.steps.size();
  std::vector<std::vector<char>> before(steps, std::vector<char>(steps, 0));
  for (std::size_t i = 0; i < steps; ++i) {
    const auto after = [&](std::size_t j) {
      before[i][j] = 1;
      for (std::size_t k = 0; k < j; ++k) before[i][k] = static_cast<char>(before[i][k] | before[j][k]);
    };
    for (const Index j : waits[i]) after(static_cast<std::size_t>(j));
    for (std::size_t j = i; j-- > 0;)
      if (plan.steps[j].stream == plan.steps[i].stream) {
        after(j);
        break;
      }
  }
  return before;
}
/// Pairs of steps on different streams that touch the same bytes, one of them writing, or the same parameters' gradient.
template <class F>
void each_conflict(const Plan& plan, F f) {
  std::vector<Declared> declared;
  for (const Step& step : plan.steps) {
    declared.emplace_back(plan);
    declared.back().mark_step(plan, step);
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Step &a = plan.steps[i], &b = plan.steps[j];
      if (a.stream == b.stream) continue;
      bool conflict = a.op == Op::backward_parameters && b.op == Op::backward_parameters && a.layer == b.layer;
      for (std::size_t byte = 0; !conflict && byte < declared[i].touched.size(); ++byte)
        conflict = (declared[i].touched[byte] && declared[j].written[byte]) || (declared[i].written[byte] && declared[j].touched[byte]);
      if (conflict) f(i, j);
    }
}
}   // namespace
TEST_CASE("steps of different streams that touch the same bytes are in order") {
  Index plans = 0, conflicts = 0, waits = 0, missed = 0;
  for (std::uint64_t seed = 0; plans < 120; ++seed) {
    Dice dice(seed + 51000);
    const RandomNetwork net = random_network(dice, 6);
    PolicySpec policy = random_policy(dice, net);
    policy.streams = dice.upto(1, 3);
    policy.prefetch = policy.streams == 1 || dice.chance(0.3);
    policy.workspace_bytes = dice.pick({0, 64});
    add_workspaces(dice, policy, {0, 64, 640});
    const Target target{.element_bytes = 4,
                        .channel_block = dice.pick<Index>({1, 8, Target::all_channels}),
                        .packs_weights = dice.chance(0.5),
                        .activates = dice.chance(0.5)};
    INFO("seed ", seed, ", ", to_string(policy));
    try {
      const Plan plan = make_plan(make_table(net.layers, net.input), policy, target, {.input_gradient = dice.chance(0.5)});
      if (stream_count(plan) == 1 || plan.arena.bytes > 40'000 || plan.steps.size() > 300) continue;
      CHECK(check_plan(plan).empty());
      const auto needed = waits_of(plan);
      const auto before = order_of(plan, needed);
      each_conflict(plan, [&](std::size_t i, std::size_t j) {
        missed += !before[i][j];
        ++conflicts;
      });
      CHECK(missed == 0);
      for (std::size_t i = 0; i < needed.size(); ++i)
        for (const Index j : needed[i]) {
          CHECK(j < static_cast<Index>(i));
          CHECK(plan.steps[static_cast<std::size_t>(j)].stream != plan.steps[i].stream);
          ++waits;
        }
      ++plans;
    } catch (const PlanError&) {
    }
  }
  MESSAGE(plans, " plans, ", conflicts, " conflicts, ", waits, " waits");
  CHECK(conflicts > 3000);
  CHECK(waits * 2 < conflicts);
}
TEST_CASE("independent slabs wait for each other only where filter gradients are added up and rows meet") {
  const std::vector<Layer> layers{{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 8},
                                  {.kind = Kind::activation},
                                  {.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 8},
                                  {.kind = Kind::activation},
                                  {.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}},
                                  {.kind = Kind::global_avg_pool},
                                  {.kind = Kind::linear, .channels = 3, .bias = true}};
  const Table table = make_table(layers, {2, 8, 64, 64});
  const Target target{.channel_block = Target::all_channels, .alignment = 256, .packs_weights = true, .activates = true};
  const PolicySpec one = Policy<Overlap<8>, CheckpointAtPools, RecomputeAll, Workspace<4096>>::value;
  PolicySpec two = one, ahead = one;
  two.streams = 2;
  ahead.prefetch = true;
  const Plan plan = make_plan(table, two, target), single = make_plan(table, one, target), prefetched = make_plan(table, ahead, target);
  CHECK(stream_count(single) == 1);
  CHECK(stream_count(plan) == 2);
  CHECK(stream_count(prefetched) == 2);
  const auto waits = waits_of(plan);
  Index forward = 0;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.pass == Pass::forward && step.stage == 0) forward += static_cast<Index>(waits[i].size());
    for (const Index j : waits[i]) {
      const Step& before = plan.steps[static_cast<std::size_t>(j)];
      if (before.op == Op::pack_backward) continue;
      if (step.pass == Pass::backward && before.pass == Pass::backward && step.stage == 0 && before.stage == 0)
        CHECK_MESSAGE((step.op == Op::backward_parameters && before.op == Op::backward_parameters), to_string(step, table), " after ",
                      to_string(before, table));
    }
  }
  CHECK(forward <= 2);                              // the two filters, packed on the first stream
  CHECK(plan.peak_bytes() > single.peak_bytes());   // that is the price
  CHECK(prefetched.peak_bytes() <= plan.peak_bytes());
  const auto ahead_waits = waits_of(prefetched);
  for (std::size_t i = 0; i < ahead_waits.size(); ++i)
    if (prefetched.steps[i].op == Op::load)
      for (const Index j : ahead_waits[i])
        CHECK(prefetched.steps[static_cast<std::size_t>(j)].slab != prefetched.steps[i].slab + (prefetched.steps[i].pass == Pass::forward ? -1 : 1));
}
