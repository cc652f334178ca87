// Costs that are measured on oneDNN: convolutions by Winograd's algorithm depend on their workspace.
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/train/measure_costs.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
TEST_CASE("convolutions are measured in the workspaces that a search offers to sections") {
  using Net = Sequential<Conv<64>, ReLU, Conv<64>, ReLU, MaxPool<>, Conv<256>, ReLU, Conv<256>, ReLU, GlobalAvgPool, Linear<4>>;
  Onednn backend(1);
  const Table table = make_table(Net::layers, {2, 3, 24, 24});
  const Costs costs = measure_costs(table, backend, {.seconds = 1000, .runs = 1});   // whatever the machine: all of it
  const Rates rates = rates_of<Onednn>();
  for (const Index bytes : {rates.good_scratch(256, 256), rates.ample_scratch(256, 256)}) {
    PolicySpec policy = Policy<Column, FastestConv>::value;
    policy.partitions[0].workspace_bytes = bytes;
    const Plan plan = make_plan(table, policy, Onednn::target);
    Index convolutions = 0;
    for (const Step& step : plan.steps) {
      if (step.layer < 0 || step.workspace < 0 || plan.table.node(step.layer).in.c != 256 || plan.table.node(step.layer).layer.kind != Kind::conv)
        continue;
      const std::string kind = step_kind(plan, step);
      INFO(kind);
      REQUIRE(costs.knows(kind));
      if (bytes == rates.good_scratch(256, 256))
        CHECK(costs.measured().at(kind).front().pixels <= step_size(plan, step).pixels / 2);   // of one image
      ++convolutions;
    }
    CHECK(convolutions == 3);
  }
}
