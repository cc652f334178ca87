#pragma once
// Sections whose inputs are offloaded give the bits of sections that keep them.
#include "exec/shared_gradients.hpp"
namespace lrcnn::testing {
/// `workspace`: bytes that each step may use.
template <class B>
void offloaded_inputs_law(B& backend, Index workspace) {
  using M = master_t<typename B::element>;
  using UnetLike = Sequential<
      Conv<16>, ReLU,
      Concat<Identity, Sequential<MaxPool<>, Conv<32>, BatchNorm, ReLU, MaxPool<>, Conv<32>, ReLU, Upsample<2>, Conv<16>, ReLU, Upsample<2>>>,
      Conv<16>, BatchNorm, ReLU, GlobalAvgPool, Linear<10>>;
  for (const std::span<const Layer> layers : {std::span<const Layer>(NormedBlocks<24, 12>::layers),
                                              std::span<const Layer>(NormedBlocks<32, 16>::layers), std::span<const Layer>(UnetLike::layers)}) {
    const Problem<M> problem(layers, {4, 3, 40, 28}, 23);
    for (PolicySpec policy :
         {Policy<OffloadInput<>, CheckpointEvery<3>>::value, Policy<OffloadInput<Overlap<3>>, CheckpointEvery<3>, RecomputeAll>::value,
          Policy<OffloadInput<Share<3>>, CheckpointEvery<4>, RecomputeAll>::value,
          Policy<OffloadInput<ByImages<3, Overlap<2>>>, CheckpointEvery<3>, RecomputeCheap, GradientsInPlace>::value,
          Policy<OffloadInput<OneExtraPass<Overlap<3>>>, CheckpointEvery<5>, RecomputeAll, GradientsInPlace>::value,
          Policy<OffloadInput<ExtraPassesBothWays<Overlap<2>>>, CheckpointEvery<5>, RecomputeAll>::value,
          Policy<Stages<Column, OffloadInput<Overlap<2>>, RecomputeInputAlone<Overlap<3>>>, CheckpointEvery<3>, RecomputeAll>::value,
          Policy<OffloadInput<Overlap<3>>, CheckpointEvery<3>, RecomputeAll, Streams<2>, Prefetch>::value}) {
      policy.workspace_bytes = workspace;
      INFO(to_string(policy));
      const Outcome<M> offloaded = run_once(problem, policy, backend);
      const Plan plan = make_plan(problem.table, policy, B::target, {.input_gradient = true});
      CHECK(plan.offloaded_bytes() > 0);
      for (Index i = 0; i < policy.partition_count; ++i)
        if (Partition& p = policy.partitions[static_cast<std::size_t>(i)]; p.input == SectionInput::offload) p.input = SectionInput::keep;
      check_same(offloaded, run_once(problem, policy, backend));
    }
  }
}
}   // namespace lrcnn::testing
