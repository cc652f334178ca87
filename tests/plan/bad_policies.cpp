// Policies whose members a program has set to numbers that make no sense, and counts of slabs that are large but make sense.
#include "support/error_of.hpp"
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <doctest/doctest.h>
#include <functional>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<4>, ReLU, MaxPool<{.kernel = 2, .stride = 2}>, Conv<4>, ReLU, GlobalAvgPool, Linear<2>>;
}   // namespace
TEST_CASE("a member of a PolicySpec that makes no sense is named, whoever is asked for a plan") {
  struct Row {
    std::function<void(PolicySpec&)> set;
    std::string text;
  };
  const std::vector<Row> rows = {
      {[](PolicySpec& p) { p.partition_count = 0; },
       "PolicySpec::partition_count is 0; a policy has 1 to 64 partitions; the last one serves all further sections; set it to the number of "
       "partitions that are given, or to 1"},
      {[](PolicySpec& p) { p.partition_count = 65; },
       "PolicySpec::partition_count is 65; a policy has 1 to 64 partitions; the last one serves all further sections; set it to the number of "
       "partitions that are given, or to 1"},
      {[](PolicySpec& p) { p.partitions[0].forward = 0; }, "Partition::forward is 0; rows are cut into at least one slab; set it to 1 or more"},
      {[](PolicySpec& p) { p.partitions[0] = {.cut = Cut::share, .forward = 2, .backward = -2}; },
       "Partition::backward is -2; rows are cut into at least one slab; set it to 1 or more"},
      {[](PolicySpec& p) { p.partitions[0].images = -1; },
       "Partition::images is -1; a slab has at least one image, and 0 stands for all of them; set it to 0 or more"},
      {[](PolicySpec& p) { p.images = -3; },
       "PolicySpec::images is -3; a group has at least one image, and 0 stands for all of them; set it to 0 or more"},
      {[](PolicySpec& p) { p.checkpoints.rule = Checkpoints::Rule::every; },
       "Checkpoints::every is 0; from one checkpoint to the next there is at least one layer, or one sum; set it to 1 or more, or leave the rule at "
       "none"},
      {[](PolicySpec& p) { p.checkpoints.rule = Checkpoints::Rule::sums; },
       "Checkpoints::every is 0; from one checkpoint to the next there is at least one layer, or one sum; set it to 1 or more, or leave the rule at "
       "none"},
      {[](PolicySpec& p) { p.workspace_bytes = -5; },
       "PolicySpec::workspace_bytes is -5; a workspace has no fewer than 0 bytes; set it to 0 or more"},
      {[](PolicySpec& p) { p.streams = 0; },
       "PolicySpec::streams is 0; a step has 1 to 8 streams; each takes a slab's memory; set it to 1, its default, or up to 8"},
      {[](PolicySpec& p) { p.streams = 100; },
       "PolicySpec::streams is 100; a step has 1 to 8 streams; each takes a slab's memory; set it to 1, its default, or up to 8"},
      {[](PolicySpec& p) { p.fit_bytes = -1; },
       "PolicySpec::fit_bytes is -1; a plan takes more than 0 bytes, and 0 stands for a policy that is not chosen; set it to 0 or more"}};
  const Table table = make_table(Net::layers, {2, 3, 16, 16});
  for (const Row& row : rows) {
    PolicySpec policy;
    row.set(policy);
    CHECK(error_of<PlanError>([&] { make_plan(table, policy); }) == "lrcnn: " + row.text);
    CHECK(error_of<PlanError>([&] { arena_size(table, policy); }) == "lrcnn: " + row.text);
    CHECK(error_of<PlanError>([&] { make_plan(table, policy, {}, predicting); }) == "lrcnn: " + row.text);
    if (policy.fit_bytes < 0) continue;
    policy.fit_bytes = 1_MiB;
    CHECK(error_of<PlanError>([&] { make_plan(table, policy); }) == "lrcnn: " + row.text);
  }
}
TEST_CASE("plans of thousands of slabs, each of which keeps rows for the backward pass, take seconds") {   // they took a quarter of an hour
  const Table table = make_table(Sequential<Conv<2>, ReLU, Conv<2>, GlobalAvgPool>::layers, {3, 1, 20000, 4});
  PolicySpec policy = Policy<ByImages<2, Share<4000>>, RecomputeAll>::value;
  const Plan plan = make_plan(table, policy);
  CHECK(plan.stages[0].backward.slabs() == 4000);
  CHECK(plan.arena.bytes == arena_size(table, policy).bytes);
  policy.partitions[0].forward = policy.partitions[0].backward = 400;   // as exact, with pieces of one image and of two
  CHECK(check_plan(make_plan(table, policy)).empty());
}
