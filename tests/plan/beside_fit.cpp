// What a policy says beside Fit holds, and a search counts what it means: streams, workspaces, recomputation.
#include "plan/frontier_cases.hpp"
#include "support/thorough.hpp"
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/policy/parse.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const Target& blocked = frontier_target;
const Costs& costs = frontier_costs;
Frontier frontier_of(const Table& table, const PolicySpec& policy) { return find_frontier(table, policy, blocked, {}, costs); }
}   // namespace
TEST_CASE("Fit finds plans of few bytes for any number of streams: slabs of which each stream has one save nothing, but more of them do") {
  const Table table = make_table(Vgg16<>::layers, {1, 3, 512, 512});
  for (const Index streams : {2, 4, 8}) {
    CAPTURE(streams);
    PolicySpec fitted = Policy<Fit<1>, Workspace<0>>::value, by_hand = Policy<Overlap<16>, CheckpointAtPools, RecomputeAll, Workspace<0>>::value;
    fitted.streams = by_hand.streams = streams;
    CHECK(frontier_of(table, fitted).smallest().bytes < arena_size(table, by_hand, blocked).bytes);
  }
}
TEST_CASE("with streams, sections of which no slabs are at work at once share one workspace, and a budget leaves room for one") {
  const Table table = make_table(ResNet18<>::layers, {1, 3, 512, 512});
  const Frontier single = frontier_of(table, Policy<Fit<1>, Workspace<16_MiB>>::value);
  StepCosts of_steps(costs, table, blocked);
  for (const Index streams : {2, 4}) {
    CAPTURE(streams);
    PolicySpec fitted = Policy<Fit<1>, Workspace<16_MiB>>::value;
    fitted.streams = streams;
    const Frontier frontier = frontier_of(table, fitted);
    std::size_t whole = 0;   // points that share one workspace, though there are streams
    for (SolvedPolicy point : single.points) {
      point.policy.streams = streams;
      CAPTURE(to_string(point.policy));
      const Index bytes = arena_size(table, point.policy, blocked).bytes;
      whole += bytes == point.bytes;
      const SolvedPolicy* const fitting = frontier.fastest(bytes);
      REQUIRE(fitting != nullptr);
      CHECK(fitting->seconds < 1.02 * plan_seconds(table, point.policy, blocked, {}, of_steps));
    }
    CHECK(whole > 5);
  }
}
TEST_CASE("a search never counts fewer bytes than are live in a plan with streams, whether these have workspaces of their own or not") {
  std::size_t solved_count = 0, shared = 0, single = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(400, 60); ++seed) {
    const FrontierCase c = random_frontier_case(seed);
    PolicySpec policy;
    policy.streams = 2 + static_cast<Index>(seed % 3);
    const Index workspace = seed % 2 == 0 ? 1_KiB : 16_KiB;
    try {
      const SectionSearch search(c.table, policy, c.target, c.options, costs, 0, 1, {step_memories.begin(), step_memories.end()});
      Index room = Index{1} << 40;
      for (int tries = 0; tries < 40; ++tries, ++solved_count) {
        const auto solved = search.fastest(StepMemory::shared_workspace, room, workspace, 3);
        if (solved.empty()) break;
        CAPTURE(seed);
        for (const SolvedPolicy& found : solved) {
          CAPTURE(to_string(found.policy));
          REQUIRE(found.policy.streams == policy.streams);
          const Index live = arena_size(c.table, found.policy, c.target, c.options).lower_bound;   // throws where a norm has one value
          REQUIRE(live <= room);
          REQUIRE(std::count_if(solved.begin(), solved.end(), [&](const SolvedPolicy& other) { return other.policy == found.policy; }) == 1);
        }
        const Plan plan = make_plan(c.table, solved[0].policy, c.target, c.options);
        const auto is_shared = [&](const Buffer& b) { return b.role == Role::workspace && b.bytes == workspace; };
        const auto found = std::find_if(plan.buffers.begin(), plan.buffers.end(), is_shared);
        if (found != plan.buffers.end()) ++(found->copies > 1 ? shared : single);
        room = std::min(room, plan.arena.lower_bound) - 1;
      }
    } catch (const PlanError&) {   // a norm of one value
    }
  }
  MESSAGE(solved_count, " policies, of which ", shared, " have several workspaces and ", single, " have one");
  CHECK(shared > 20);
  CHECK(single > 20);
}
TEST_CASE("a workspace that is named in a partition beside Fit is that of each section, and none is shared") {
  const Table table = make_table(Vgg16<>::layers, {1, 3, 256, 256});
  const Rates rates{
      .step = 2e-7, .products = 2e9, .winograd = 5e9, .bytes = 5e9, .lanes = 4, .winograd_bytes = +[](Index from, Index to, Index tiles) {
        return 144 * (tiles * (from + 64) + 64 * from) + 4 * to;
      }};
  const Costs with_own(rates);   // sections may have workspaces of their own
  for (const Costs* const known : {&costs, &with_own})
    for (const char* const rest : {", CheckpointAtPools, Workspace<67108864>>", ", CheckpointAtPools>", ">"}) {
      const PolicySpec policy = parse_policy(std::string("Policy<Fit<1>, Section<Overlap<4>, RecomputeAll, Workspace<1048576>>") + rest);
      CAPTURE(to_string(policy));
      const Frontier frontier = find_frontier(table, policy, blocked, {}, *known);
      for (const SolvedPolicy& point : frontier.points) {
        CAPTURE(to_string(point.policy));
        CHECK(make_plan(table, point.policy, blocked).arena.bytes == point.bytes);
        for (Index i = 0; i < point.policy.partition_count; ++i) CHECK(point.policy.partition(i).workspace_bytes == 1_MiB);
        if (policy.names(PolicySpec::Part::workspace)) CHECK(point.policy.workspace_bytes == 64_MiB);
      }
      PolicySpec by_hand = policy;
      by_hand.fit_bytes = 0, by_hand.named = 0, by_hand.conv_algorithm = ConvAlgorithm::fastest;
      CHECK(frontier.smallest().bytes <= arena_size(table, by_hand, blocked).bytes);
    }
}
TEST_CASE("recomputation that is named beside Fit is that of all sections, those with norms, too") {
  const Table table = make_table(ResNet18<>::layers, {1, 3, 256, 256});
  for (const PolicySpec& policy : {Policy<Fit<1>, KeepAll>::value, Policy<Fit<1>, RecomputeLight>::value, Policy<Fit<1>, RecomputeCheap>::value,
                                   Policy<Fit<1>, RecomputeAll>::value}) {
    CAPTURE(to_string(policy));
    for (const SolvedPolicy& point : frontier_of(table, policy).points) {
      CAPTURE(to_string(point.policy));
      for (Index i = 0; i < point.policy.partition_count; ++i) CHECK(point.policy.recompute_in(point.policy.partition(i)) == policy.recompute);
    }
  }
}
