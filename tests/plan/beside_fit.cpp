// What a policy says beside Fit holds, and the search counts what it means: streams, recomputation, and workspaces.
#include "plan/frontier_cases.hpp"
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
