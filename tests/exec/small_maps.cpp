// Pools that round extents up, on maps that are smaller than their windows: by rows, by images and handed on they give what the column run
// gives, to the bit.
#include "exec/predicted.hpp"
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/network/squeezenet.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr Window two{.kernel = 2, .stride = 2, .ceil = true}, three{.kernel = 3, .stride = 2, .ceil = true},
    four{.kernel = {2, 4}, .stride = {1, 2}, .pad = {0, 1}, .ceil = true};
/// Narrow maps: windows reach beyond the last column, and rows can be cut all the same.
using Narrow = Sequential<Conv<3>, MaxPool<two>, Conv<4>, ReLU, AvgPool<Window{.kernel = {3, 2}, .stride = 2, .ceil = true}>, Conv<3>,
                          AvgPool<four, false>, GlobalAvgPool, Linear<3>>;
/// Low maps: the last pools have one row, of a map of one row and of one of two.
using Low = Sequential<Conv<3>, MaxPool<three>, Conv<4>, ReLU, AvgPool<three>, Conv<3>, MaxPool<two>, Upsample<2>, Conv<3>>;
std::vector<PolicySpec> policies() {
  std::vector<PolicySpec> list{Policy<Share<3>, RecomputeAll>::value,
                               Policy<Overlap<2>, KeepAll>::value,
                               Policy<Share<2>, CheckpointAtPools, RecomputeCheap>::value,
                               Policy<Overlap<4>, CheckpointEvery<1>, RecomputeAll>::value,
                               Policy<ByImages<1, Share<2>>, CheckpointAt<"pool1">, RecomputeLight, GradientsInPlace>::value,
                               Policy<Images<1>>::value};
  for (PolicySpec& p : list) p.workspace_bytes = 0;
  return list;
}
/// Returns how many plans there are.
template <class Net>
int same_by_rows(const Input& input) {
  const Problem<double> problem(Net::layers, input, 5);
  Reference<double> backend(1);
  PolicySpec column;
  column.workspace_bytes = 0;
  const auto predicted = whole_output(problem, backend);
  int plans = 0;
  for (const PolicySpec& policy : policies()) {
    CAPTURE(to_string(policy));
    CAPTURE(to_string(input));
    try {
      BasicPredictor<Reference<double>> predictor(Net::layers, policy, input, problem.parameters, Reference<double>(1));
      Gather<double> sink(predictor.output_shape());
      predictor.run(MemorySource<double>(problem.images.data(), input), sink);
      CHECK((sink.complete() && same_bits(sink.rows, predicted)));
      ++plans;
    } catch (const PlanError&) {   // its rows carry fewer slabs
    }
    if (problem.table.shape(problem.table.size()).h > 1) continue;   // a loss over images
    const auto whole = run_once(problem, column, backend);
    std::vector<std::string> problems;
    try {
      problems = check_plan(make_plan(problem.table, policy, backend.target, {.input_gradient = true}));
    } catch (const PlanError&) {
      continue;
    }
    CHECK(problems.empty());
    const auto rows = run_once(problem, policy, backend);
    CHECK(same_bits(rows.output, whole.output));
    CHECK(worst_difference(problem, rows, whole) < 1e-12);
    ++plans;
  }
  return plans;
}
}   // namespace
TEST_CASE("maps that are smaller than windows of pools that round up are cut as others are") {
  CHECK(same_by_rows<Narrow>({2, 2, 24, 1}) == 12);
  CHECK(same_by_rows<Narrow>({2, 2, 23, 2}) == 12);
  CHECK(same_by_rows<Low>({2, 2, 7, 5}) == 6);
  CHECK(same_by_rows<Low>({2, 2, 4, 4}) == 6);
  CHECK(same_by_rows<SqueezeNet11<5, std::ratio<0>>>({2, 3, 17, 17}) >= 6);
}
