// The policies that are benchmarked on VGG-16 as it is, on the backend that is benchmarked: against the column run in the same arithmetic.
#include "../../bench/cases.hpp"
#include "support/run_network.hpp"
#include "support/thorough.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
double relative(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double e = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += e * e, size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / size);
}
}   // namespace
TEST_CASE("on oneDNN every benchmarked policy of VGG-16 is as near to the column as rounding lets it be") {
  Onednn backend(2);
  if (!backend.has_kernels()) return;   // far too slow
  double worst = 0;
  std::size_t turn = day();   // every second policy has its turn today
  for (const bench::Case& c : bench::cases()) {
    if (c.name() != "vgg16/224x8") continue;
    const Problem<float> problem(c.layers, {4, 3, 224, 224}, 5);
    const Outcome<float> direct = run_once(problem, Policy<Column>::value, backend, false);
    const Outcome<float> fast = run_once(problem, bench::Fast::value, backend, false);
    for (const bench::NamedPolicy& p : c.policies) {
      const bool far = c.family == "slabs" && p.name != "overlap32" && p.name != "share32";   // the others lie between
      if (p.spec.precision == Precision::bf16 || p.spec == bench::Fast::value || far) continue;
      if (turn++ % cases_to_do<std::size_t>(1, 2) != 0) continue;
      CAPTURE(c.family + "/" + p.name);
      const Outcome<float> rows = run_once(problem, p.spec, backend, false);
      const Outcome<float>& whole = p.spec.conv_algorithm == ConvAlgorithm::direct ? direct : fast;
      CHECK(rows.loss.mean() == doctest::Approx(whole.loss.mean()).epsilon(1e-5));
      const double difference = relative(rows.gradients, whole.gradients);
      CHECK(difference <= 1e-3);   // rectifiers that flip, of activations near zero
      worst = std::max(worst, difference);
    }
    MESSAGE(c.family, ": at most ", worst, "; Winograd's column against direct arithmetic's ", relative(fast.gradients, direct.gradients));
  }
}
