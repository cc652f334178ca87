#include "support/run_network.hpp"
#include "support/threads.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net =
    Sequential<Conv<16>, ReLU, Conv<24>, ReLU, MaxPool<>, Conv<32, Window{.kernel = 1}>, LeakyReLU<>, Conv<40>, ReLU, GlobalAvgPool, Linear<10>>;
constexpr Input input{.n = 3, .c = 3, .h = 48, .w = 28};
Outcome<double> widened(const Outcome<float>& o) {
  const auto wide = [](const std::vector<float>& v) { return std::vector<double>(v.begin(), v.end()); };
  return {o.loss, wide(o.output), wide(o.gradients), wide(o.input_gradient), o.peak};
}
}   // namespace
TEST_CASE("a network on onednn: rows equal the column, arithmetic by policy, reruns bit-identical") {
  Onednn onednn(threads_for_tests());
  Reference<double> reference;
  const Problem<double> exact(Net::layers, input, 1);
  const Problem<float> problem(Net::layers, input, 1);
  const auto want = run_once(exact, Policy<Column>::value, reference);
  const auto column = run_once(problem, Policy<Column>::value, onednn);
  CHECK(worst_difference(exact, widened(column), want) <= 1e-5);
  const std::vector<PolicySpec> direct{Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value, Policy<Overlap<3>, CheckpointAtPools>::value,
                                       Policy<ByImages<1, Share<2>>, CheckpointAtPools, RecomputeCheap>::value,
                                       Policy<Share<4>, CheckpointAtPools, FastestConv, Workspace<1_MiB>>::value};   // no room for Winograd
  for (const PolicySpec& policy : direct) {
    CAPTURE(to_string(policy));
    const auto row = run_once(problem, policy, onednn);
    CHECK(worst_difference(problem, row, column) <= 1e-5);
    if (policy.conv_algorithm == ConvAlgorithm::direct) CHECK(row.output == column.output);
    const auto again = run_once(problem, policy, onednn);
    CHECK(again.gradients == row.gradients);
    CHECK(again.input_gradient == row.input_gradient);
  }
  const std::vector<PolicySpec> winograd{Policy<Column, WinogradConv, Workspace<64_MiB>>::value,
                                         Policy<Share<4>, CheckpointAtPools, RecomputeAll, WinogradConv, Workspace<64_MiB>>::value,
                                         Policy<Overlap<3>, CheckpointAtPools, FastestConv, Workspace<64_MiB>>::value,
                                         Policy<Share<3>, CheckpointAtPools, FastestConv, Workspace<7_MiB>>::value};
  for (const PolicySpec& policy : winograd) {
    CAPTURE(to_string(policy));
    const auto row = run_once(problem, policy, onednn);
    CHECK(worst_difference(exact, widened(row), want) <= 1e-4);
    CHECK(run_once(problem, policy, onednn).gradients == row.gradients);
  }
}
