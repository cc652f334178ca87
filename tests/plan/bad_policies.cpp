// Policies whose members a program has set to numbers or enumerators that make no sense, and counts of slabs that are large but make sense.
#include "support/error_of.hpp"
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
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
      {[](PolicySpec& p) { p.partitions[0].maker_slabs = -1; },
       "Partition::maker_slabs is -1; an input is made again in at least one slab, and 0 stands for as many as the section has; set it to 0 or more"},
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
       "PolicySpec::workspace_bytes is -5; a workspace has 0 bytes to 1 PiB, and -1 is for the backend's; set it to the bytes that a step may use"},
      {[](PolicySpec& p) { p.workspace_bytes = std::numeric_limits<Index>::max(); },   // the plan's bytes would wrap
       "PolicySpec::workspace_bytes is 9223372036854775807; a workspace has 0 bytes to 1 PiB, and -1 is for the backend's; set it to the bytes that "
       "a step may use"},
      {[](PolicySpec& p) { p.partitions[0].workspace_bytes = most_workspace + 1; },
       "Partition::workspace_bytes is 1125899906842625; a workspace has 1 PiB at most; set it to the bytes that a step may use, or below 0 for what "
       "the policy says"},
      {[](PolicySpec& p) { p.partitions[0] = {.cut = static_cast<Cut>(7), .forward = 3}; },
       "Partition::cut is 7; sections are cut as Column, Overlap or Share; set it to one of them"},
      {[](PolicySpec& p) { p.partitions[0].recompute = static_cast<Recompute>(5); },
       "Partition::recompute is 5; a section has one of the enumerators of Recompute; set it to one of them"},
      {[](PolicySpec& p) { p.partitions[0].conv_algorithm = static_cast<ConvAlgorithm>(4); },
       "Partition::conv_algorithm is 4; a section has one of the enumerators of ConvAlgorithm; set it to one of them"},
      {[](PolicySpec& p) { p.checkpoints.rule = static_cast<Checkpoints::Rule>(5); },
       "Checkpoints::rule is 5; it is one of the enumerators of Rule; set it to one of them"},
      {[](PolicySpec& p) { p.recompute = Recompute::of_policy; },
       "PolicySpec::recompute is 4; it is none, all, cheap or light; of_policy is for a partition, which asks the policy; set it to one of them"},
      {[](PolicySpec& p) { p.conv_algorithm = ConvAlgorithm::of_policy; },
       "PolicySpec::conv_algorithm is 3; it is direct, winograd or fastest; of_policy is for a partition, which asks the policy; set it to one of "
       "them"},
      {[](PolicySpec& p) { p.precision = static_cast<Precision>(5); },
       "PolicySpec::precision is 5; it is one of the enumerators of Precision; set it to one of them"},
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
TEST_CASE("more slabs than a plan has steps are refused before they are made, and the largest workspaces can be added up") {   // no memory was left
  const Table tall = make_table(Sequential<Conv<1>, ReLU>::layers, {1, 1, 5'000'000, 1});
  const std::string text = error_of<PlanError>([&] { make_plan(tall, Policy<Overlap<2'000'000'000>>::value, {}, predicting); });
  CHECK(text.find("2000000000 slabs") != std::string::npos);
  CHECK(text.find("the largest feasible count is 262144") != std::string::npos);
  CHECK(error_of<PlanError>([&] { make_plan(tall, Policy<Share<2'000'000>>::value, {}, predicting); }).find("the largest feasible count is 262144") !=
        std::string::npos);
  const Table table = make_table(Net::layers, {2, 3, 16, 16});
  PolicySpec policy = Policy<Stages<Section<Overlap<2>, Workspace<1>>, Section<Share<2>, Workspace<1>>>, CheckpointAtPools>::value;
  policy.streams = most_streams, policy.workspace_bytes = most_workspace;
  for (Index i = 0; i < policy.partition_count; ++i) policy.partitions[static_cast<std::size_t>(i)].workspace_bytes = most_workspace;
  Target target;
  target.uses_workspace = true;
  CHECK(arena_size(table, policy, target).bytes >= most_workspace);
}
