#pragma once
// A program's own layers on a device, real or pretended: what the host's functions give, by any policy.
#include "cudnn/device_run.hpp"
#include "support/element_layers.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
namespace lrcnn::testing {
using OwnPool = ElementLayer<EnergyPool, Window{.kernel = 3, .stride = 2, .pad = 1}>;
using OwnLayersNet = Sequential<Conv<5>, ElementLayer<Gain>, ReLU, OwnPool, Pointwise<Elu>, Conv<4>, Pointwise<Elu>,
                                ElementLayer<EnergyPool, Window{.kernel = {2, 3}, .stride = {2, 1}, .pad = {0, 1}}>, GlobalAvgPool, Linear<3>>;
inline constexpr Input own_layers_input{3, 2, 26, 9};
inline const std::vector<PolicySpec> own_layers_policies{Policy<Overlap<3>>::value,
                                                         Policy<Share<3>, RecomputeAll>::value,
                                                         Policy<Share<5>, RecomputeCheap>::value,
                                                         Policy<Share<4>, RecomputeAll, CheckpointAt<"energy_pool1">>::value,
                                                         Policy<ByImages<1, Overlap<2>>, RecomputeAll>::value,
                                                         Policy<Images<1>, Share<2>>::value};
/// make() gives a backend. same_outputs: convolutions have the same bits however rows are cut.
template <class Make>
void own_layers_law(Make make, Index workspace_bytes, double against_reference, double against_column, bool same_outputs) {
  using B = decltype(make());
  const Problem<float> problem(OwnLayersNet::layers, own_layers_input, 3);
  const auto run = [&](PolicySpec policy) {
    policy.workspace_bytes = workspace_bytes;
    B backend = make();
    return DeviceRun<B>(problem, policy, backend)();
  };
  const Outcome<float> column = run(PolicySpec{});
  Reference<float, Target::all_channels> reference;
  CHECK(worst_difference(problem, column, run_once(problem, PolicySpec{}, reference)) <= against_reference);
  for (const PolicySpec& policy : own_layers_policies) {
    INFO(to_string(policy));
    const Outcome<float> rows = run(policy);
    CHECK(worst_difference(problem, rows, column) <= against_column);
    CHECK((!same_outputs || rows.output == column.output));
  }
}
}   // namespace lrcnn::testing
