#pragma once
// Random networks that branch, with norms and upsampling, on a device, real or pretended: what the reference gives, row by row what layer by
// layer gives, step by step, recorded, and on several streams.
#include "cudnn/device_run.hpp"
#include "exec/graph_equivalence.hpp"
#include "support/random_graph.hpp"
#include <doctest/doctest.h>
namespace lrcnn::testing {
inline constexpr Index graph_workspace = 1_MiB;
inline const std::vector<PolicySpec> graph_policies{
    Policy<Share<3>, CheckpointAtPools, RecomputeAll>::value, Policy<Share<2>, CheckpointEvery<4>>::value,
    Policy<Overlap<2>, CheckpointEvery<3>, RecomputeAll>::value, Policy<Share<4>, RecomputeCheap>::value, Policy<Column, KeepAll>::value};
/// Differences beyond the tolerance are those of ill-conditioned networks: at most ten times what noise in the last place of parameters and
/// images makes.
/// make(seed) gives a backend.
template <class Make>
void graph_law(std::uint64_t first, Index cases, double tolerance, Make make) {
  using B = decltype(make(first));
  Index compared = 0, norms = 0, joins = 0, conditioned = 0;
  double against_rows = 0, against_reference = 0;
  for (std::uint64_t seed = first; compared < cases; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = random_graph(dice, 6);
    const Problem<float> problem(net.layers, net.input, seed);
    B backend = make(seed);
    INFO("seed ", seed);
    PolicySpec column;
    column.workspace_bytes = graph_workspace;
    std::optional<Outcome<float>> whole;
    try {
      whole = DeviceRun<B>(problem, column, backend)();
    } catch (const PlanError&) {   // a norm over groups at the top of the network, say
      continue;
    }
    Reference<float, Target::all_channels> reference;
    const Outcome<float> wanted = run_once(problem, column, reference);
    double noise = -1;
    const auto check = [&](double difference, double& most) {
      if (difference <= tolerance) return most = std::max(most, difference), void();
      if (noise < 0) noise = noise_of(problem, wanted, column, reference, 6);
      CHECK(difference <= 10 * noise);
      ++conditioned;
    };
    check(worst_graph_difference(problem, *whole, wanted), against_reference);
    PolicySpec policy = graph_policies[seed % graph_policies.size()];
    policy.workspace_bytes = graph_workspace;
    if (seed % 4 == 1) policy.streams = 2;
    INFO(to_string(policy));
    try {
      DeviceRun<B> run(problem, policy, backend);
      for (int turn = 0; turn < 3; ++turn)   // step by step, recorded, started again
        check(worst_graph_difference(problem, run(), *whole), against_rows);
    } catch (const PlanError&) {
      continue;
    }
    for (const Layer& y : net.layers) norms += y.kind == Kind::norm, joins += is_join(y);
    ++compared;
  }
  MESSAGE(compared, " cases, ", norms, " norms, ", joins, " joins; worst difference of rows to column ", against_rows, ", to the reference ",
          against_reference, "; ill-conditioned runs ", conditioned);
  CHECK(conditioned * 4 < compared);
  CHECK(norms > compared);
  CHECK(joins * 2 > compared);
}
}   // namespace lrcnn::testing
