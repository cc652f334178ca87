// On a GPU: every layer against the reference in fp64, row by row against layer by layer, the same bits on every run,
// and no step that touches what it did not declare.
#include "cudnn/device_run.hpp"
#include "exec/coverage.hpp"
#include "exec/declared.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
bool has_custom(const RandomNetwork& net) {
  return std::any_of(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::custom; });
}
Outcome<float> narrowed(const Outcome<double>& o) {
  const auto floats = [](const std::vector<double>& v) { return std::vector<float>(v.begin(), v.end()); };
  return {o.loss, floats(o.output), floats(o.gradients), floats(o.input_gradient), o.peak};
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
/// Runs networks with every feature under policies with every part.
template <class B>
void law(std::uint64_t first, double against_reference, double against_column) {
  B backend;
  Index cases = 0;
  double worst_reference = 0, worst_column = 0;
  for (std::size_t f = 0; f < feature_count; ++f) {
    const std::uint64_t seed = first + f;
    Dice dice(seed);
    const RandomNetwork net = network_with(dice, features[f], dice.chance(0.3));
    if (has_custom(net)) continue;
    const Problem<float> problem(net.layers, net.input, seed);
    Problem<double> exact(net.layers, net.input, seed);
    exact.parameters.assign(problem.parameters.begin(), problem.parameters.end());
    exact.images.assign(problem.images.begin(), problem.images.end());
    PolicySpec column;
    column.workspace_bytes = 32_MiB;
    DeviceRun<B> whole_run(problem, column, backend);
    const Outcome<float> whole = whole_run();
    Reference<double> reference;
    INFO("seed ", seed, ", feature ", std::string(features[f]));
    const double error = worst_difference(problem, whole, narrowed(run_once(exact, column, reference)));
    CHECK(error <= against_reference);
    worst_reference = std::max(worst_reference, error);
    for (int i = 0; i < 6; ++i) {
      PolicySpec policy = policy_with(dice, parts[static_cast<std::size_t>(dice.upto(0, part_count - 1))], net, B::target);
      policy.workspace_bytes = 32_MiB;
      compute_by(policy, ConvAlgorithm::direct);
      INFO(to_string(policy));
      try {
        static_cast<void>(make_plan(problem.table, policy, B::target));
      } catch (const PlanError&) {
        continue;
      }
      DeviceRun<B> rows_run(problem, policy, backend);
      const Outcome<float> rows = rows_run();
      const double difference = worst_difference(problem, rows, whole);
      CHECK(difference <= against_column);
      worst_column = std::max(worst_column, difference);
      rows_run.poison();
      const Outcome<float> again = rows_run();
      CHECK(again.loss == rows.loss);
      CHECK(same_bits(again.gradients, rows.gradients));
      CHECK(same_bits(again.input_gradient, rows.input_gradient));
      ++cases;
    }
  }
  MESSAGE(cases, " cases; worst difference to the reference ", worst_reference, ", of rows to column ", worst_column);
  CHECK(cases > 40);
}
}   // namespace
// Each is a ctest entry of its own (tests/CMakeLists.txt), and should take less than a minute.
TEST_CASE("gpu: every layer and policy in fp32, 1 of 4") { law<Cudnn>(31000, 1e-4, 1e-5); }
TEST_CASE("gpu: every layer and policy in fp32, 2 of 4") { law<Cudnn>(31100, 1e-4, 1e-5); }
TEST_CASE("gpu: every layer and policy in fp32, 3 of 4") { law<Cudnn>(31200, 1e-4, 1e-5); }
TEST_CASE("gpu: every layer and policy in fp32, 4 of 4") { law<Cudnn>(31300, 1e-4, 1e-5); }
TEST_CASE("gpu: every layer and policy in tf32, 1 of 2") { law<CudnnTf32>(32000, 2e-2, 1e-2); }
TEST_CASE("gpu: every layer and policy in tf32, 2 of 2") { law<CudnnTf32>(32100, 2e-2, 1e-2); }
TEST_CASE("gpu: every layer and policy in fp16, 1 of 2") { law<CudnnFp16>(34000, 5e-2, 2e-2); }
TEST_CASE("gpu: every layer and policy in fp16, 2 of 2") { law<CudnnFp16>(34100, 5e-2, 2e-2); }
TEST_CASE("gpu: every layer and policy in bf16, 1 of 2") { law<CudnnBf16>(35000, 2e-1, 1e-1); }
TEST_CASE("gpu: every layer and policy in bf16, 2 of 2") { law<CudnnBf16>(35100, 2e-1, 1e-1); }
TEST_CASE("gpu: no step writes what it did not declare") {
  Cudnn backend;
  Index steps = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Dice dice(33000 + seed);
    const RandomNetwork net = network_with(dice, features[seed * 3 % feature_count], false);
    if (has_custom(net)) continue;
    const Problem<float> problem(net.layers, net.input, seed);
    PolicySpec policy = Policy<Share<3>, CheckpointEvery<3>, RecomputeAll>::value;
    policy.workspace_bytes = 4_MiB;
    DeviceRun run(problem, policy, backend);
    Guard guard(run.executor().plan(), backend, run.executor().arena());
    const Outcome<float> free = run();
    run.poison();
    CHECK(worst_difference(problem, run(guard), free) == 0);
    CHECK(guard.problem() == "");
    steps += static_cast<Index>(run.executor().plan().steps.size());
  }
  CHECK(steps > 100);
}
