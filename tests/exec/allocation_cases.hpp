#pragma once
// Networks and policies whose steps the allocation tests count: every layer kind, every kind of step.
#include "exec/allocation_counter.hpp"
#include "exec/user_layers.hpp"
#include "support/run_network.hpp"
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
#include <doctest/doctest.h>
namespace lrcnn::testing {
using AllKinds = Sequential<Conv<16>, ReLU, Conv<32, Window{.kernel = 5, .stride = 2, .pad = 2}>, LeakyReLU<>, MaxPool<>,
                            Conv<32, Window{.pad = 1}, ConvOptions{.groups = 32}>, SiLU, Blur<>, Conv<48>, Tanh,
                            AvgPool<Window{.kernel = 3, .stride = 2, .pad = 1}>, Conv<16, Window{.kernel = {4, 3}, .pad = {1, 2, 1, 1}}>, Softplus,
                            Flatten, Linear<64>, ReLU, Linear<10>>;
using Pooled = Sequential<Conv<16>, ReLU, Conv<16>, ReLU, MaxPool<>, Conv<32>, ReLU, Conv<32>, ReLU, GlobalAvgPool, Linear<10>>;
inline const std::vector<PolicySpec> step_policies{
    Policy<Column>::value, Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value, Policy<Overlap<3>, CheckpointAtPools>::value,
    Policy<Share<2, 4>, CheckpointEvery<3>, RecomputeCheap, Images<2>>::value, Policy<ByImages<1, Share<2>>, RecomputeAll>::value};
/// Calls law(title, run) where run() is one step of the executor, once for each network and policy.
template <class B, class Law>
void for_steps(B& backend, Law law) {
  const auto network = [&](std::span<const Layer> layers, const Input& input) {
    using M = master_t<typename B::element>;
    const Problem<M> problem(layers, input, 1);
    const MemorySource<M> source(problem.images.data(), input);
    std::vector<M> gradients(problem.parameters.size());
    for (const PolicySpec& policy : step_policies) {
      Executor<B> executor(make_plan(problem.table, policy, B::target, {.input_gradient = true}), backend, problem.parameters.data(),
                           gradients.data());
      LossResult result;
      law(to_string(policy), [&] { result = executor.run(source, problem.labels); });
      CHECK(std::isfinite(result.sum));
    }
  };
  network(AllKinds::layers, {3, 3, 40, 24});
  network(Pooled::layers, {2, 3, 48, 32});
}
}   // namespace lrcnn::testing
