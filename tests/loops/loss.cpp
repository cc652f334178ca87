// Softmax cross entropy: values and gradients of SoftmaxCrossEntropy, in any number of parts and cuts of the batch.
#include "loops_case.hpp"
#include <lrcnn/layer/loss.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
std::vector<std::int32_t> labels_of(Index n, Index k) {
  std::vector<std::int32_t> labels;
  for (Index i = 0; i < n; ++i) labels.push_back(static_cast<std::int32_t>(i * 7 % k));
  return labels;
}
template <class T>
struct Outcome {
  LossResult result;
  Slab<T> dx;
};
template <class T>
Outcome<T> on_host_loops(const Map& logits, const std::vector<std::int32_t>& labels, double scale) {
  const Slab<T> x(logits, {0, 1}, logits.shape.c);
  Outcome<T> outcome{{}, Slab<T>(logits.shape, {0, 1}, logits.shape.c)};
  SoftmaxCrossEntropy{}(View<const T>(x.view()), std::span<const std::int32_t>(labels), outcome.dx.view(), scale, outcome.result);
  return outcome;
}
/// The batch in pieces of `step` images.
template <class T>
Outcome<T> on_device_loops(const Map& logits, const std::vector<std::int32_t>& labels, double scale, Index step, bool gradient = true) {
  const Slab<T> x(logits, {0, 1}, logits.shape.c);
  Outcome<T> outcome{{}, Slab<T>(logits.shape, {0, 1}, logits.shape.c)};
  loops::LossSums sums;
  for (Index first = 0; first < logits.shape.n; first += step) {
    View<T> part = x.view(), dx = outcome.dx.view();
    part.n = dx.n = std::min(step, logits.shape.n - first);
    part.data += first * part.stride_n, dx.data += first * dx.stride_n;
    std::vector<double> workspace(static_cast<std::size_t>(loops::loss_bytes(part.n, part.c)) / sizeof(double));
    loops::softmax_cross_entropy(on_host, View<const T>(part), labels.data() + first, gradient ? dx : View<T>{}, scale, &sums,
                                 reinterpret_cast<std::byte*>(workspace.data()));
  }
  outcome.result = loops::result_of(sums);
  return outcome;
}
template <class T>
double worst_difference(const Slab<T>& a, const Slab<T>& b) {
  double most = 0;
  for (Index i = 0; i < a.view().n; ++i)
    for (Index k = 0; k < a.view().c; ++k)
      most = std::max(most, std::abs(static_cast<double>(a.view()(i, k, 0, 0)) - static_cast<double>(b.view()(i, k, 0, 0))));
  return a.intact() && b.intact() ? most : 1e300;
}
}   // namespace
TEST_CASE_TEMPLATE("loss, hits and gradient are the host's: to the bit for few classes, within rounding for many", T, float, double, float16,
                   bfloat16) {
  for (const Index k : {1, 2, 10, 16, 17, 33, 1000, 1025, 3000})
    for (const bool ties : {false, true}) {
      CAPTURE(k);
      const Index n = k > 100 ? 3 : 9;
      Map logits = random_map({n, k, 1, 1}, 5, ties);
      for (double& e : logits.value) e *= 4;
      const auto labels = labels_of(n, k);
      const double scale = 1.0 / 9;
      const auto host = on_host_loops<T>(logits, labels, scale), ours = on_device_loops<T>(logits, labels, scale, n);
      CHECK(ours.result.correct == host.result.correct);
      CHECK(ours.result.count == n);
      if (k <= 16) {
        CHECK(ours.result.sum == host.result.sum);
        CHECK(same(ours.dx, host.dx));
      } else {
        CHECK(std::abs(ours.result.sum - host.result.sum) < 1e-13 * static_cast<double>(n));
        const double place = static_cast<double>(std::numeric_limits<T>::epsilon());
        CHECK(worst_difference(ours.dx, host.dx) <= std::max(1e-16, scale * place / 2));
      }
    }
}
TEST_CASE("from the first loss on that is not finite images are not counted, and labels that are no class are") {
  const auto sums_of = [](const Map& logits, const std::vector<std::int32_t>& labels) {
    const Slab<float> x(logits, {0, 1}, logits.shape.c);
    std::vector<double> workspace(static_cast<std::size_t>(loops::loss_bytes(logits.shape.n, logits.shape.c)) / sizeof(double));
    loops::LossSums sums;
    loops::softmax_cross_entropy(on_host, View<const float>(x.view()), labels.data(), View<float>{}, 1.0, &sums,
                                 reinterpret_cast<std::byte*>(workspace.data()));
    return sums;
  };
  Map logits = random_map({6, 10, 1, 1}, 5);
  auto labels = labels_of(6, 10);
  CHECK(sums_of(logits, labels).finite == 1);
  CHECK(sums_of(logits, labels).count == 6);
  labels[3] = 10, labels[5] = -1;
  const auto strange = sums_of(logits, labels);
  CHECK(strange.invalid_labels == 2);
  CHECK(strange.finite == 0);
  CHECK(strange.count == 3);
  CHECK(std::isnan(strange.sum));
  labels = labels_of(6, 10);
  logits.value[4 * 10 + 2] = NAN;
  const auto broken = sums_of(logits, labels);
  CHECK(broken.invalid_labels == 0);
  CHECK(broken.count == 4);
  loops::LossSums reset = broken;
  loops::reset_sums(on_host, &reset);
  CHECK((reset.count == 0 && reset.sum == 0 && reset.finite == 1));
}
TEST_CASE_TEMPLATE("the sums do not depend on how the batch is cut, nor on whether a gradient is wanted", T, float, bfloat16) {
  for (const Index k : {10, 100}) {
    const Map logits = random_map({7, k, 1, 1}, 6);
    const auto labels = labels_of(7, k);
    const auto whole = on_device_loops<T>(logits, labels, 0.5, 7);
    for (const Index step : {1, 2, 3}) {
      const auto cut = on_device_loops<T>(logits, labels, 0.5, step);
      CHECK(cut.result == whole.result);
      CHECK(same(cut.dx, whole.dx));
    }
    const auto blind = on_device_loops<T>(logits, labels, 0.5, 7, false);
    CHECK(blind.result == whole.result);
    CHECK(blind.dx.intact());
  }
}
TEST_CASE("the first of equally large logits counts as the largest, in whatever part it is") {
  for (const Index k : {4, 40, 400})
    for (const Index first : {Index{0}, Index{1}, k / 2})
      for (const Index second : {k / 2 + 1, k - 1}) {
        Map logits({1, k, 1, 1});
        logits.value[static_cast<std::size_t>(first)] = logits.value[static_cast<std::size_t>(second)] = 2;
        CHECK(on_device_loops<double>(logits, {static_cast<std::int32_t>(first)}, 1, 1).result.correct == 1);
        CHECK(on_device_loops<double>(logits, {static_cast<std::int32_t>(second)}, 1, 1).result.correct == (first == second ? 1 : 0));
      }
}
TEST_CASE("large logits stay finite, -inf is a class without probability, not-a-number makes the loss one") {
  for (const Index k : {5, 50}) {
    Map logits = random_map({2, k, 1, 1}, 7);
    for (double& e : logits.value) e *= 1000;
    const auto labels = labels_of(2, k);
    logits.at(0, 3, 0, 0) = logits.at(1, 4, 0, 0) = -INFINITY;
    const auto host = on_host_loops<double>(logits, labels, 1), ours = on_device_loops<double>(logits, labels, 1, 2);
    CHECK(std::isfinite(ours.result.sum));
    CHECK(std::abs(ours.result.sum - host.result.sum) <= 1e-12);
    CHECK(worst_difference(ours.dx, host.dx) < 1e-15);
    CHECK(ours.dx.view()(0, 3, 0, 0) == 0);
    for (const Index where : {Index{0}, k / 2, k - 1}) {
      Map broken = logits;
      broken.at(1, where, 0, 0) = std::nan("");
      const auto result = on_device_loops<double>(broken, labels, 1, 2);
      CHECK(std::isnan(result.result.sum));
      CHECK(std::isnan(result.dx.view()(1, 0, 0, 0)));
      CHECK(result.dx.view()(0, 0, 0, 0) == ours.dx.view()(0, 0, 0, 0));
    }
  }
}
