// VGG-16 against another framework: loss, logits, gradients of the input and of every parameter.
#include "golden.hpp"
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/policy/policy.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("VGG-16 equals the framework's, column and by rows") {
  const GoldenFile file = read_golden("vgg16.txt");
  REQUIRE(file.cases.size() == 1);
  const GoldenCase& c = file.cases.front();
  CHECK(std::equal(c.layers.begin(), c.layers.end(), Vgg16<10>::layers.begin(), Vgg16<10>::layers.end()));
  CHECK(c.tensors.size() == 31);
  const auto problem = golden_problem<double>(c);
  Reference<double> backend(2);
  Index column = 0;
  for (const PolicySpec& policy :
       {Policy<Column>::value, Policy<Share<5>, CheckpointAtPools, RecomputeAll>::value, Policy<Overlap<4>, CheckpointAtPools, RecomputeCheap>::value,
        Policy<Share<2, 4>, CheckpointEvery<5>, Images<1>, RecomputeAll>::value,
        Policy<Stages<Overlap<3, 6>, ByImages<1, Share<2>>, Column>, CheckpointAtPools>::value}) {
    const auto outcome = run_golden(c, problem, policy, backend);
    const auto found = golden_difference(file, c, problem, outcome);
    MESSAGE(to_string(policy), ": difference ", found.first, " in ", found.second, ", peak ", outcome.peak, " bytes");
    CHECK(found.first <= 1e-12);
    if (policy == PolicySpec{}) column = outcome.peak;
    if (policy.recompute == Recompute::all) CHECK(outcome.peak < column);
  }
}
TEST_CASE("VGG-16 in float stays near the framework's") {
  const GoldenFile file = read_golden("vgg16.txt");
  const GoldenCase& c = file.cases.front();
  const auto problem = golden_problem<float>(c);
  Reference<float> backend(2);
  const auto outcome = run_golden(c, problem, Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value, backend);
  const auto found = golden_difference(file, c, problem, outcome);
  MESSAGE("difference ", found.first, " in ", found.second, " (rounding flips masks and winners: see docs)");
  CHECK(std::abs(outcome.loss.mean() - c.tensors.front().sum) < 1e-4);
}
