// Single operators against another framework: convolutions with odd windows, pools and activations.
#include "golden.hpp"
#include <lrcnn/policy/policy.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const std::vector<PolicySpec> row_policies{Policy<Share<3>, RecomputeAll>::value, Policy<Share<2, 4>, RecomputeCheap>::value,
                                           Policy<Overlap<3>, RecomputeAll>::value, Policy<Overlap<4, 2>, Images<1>>::value,
                                           Policy<ByImages<1, Share<3>>, RecomputeAll>::value};
/// Runs each case under each policy; returns the largest difference of all.
template <class B>
double check_cases(const GoldenFile& file, const std::vector<PolicySpec>& policies, double bound) {
  B backend;
  double worst = 0;
  for (const GoldenCase& c : file.cases) {
    const auto problem = golden_problem<typename B::element>(c);
    for (const PolicySpec& policy : policies) {
      const auto found = golden_difference(file, c, problem, run_golden(c, problem, policy, backend));
      INFO(c.name, ", ", to_string(policy), ", tensor ", found.second);
      CHECK(found.first <= bound);
      worst = std::max(worst, found.first);
    }
  }
  MESSAGE(file.cases.size(), " cases, largest difference ", worst);
  return worst;
}
}   // namespace
TEST_CASE("convolutions equal the framework's: column") {
  const GoldenFile file = read_golden("convolutions.txt");
  CHECK(file.cases.size() == 14);
  check_cases<Reference<double>>(file, {PolicySpec{}}, 1e-12);
  check_cases<Reference<float>>(file, {PolicySpec{}}, 1e-5);
  check_cases<Reference<double, 4, 3>>(file, {PolicySpec{}}, 1e-12);   // blocked storage
}
TEST_CASE("convolutions equal the framework's: by rows") {
  const GoldenFile file = read_golden("convolutions.txt");
  check_cases<Reference<double>>(file, row_policies, 1e-12);
  check_cases<Reference<float>>(file, row_policies, 1e-5);
}
TEST_CASE("pools and activations equal the framework's: column") {
  const GoldenFile file = read_golden("pools_and_activations.txt");
  CHECK(file.cases.size() == 16);
  check_cases<Reference<double>>(file, {PolicySpec{}}, 1e-12);
  check_cases<Reference<float>>(file, {PolicySpec{}}, 1e-5);
  check_cases<Reference<double, 4, 2>>(file, {PolicySpec{}}, 1e-12);
}
TEST_CASE("pools and activations equal the framework's: by rows") {
  const GoldenFile file = read_golden("pools_and_activations.txt");
  check_cases<Reference<double>>(file, row_policies, 1e-12);
  check_cases<Reference<float>>(file, row_policies, 1e-5);
}
TEST_CASE("a wrong element, an exchange of two and a missing one are noticed") {
  const GoldenFile file = read_golden("convolutions.txt");
  const GoldenCase& c = file.cases.front();
  const auto problem = golden_problem<double>(c);
  Reference<double> backend;
  const auto right = run_golden(c, problem, PolicySpec{}, backend);
  REQUIRE(right.output.size() > static_cast<std::size_t>(file.all));   // so that only samples of it are stored
  for (std::size_t i = 0; i + 1 < right.output.size(); ++i) {
    auto wrong = right;
    wrong.output[i] += 1e-8;
    CHECK(golden_difference(file, c, problem, wrong).first > 1e-12);
    wrong = right;
    std::swap(wrong.output[i], wrong.output[i + 1]);
    CHECK(golden_difference(file, c, problem, wrong).first > 1e-12);
    wrong = right;
    wrong.output[i] = std::nan("");
    CHECK(golden_difference(file, c, problem, wrong).first > 1);
  }
  auto wrong = right;
  wrong.output.pop_back();
  CHECK(golden_difference(file, c, problem, wrong).first > 1);
  wrong = right;
  wrong.loss.sum += 1e-10;
  CHECK(golden_difference(file, c, problem, wrong).second == "loss");
}
