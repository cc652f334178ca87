// Policies that are chosen with MayOffload: they offload inputs of sections where that serves, and their plans take what the search says.
#include "plan/frontier_cases.hpp"
#include "support/error_of.hpp"
#include "support/rows_behind.hpp"
#include "support/thorough.hpp"
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/policy/parse.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const PolicySpec may_offload = Policy<Fit<1>, Workspace<0>, DirectConv, MayOffload>::value;
Index offloading_sections(const PolicySpec& policy) {
  Index count = 0;
  for (Index i = 0; i < policy.partition_count; ++i) count += policy.partition(i).input == SectionInput::offload;
  return count;
}
}   // namespace
TEST_CASE("with MayOffload, points are correct plans of exactly their bytes and seconds, and no slower than without") {
  const std::uint64_t cases = cases_to_do<std::uint64_t>(400, 4);
  std::size_t points = 0, offloading = 0, fewer_bytes = 0, networks = 0, compared = 0, slower = 0;
  for (std::uint64_t seed = 0; seed < 2 * cases; ++seed) {
    const FrontierCase c = seed < cases ? random_frontier_case(seed) : residual_frontier_case(seed);
    Frontier without;
    if (!has_frontier(c, without)) continue;
    CAPTURE(seed);
    ++networks;
    const Frontier with = find_frontier(c.table, may_offload, c.target, c.options, frontier_costs);
    for (const SolvedPolicy& point : with.points) {
      CAPTURE(to_string(point.policy));
      const Plan plan = make_plan(c.table, point.policy, c.target, c.options);
      REQUIRE(plan.arena.bytes == point.bytes);
      REQUIRE(seconds(plan, frontier_costs) + seconds_left_out(plan, frontier_costs) == doctest::Approx(point.seconds).epsilon(1e-9));
      REQUIRE(check_plan(plan).empty());
      REQUIRE(!point.policy.may_offload);   // what is chosen is a policy as any other
      REQUIRE(parse_policy(to_string(point.policy)) == point.policy);
      const bool offloads = offloading_sections(point.policy) > 0;
      REQUIRE(offloads == (plan.offloaded_bytes() > 0));
      ++points, offloading += offloads;
    }
    for (const SolvedPolicy& point : without.points) {
      REQUIRE(offloading_sections(point.policy) == 0);
      REQUIRE(with.fastest(point.bytes) != nullptr);
      ++compared, slower += with.fastest(point.bytes)->seconds > 1.02 * point.seconds;
    }
    fewer_bytes += with.smallest().bytes < without.smallest().bytes;
    if (!c.options.training) REQUIRE(with.points == without.points);   // nothing waits for a backward pass
  }
  MESSAGE(points, " points, of which ", offloading, " offload; ", fewer_bytes, " of ", networks, " networks in fewer bytes; of ", compared,
          " points without, ", slower, " are more than 2 % faster");
  CHECK(offloading > points / 4);
  CHECK(fewer_bytes >= networks / 4);
  CHECK(slower <= compared / 100);
}
TEST_CASE("a search that may offload never counts fewer bytes than are live in the plan") {
  std::size_t solved_count = 0, offloading = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(1000, 12); ++seed) {
    const FrontierCase c = seed % 2 == 0 ? random_frontier_case(seed) : residual_frontier_case(seed);
    PolicySpec policy;
    policy.images = seed % 3 == 0 ? 1 : 0;
    try {
      const SectionSearch search(c.table, policy, c.target, c.options, frontier_costs, PolicySpec::bit(PolicySpec::Part::may_offload), 1,
                                 {step_memories.begin(), step_memories.end()});
      for (const StepMemory memory : step_memories) {
        Index room = Index{1} << 40;
        for (int tries = 0; tries < 30; ++tries, ++solved_count) {
          const auto solved = search.fastest(memory, room, 0);
          if (solved.empty()) break;
          CAPTURE(seed);
          CAPTURE(to_string(solved[0].policy));
          const Index live = arena_size(c.table, solved[0].policy, c.target, c.options).lower_bound;
          const Index behind = bytes_behind(c.table, solved[0].policy, c.target, c.options);
          REQUIRE(live <= room + (search.catalog().is_thorough() ? 0 : behind));
          offloading += offloading_sections(solved[0].policy) > 0;
          room = std::min(room, live) - 1;
        }
      }
    } catch (const PlanError&) {   // a norm of one value, or a batch norm and groups of images
    }
  }
  MESSAGE(solved_count, " policies, of which ", offloading, " offload");
  CHECK(offloading > solved_count / 8);
}
TEST_CASE("a section whose input may be offloaded is not taken for one that is like it but for that") {
  const Layer conv{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 4};
  Layer from_below = conv;   // reads what the layer before the pooling makes, as a sum further up does
  from_below.input = 2;
  const std::vector<Layer> layers{conv,
                                  conv,
                                  {.kind = Kind::avg_pool, .window = {.kernel = 3, .stride = 1, .pad = 1}},
                                  from_below,
                                  {.kind = Kind::sum, .input = 1, .other = 2},
                                  {.kind = Kind::global_avg_pool},
                                  {.kind = Kind::linear, .channels = 3}};
  const Table table = make_table(layers, {2, 3, 24, 8});
  const PolicySpec every = Policy<Fit<1>, Workspace<0>, DirectConv, MayOffload, CheckpointEvery<1>>::value;
  for (const SolvedPolicy& point : find_frontier(table, every, Target{}, {}, frontier_costs).points)
    CHECK(make_plan(table, point.policy, Target{}).arena.bytes == point.bytes);
}
TEST_CASE("MayOffload is a part of a policy that has an effect beside Fit alone") {
  const PolicySpec policy = Policy<Fit<1'000'000>, MayOffload>::value;
  CHECK(policy.may_offload);
  CHECK(to_string(policy) == "Policy<Fit<1000000>, MayOffload>");
  CHECK(parse_policy("Policy<Fit<1000000>, MayOffload>") == policy);
  CHECK(policy != Policy<Fit<1'000'000>>::value);
  CHECK(error_of([] { static_cast<void>(parse_policy("Policy<MayOffload, MayOffload>")); }).find("each kind may be named once") != std::string::npos);
  const Table table = table_of<ResNet18<10>>({2, 3, 64, 64});
  CHECK(make_plan(table, Policy<CheckpointAtSums<>, MayOffload>::value, Target{}).offloaded_bytes() == 0);
  const Frontier named = find_frontier(table, Policy<Fit<1>, ByImages<1, Column>, MayOffload>::value, Target{}, {}, frontier_costs);
  CHECK(offloading_sections(named.smallest().policy) > 0);   // a partition that is named may offload, too
  for (const SolvedPolicy& point : named.points)
    for (Index i = 0; i < point.policy.partition_count; ++i)
      REQUIRE((point.policy.partition(i).images == 1 && point.policy.partition(i).cut == Cut::column));
  CHECK(error_of<PlanError>([&] {
          static_cast<void>(find_frontier(table, Policy<Fit<1>, OffloadInput<>>::value, Target{}, {}, frontier_costs));
        }).find("MayOffload allows offloading") != std::string::npos);
}
