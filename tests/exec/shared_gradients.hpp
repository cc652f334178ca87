#pragma once
// Sums whose inputs get one gradient, and inputs that are made again alone, give the bits of plans without them.
#include <lrcnn/lrcnn.hpp>
#include "support/run_network.hpp"
#include <doctest/doctest.h>
namespace lrcnn::testing {
/// Residual blocks that end in norms: one whose second input comes from a norm, too, two with skip connections, and one with group norms.
template <Index wide, Index narrow>
using NormedBlocks =
    Sequential<Conv<wide>, BatchNorm, ReLU, MaxPool<>,
               Residual<Sequential<Conv<narrow>, BatchNorm, ReLU, Conv<wide>, BatchNorm>, Sequential<Conv<wide>, BatchNorm>>, ReLU,
               Residual<Sequential<Conv<narrow>, BatchNorm, ReLU, Conv<wide>, BatchNorm>>, ReLU, Residual<Sequential<Conv<wide>, BatchNorm>>, ReLU,
               Residual<Sequential<Conv<wide>, GroupNorm<2>>>, ReLU, GlobalAvgPool, Linear<10>>;
template <class M>
void check_same(const Outcome<M>& a, const Outcome<M>& b) {
  CHECK(a.loss.sum == b.loss.sum);
  CHECK(a.output == b.output);
  CHECK(a.gradients == b.gradients);
  CHECK(a.input_gradient == b.input_gradient);
}
/// `workspace`: bytes that each step may use.
template <class B>
void shared_gradients_law(B& backend, Index workspace) {
  using M = master_t<typename B::element>;
  for (const std::span<const Layer> layers :
       {std::span<const Layer>(NormedBlocks<64, 16>::layers), std::span<const Layer>(NormedBlocks<24, 12>::layers)}) {
    const Problem<M> problem(layers, {4, 3, 40, 28}, 21);
    PolicySpec all{.workspace_bytes = workspace};
    const Outcome<M> usual = run_once(problem, all, backend);
    for (PolicySpec policy : {Policy<Column>::value, Policy<CheckpointAtSums<>, RecomputeAll>::value}) {
      policy.gradients_in_place = true, policy.workspace_bytes = workspace;
      INFO(to_string(policy));
      const Plan plan = make_plan(problem.table, policy, B::target, {.input_gradient = true});
      const auto over_values = [](const Step& s) { return s.op == Op::backward_data && s.sums >= 0 && s.dx.buffer == s.x.buffer; };
      CHECK(std::count_if(plan.steps.begin(), plan.steps.end(), over_values) == 5);
      check_same(run_once(problem, policy, backend), usual);
    }
    // Extra passes write the gradient of a sum over that of the section's output; its numbers are the same.
    for (PolicySpec policy :
         {Policy<OneExtraPass<>, CheckpointAtSums<>, RecomputeAll>::value, Policy<OneExtraPass<Overlap<3>>, CheckpointAtSums<>, RecomputeAll>::value,
          Policy<Section<OneExtraPass<Overlap<3>>, RecomputeCheap>, CheckpointAtSums<>, RecomputeAll>::value,
          Policy<OneExtraPassBothWays<ByImages<2, Overlap<2>>>, CheckpointAtSums<>>::value}) {
      policy.workspace_bytes = workspace;
      INFO(to_string(policy));
      const Outcome<M> apart = run_once(problem, policy, backend);
      policy.gradients_in_place = true;
      const Plan plan = make_plan(problem.table, policy, B::target, {.input_gradient = true});
      const std::vector<StageNeeds> needs = needs_of(plan.table, policy, plan.options, plan.stages);
      CHECK(std::count_if(needs.begin(), needs.end(), [](const StageNeeds& stage) { return stage.sum_in_place >= 0; }) == 2);
      check_same(run_once(problem, policy, backend), apart);
    }
    // Slabs that make an input again make it from the same numbers; what goes backward is the same.
    PolicySpec lone = Policy<Stages<Column, Column, RecomputeInputAlone<>, RecomputeInputAlone<>, RecomputeInputAlone<>, Column>, CheckpointAtSums<>,
                             RecomputeAll, GradientsInPlace>::value;
    lone.workspace_bytes = workspace;
    const std::vector<Stage> stages = make_plan(problem.table, lone, B::target).stages;
    CHECK(std::count_if(stages.begin(), stages.end(), [](const Stage& stage) { return stage.makes_input; }) == 3);
    const Outcome<M> again = run_once(problem, lone, backend);
    CHECK(again.loss.sum == usual.loss.sum);
    CHECK(again.gradients == usual.gradients);
    CHECK(again.input_gradient == usual.input_gradient);
  }
}
}   // namespace lrcnn::testing
