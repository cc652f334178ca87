// Policies that are benchmarked give the column run's results, in fp64 on narrow networks with the same rows.
#include "../../bench/cases.hpp"
#include "support/run_network.hpp"
#include "support/thorough.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// The same layers with a fraction of the channels.
std::vector<Layer> narrowed(std::span<const Layer> layers, Index fraction) {
  std::vector<Layer> narrow(layers.begin(), layers.end());
  for (Layer& y : narrow)
    if (y.kind == Kind::conv || y.kind == Kind::conv_transpose) y.channels = std::max<Index>(1, y.channels / fraction);
    else if (y.kind == Kind::linear) y.channels = 7;
  if (narrow.back().kind == Kind::conv) narrow.back().channels = 2;   // classes of pixels
  return narrow;
}
/// A step with the loss that suits the network's output.
Outcome<double> step(const Problem<double>& problem, const PolicySpec& policy, Reference<double>& backend) {
  const Shape& output = problem.table.shape(problem.table.size());
  if (output.h * output.w == 1) return run_once(problem, policy, backend, false);
  return run_once(problem, policy, backend, false, PixelCrossEntropy{});
}
}   // namespace
TEST_CASE("policies that are benchmarked give the column run's results") {
  Reference<double> backend(2);
  Index compared = 0;
  std::size_t large = day();   // of the large inputs' policies every sixth has its turn today
  for (const bench::Case& c : bench::cases()) {
    const std::vector<Layer> layers = narrowed(c.layers, c.input.h > 224 ? 64 : 32);
    Problem<double> problem(layers, c.input, 5);
    const Shape output = problem.table.shape(problem.table.size());
    for (Index i = 1; output.h * output.w > 1 && i < output.n * output.h * output.w; ++i)
      problem.labels.push_back(static_cast<std::int32_t>(Random(5, 78).below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(output.c))));
    PolicySpec column;
    column.workspace_bytes = 0;
    const Outcome<double> whole = step(problem, column, backend);
    for (const bench::NamedPolicy& p : c.policies) {
      if (c.input.h > 224 && large++ % cases_to_do<std::size_t>(1, 6) != 0) continue;
      CAPTURE(c.family + "/" + c.name() + "/" + p.name);
      PolicySpec policy = p.spec;
      policy.precision = Precision::of_backend;
      policy.workspace_bytes = 0;
      const Outcome<double> rows = step(problem, policy, backend);
      CHECK(worst_difference(problem, rows, whole) <= 1e-11);
      CHECK(rows.loss.correct == whole.loss.correct);
      ++compared;
    }
  }
  MESSAGE(compared, " policies; of those at inputs above 224 all with --thorough, or one in six, by the number of the day, ", day());
  CHECK(compared > cases_to_do(40, 20));
}
