// What saves bytes in networks with norms is on their frontiers, and takes what the search says: groups of sections whose inputs are made again, and
// extra passes that keep what norms read.
#include "plan/frontier_cases.hpp"
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/checker.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const Target& blocked = frontier_target;
const Costs& costs = frontier_costs;
Frontier frontier_of(const Table& table, const PlanOptions& options = {}) { return find_frontier(table, free_frontier, blocked, options, costs); }
Index nested_points(const Frontier& frontier) {
  return std::count_if(frontier.points.begin(), frontier.points.end(), [](const SolvedPolicy& p) { return p.policy.recomputes_inputs(); });
}
}   // namespace
TEST_CASE("points of a frontier that make inputs again are correct plans of exactly their bytes and seconds, and need more bytes without that") {
  struct Net {
    Table table;
    PlanOptions options;
  };
  const std::array nets{Net{make_table(ResNet18<10>::layers, {1, 3, 256, 256}), {}}, Net{make_table(ResNet18<10>::layers, {4, 3, 96, 96}), {}},
                        Net{make_table(UNet<2>::layers, {1, 3, 512, 512}), {.rows_loss = true}}};
  for (const Net& net : nets) {
    const Frontier frontier = frontier_of(net.table, net.options);
    CAPTURE(to_string(net.table.input));
    CHECK(nested_points(frontier) >= 3);
    for (const SolvedPolicy& point : frontier.points) {
      if (!point.policy.recomputes_inputs()) continue;
      CAPTURE(to_string(point.policy));
      const Plan plan = make_plan(net.table, point.policy, blocked, net.options);
      REQUIRE(plan.arena.bytes == point.bytes);
      REQUIRE(seconds(plan, costs) + seconds_left_out(plan, costs) == doctest::Approx(point.seconds).epsilon(0.01));   // slabs stand for others
      REQUIRE(check_plan(plan).empty());
      REQUIRE(std::any_of(plan.stages.begin(), plan.stages.end(), [](const Stage& stage) { return stage.supplies || stage.makes_input; }));
      PolicySpec keeps = point.policy;
      for (Partition& partition : keeps.partitions) partition.input = SectionInput::keep;
      REQUIRE(arena_size(net.table, keeps, blocked, net.options).bytes > point.bytes);
    }
  }
}
TEST_CASE("a ResNet-50 takes a fifth of its column's bytes for little more time, an eighth for less than twice, and a tenth for little more") {
  const Table table = make_table(ResNet50<>::layers, {1, 3, 1024, 1024});
  const Frontier frontier = frontier_of(table);
  const SolvedPolicy& column = frontier.points.back();
  const SolvedPolicy *const fifth = frontier.fastest(column.bytes / 5), *const eighth = frontier.fastest(column.bytes / 8);
  REQUIRE(fifth != nullptr);
  CHECK(fifth->seconds < 1.4 * column.seconds);   // 2.4 times, if segments did not lie within segments
  REQUIRE(eighth != nullptr);
  CHECK(eighth->seconds < 2 * column.seconds);   // 3.5 times, if no extra pass went through the last norms of blocks alone
  CHECK(std::any_of(eighth->policy.partitions.begin(), eighth->policy.partitions.end(),
                    [](const Partition& p) { return p.passes == NormPasses::one; }));
  const SolvedPolicy* const tenth = frontier.fastest(column.bytes / 10);
  REQUIRE(tenth != nullptr);   // if the inputs of blocks with two convolutions at their ends had gradients of their own, there would be none
  CHECK(tenth->seconds < 2.5 * column.seconds);
  // Passes have fewer slabs than their sections where there is room.
  const auto points_with = [&](auto says) {
    return std::count_if(frontier.points.begin(), frontier.points.end(),
                         [&](const SolvedPolicy& p) { return std::any_of(p.policy.partitions.begin(), p.policy.partitions.end(), says); });
  };
  CHECK(points_with([](const Partition& p) { return p.maker_slabs > 0; }) > 2);
  CHECK(points_with([](const Partition& p) { return p.again_as_backward; }) > 2);
  // No point is faster for no more bytes if its sections go forward layer by layer.
  Index longer = 0;
  StepCosts of_steps(costs, table, blocked);
  for (const SolvedPolicy& point : frontier.points) {
    PolicySpec other = point.policy;
    for (Partition& p : other.partitions)
      if (other.recompute_in(p) == Recompute::all && p.cut == Cut::overlap) {
        longer += p.forward < p.backward && p.passes != NormPasses::none;
        p.forward = 1, p.forward_passes = false;
      }
    if (other == point.policy) continue;
    CAPTURE(to_string(point.policy));
    const SolvedPolicy* const same = frontier.fastest(arena_size(table, other, blocked).bytes);
    if (same != nullptr) CHECK(same->seconds <= plan_seconds(table, other, blocked, {}, of_steps) * (1 + 1e-9));
  }
  CHECK(longer > 5);
}
TEST_CASE("below the first pooling what the norm reads is kept from one extra pass to the next, where there is room for it") {
  const Frontier frontier = frontier_of(make_table(ResNet18<>::layers, {1, 3, 1024, 1024}));
  const auto keeps = [](const SolvedPolicy& p) {
    const Partition& first = p.policy.partition(0);
    return first.passes != NormPasses::none && p.policy.recompute_in(first) == Recompute::cheap;
  };
  CHECK(std::count_if(frontier.points.begin(), frontier.points.end(), keeps) >= 3);
}
TEST_CASE("a network without norms has no groups: slabs go through any number of its layers") {
  CHECK(nested_points(frontier_of(make_table(Vgg11<>::layers, {1, 3, 512, 512}))) == 0);
}
