// On oneDNN, as equivalence_float.cpp: direct arithmetic gives the column run's outputs to the bit and its gradients
// within 1e-5; each feature of a layer meets each part of a policy in at least twenty cases (all but Winograd's grid, which
// direct arithmetic has not). Winograd's arithmetic differs by where tiles lie; there the error against fp64 is at most twice
// the column run's. In bf16 outputs are the column's to the bit too, unless a global pooling gets its rows slab by slab;
// gradients of halo rows are rounded more often than the column's.
#include "exec/equivalence.hpp"
#include "support/thorough.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("equivalence: oneDNN with direct arithmetic, few channels and blocks of them, each layer under each part of a policy") {
  Coverage coverage{.direct = true};
  Worst worst;
  const RoundOptions few{.tolerance = 1e-5, .workspace = 4_MiB, .direct = true};
  RoundOptions blocks = few;
  blocks.wide = true;
  for (std::uint64_t round = 0; round < cases_to_do<std::uint64_t>(3, 1); ++round) compare_round<Onednn>(4000 + round, coverage, worst, few);
  for (std::uint64_t round = 0; round < cases_to_do<std::uint64_t>(5, 2); ++round) compare_round<Onednn>(4100 + round, coverage, worst, blocks);
  const std::size_t more = compare_rarest<Onednn>(4500000, 150, coverage, worst, few);
  MESSAGE(coverage.cases, " cases, of ", more, " networks for pairs that lacked some; least pair ", coverage.least_pair(), "; worst difference ",
          worst.difference, " in ", worst.where);
  CHECK(coverage.cases > cases_to_do(4000, 2000));
  CHECK(coverage.least_pair() >= Coverage::wanted);
}
TEST_CASE("equivalence: slabs give the whole map's bits where windows lie wholly in padding, which the library refuses") {
  // The last window of the second convolution reads padding alone, and the third one leaves that row out, so the slab has no such window.
  const std::vector<Layer> layers{
      {.kind = Kind::conv, .window = {.kernel = {3, 3}, .pad = {1, 3, 1, 1}}, .channels = 16, .bias = true},
      {.kind = Kind::conv, .window = {.kernel = {2, 1}, .stride = {2, 2}, .pad = {1, 1, 0, 0}}, .channels = 16, .bias = true},
      {.kind = Kind::flatten},
      {.kind = Kind::linear, .channels = 4, .bias = true}};
  Onednn backend(1);
  for (const Index rows : {7, 8, 9, 10})
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const Problem<float> problem(layers, {2, 16, rows, 4}, seed);
      const Outcome<float> whole = run_once(problem, Policy<Column, DirectConv, Workspace<4_MiB>>::value, backend);
      for (const PolicySpec& policy : {Policy<Overlap<1, 2>, CheckpointAtPools, RecomputeCheap, DirectConv, Workspace<4_MiB>>::value,
                                       Policy<Overlap<2>, RecomputeAll, DirectConv, Workspace<4_MiB>>::value}) {
        INFO(rows, " rows, seed ", seed, ", ", to_string(policy));
        CHECK(same_bits(run_once(problem, policy, backend).output, whole.output));
      }
    }
}
TEST_CASE("equivalence: the library carries out most convolutions of those networks") {
  Onednn backend(1);
  Index steps = 0, library = 0;
  for (std::size_t f = 0; f < feature_count; ++f) {
    Dice dice(4100 * 1000 + f);
    RandomNetwork net = network_with(dice, features[f], dice.chance(0.4));
    widen(net);
    const Problem<float> problem(net.layers, net.input, 1);
    std::vector<float> gradients(problem.parameters.size());
    Executor<Onednn> executor(make_plan(problem.table, Policy<Column>::value, Onednn::target), backend, problem.parameters.data(), gradients.data());
    for (Index i = 0; i < static_cast<Index>(executor.plan().steps.size()); ++i) {
      const auto& o = executor.operands(i);
      if (!o.node || o.node->layer.kind != Kind::conv || o.op == Op::pack_forward || o.op == Op::pack_backward) continue;
      ++steps;
      library += backend.implementation(o) != "host";
    }
  }
  MESSAGE(library, " of ", steps, " passes of convolutions by the library");
  // Without AVX2 the library has forward kernels alone, and not for all channels.
  CHECK(library * (backend.vectors() == Vectors::plain ? 8 : 2) > steps);
}
TEST_CASE("equivalence: oneDNN with Winograd's arithmetic is as near to fp64 by rows as by columns") {
  Onednn backend(1);
  Reference<double> oracle(1);
  double worst = 0;
  int cases = 0, tiled = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(40, 20); ++seed) {
    Dice dice(4200 + seed);   // smooth functions only: a flipped rectifier is no matter of arithmetic
    std::vector<Layer> layers;
    for (Index i = dice.upto(2, 4); i > 0; --i) {
      layers.push_back({.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 16 * dice.upto(1, 2), .bias = true});
      layers.push_back({.kind = Kind::activation, .activation = {Function::silu, 0}});
      if (i == 2) layers.push_back({.kind = Kind::avg_pool, .window = {.kernel = 2, .stride = 2}});
    }
    layers.push_back({.kind = Kind::global_avg_pool});
    layers.push_back({.kind = Kind::linear, .channels = 5, .bias = true});
    const RandomNetwork net{{2, 16, dice.upto(24, 40), dice.upto(12, 20)}, layers};
    const Problem<float> problem(net.layers, net.input, seed);
    Problem<double> exact(net.layers, net.input, seed);
    exact.parameters.assign(problem.parameters.begin(), problem.parameters.end());
    exact.images.assign(problem.images.begin(), problem.images.end());
    const auto widened = [](const Outcome<float>& o) {
      return Outcome<double>{o.loss,
                             {o.output.begin(), o.output.end()},
                             {o.gradients.begin(), o.gradients.end()},
                             {o.input_gradient.begin(), o.input_gradient.end()},
                             o.peak};
    };
    const PolicySpec column = Policy<Column, WinogradConv, Workspace<16_MiB>>::value;
    const Outcome<double> truth = run_once(exact, Policy<Column, Workspace<0>>::value, oracle);
    std::vector<float> gradients(problem.parameters.size());
    Executor<Onednn> executor(make_plan(problem.table, column, Onednn::target), backend, problem.parameters.data(), gradients.data());
    bool winograd = false;
    for (Index i = 0; i < static_cast<Index>(executor.plan().steps.size()); ++i)
      if (const auto& o = executor.operands(i); o.node && o.op == Op::forward && is_conv(o.node->layer))
        winograd = winograd || backend.implementation(o).find("wino") != std::string::npos;
    tiled += winograd;
    const double column_error = worst_difference(exact, widened(run_once(problem, column, backend)), truth);
    for (const char* part : {"Overlap", "Share", "Share F<B", "one row"}) {
      PolicySpec policy = policy_with(dice, part, net, Onednn::target);
      compute_by(policy, ConvAlgorithm::winograd);
      policy.workspace_bytes = 16_MiB;
      INFO("seed ", seed, " ", to_string(policy));
      try {
        const double error = worst_difference(exact, widened(run_once(problem, policy, backend)), truth);
        CHECK(error <= 2 * column_error);
        worst = std::max(worst, error / column_error);
        ++cases;
      } catch (const PlanError&) {   // tiles take rows four by four
      }
    }
  }
  MESSAGE(cases, " cases, ", tiled, " column runs with Winograd; at most ", worst, " times the column run's error");
  CHECK(cases > 60);
}
TEST_CASE("equivalence: the fastest arithmetic that fits takes Winograd for the data gradient of a plan's slabs too") {
  Onednn backend(1);
  const std::vector<Layer> layers{{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 64},
                                  {.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 64},
                                  {.kind = Kind::global_avg_pool}};
  const Problem<float> problem(layers, {2, 64, 28, 28}, 1);
  std::vector<float> gradients(problem.parameters.size());
  const auto winograd_gradients = [&](const PolicySpec& policy) {
    Executor<Onednn> executor(make_plan(problem.table, policy, Onednn::target), backend, problem.parameters.data(), gradients.data());
    Index count = 0;
    for (Index i = 0; i < static_cast<Index>(executor.plan().steps.size()); ++i)
      if (const auto& o = executor.operands(i); o.node && o.op == Op::backward_data && is_conv(o.node->layer))
        count += backend.implementation(o).find("wino") != std::string::npos;
    return count;
  };
  const bool has_winograd = winograd_gradients(Policy<Column, WinogradConv, Workspace<256_MiB>>::value) > 0;
  CHECK((winograd_gradients(Policy<Column, FastestConv, Workspace<256_MiB>>::value) > 0) == has_winograd);
  CHECK((winograd_gradients(Policy<Share<2>, FastestConv, Workspace<256_MiB>>::value) > 0) == has_winograd);
  CHECK(winograd_gradients(Policy<Column, FastestConv, Workspace<256_KiB>>::value) == 0);
}
TEST_CASE("equivalence: oneDNN in bf16, few channels and blocks of them") {
  Coverage coverage;
  Worst worst;
  for (std::uint64_t round = 0; round < cases_to_do<std::uint64_t>(6, 2); ++round)
    compare_round<OnednnBf16>(4300 + round, coverage, worst, {.tolerance = 8e-3, .workspace = 4_MiB, .direct = true, .wide = round % 2 == 1});
  MESSAGE(coverage.cases, " cases; worst difference ", worst.difference, " in ", worst.where);
  CHECK(coverage.cases > cases_to_do(3000, 1000));
}
