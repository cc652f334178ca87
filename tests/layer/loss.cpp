// Softmax cross-entropy against its formula in long double, its gradient against finite differences, and its edges.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/layer/loss.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>
#include <vector>
using namespace lrcnn;
static_assert(Loss<SoftmaxCrossEntropy, float> && Loss<SoftmaxCrossEntropy, double> && !Loss<int, double>);
namespace {
const SoftmaxCrossEntropy loss;
/// Logits of n images with k classes, and what the loss makes of them.
template <class T>
struct Bench {
  Index n, k, block;
  std::vector<T> x, dx;
  std::vector<std::int32_t> labels;
  Bench(Index images, Index classes, Index storage_block = 1)
      : n(images), k(classes), block(storage_block), x(static_cast<std::size_t>(stored_elements(n, k, 1, 1, block)), T{99}), dx(x.size(), T{77}) {
    const Random random(5);
    for (Index i = 0; i < n; ++i) {
      for (Index c = 0; c < k; ++c) logits()(i, c, 0, 0) = static_cast<T>(3 * random.normal(static_cast<std::uint64_t>(i * k + c)));
      labels.push_back(static_cast<std::int32_t>(i % k));
    }
  }
  View<T> logits() { return dense_view(x.data(), n, k, {0, 1}, 1, block); }
  View<T> gradient() { return dense_view(dx.data(), n, k, {0, 1}, 1, block); }
  LossResult run(double scale = 1) {
    LossResult result;
    loss(View<const T>(logits()), std::span<const std::int32_t>(labels), gradient(), scale, result);
    return result;
  }
  long double formula(Index i) {
    long double sum = 0;
    for (Index c = 0; c < k; ++c) sum += std::exp(static_cast<long double>(logits()(i, c, 0, 0)));
    return std::log(sum) - static_cast<long double>(logits()(i, labels[static_cast<std::size_t>(i)], 0, 0));
  }
};
}   // namespace
TEST_CASE("the sum of losses is the formula's, in fp32 too") {
  Bench<double> a(7, 5);
  Bench<float> b(7, 5);
  long double sum_a = 0, sum_b = 0;
  for (Index i = 0; i < 7; ++i) sum_a += a.formula(i), sum_b += b.formula(i);
  CHECK(a.run().sum == doctest::Approx(static_cast<double>(sum_a)).epsilon(1e-14));
  CHECK(b.run().sum == doctest::Approx(static_cast<double>(sum_b)).epsilon(1e-14));
  CHECK(a.run().count == 7);
}
TEST_CASE("the gradient is that of scale times the sum of losses") {
  for (const double scale : {1.0, 0.125}) {
    Bench<double> b(4, 6);
    b.run(scale);
    const auto dx = b.dx;
    for (std::size_t e = 0; e < dx.size(); ++e) {
      const double step = 1e-5, at = b.x[e];
      b.x[e] = at + step;
      const double more = b.run().sum;
      b.x[e] = at - step;
      const double less = b.run().sum;
      b.x[e] = at;
      CHECK(dx[e] == doctest::Approx(scale * (more - less) / (2 * step)).epsilon(1e-7));
    }
    for (Index i = 0; i < 4; ++i) CHECK(std::accumulate(dx.begin() + i * 6, dx.begin() + (i + 1) * 6, 0.0) == doctest::Approx(0).epsilon(1e-15));
  }
}
TEST_CASE("images and maps of one pixel have one formula: the same bits, image by image") {
  for (Index i = 0; i < 200; ++i) {
    Bench<float> b(200, 7);
    const auto label = std::span<const std::int32_t>(b.labels).subspan(static_cast<std::size_t>(i), 1);
    View<float> x = b.logits(), dx = b.gradient();
    x.data += i * x.stride_n, x.n = dx.n = 1;
    LossResult image, pixel;
    loss(View<const float>(x), label, dx, 0.25, image);
    const auto gradient = b.dx;
    PixelCrossEntropy{}(View<const float>(x), Labels::of_pixels(label, 1, 1), 0, dx, 0.25, pixel);
    CHECK(pixel == image);
    CHECK(b.dx == gradient);
  }
}
TEST_CASE("blocked storage gives the same, and zero gradient in padded channels") {
  Bench<double> plain(3, 5), blocked(3, 5, 4);
  CHECK(plain.run().sum == blocked.run().sum);
  for (Index i = 0; i < 3; ++i)
    for (Index c = 0; c < 8; ++c) CHECK(blocked.gradient()(i, c, 0, 0) == (c < 5 ? plain.gradient()(i, c, 0, 0) : 0));
}
TEST_CASE("images in groups give the result of the whole batch, bit by bit") {
  Bench<double> whole(6, 4), parts(6, 4);
  const LossResult once = whole.run(0.5);
  LossResult result;
  for (const Range images : {Range{0, 1}, Range{1, 4}, Range{4, 6}}) {
    View<double> x = parts.logits(), dx = parts.gradient();
    x.data += images.begin * x.stride_n, dx.data += images.begin * dx.stride_n;
    x.n = dx.n = images.size();
    loss(View<const double>(x), std::span<const std::int32_t>(parts.labels).subspan(static_cast<std::size_t>(images.begin)), dx, 0.5, result);
  }
  CHECK(result == once);
  CHECK(parts.dx == whole.dx);
}
TEST_CASE("hits are images whose first largest logit is the label's") {
  Bench<double> b(4, 3);
  b.x = {1, 5, 2, /**/ 4, 4, 1, /**/ 4, 4, 1, /**/ 0, 0, 0};
  b.labels = {1, 0, 1, 0};
  const LossResult r = b.run();
  CHECK(r.correct == 3);   // of the equal ones the first counts
  CHECK(r.accuracy() == 0.75);
  CHECK(r.mean() == r.sum / 4);
  CHECK(LossResult{}.mean() == 0);
  CHECK(LossResult{}.accuracy() == 0);
}
TEST_CASE("large logits do not overflow, and infinite ones show") {
  Bench<double> b(1, 3);
  b.x = {1000, 0, -1000};
  b.labels = {0};
  CHECK(b.run().sum == 0);
  b.labels = {2};
  CHECK(b.run().sum == 2000);
  CHECK(b.dx == std::vector<double>{1, 0, -1});
  b.x = {std::numeric_limits<double>::infinity(), 0, 0};
  CHECK(!std::isfinite(b.run().sum));
  b.x = {0, std::numeric_limits<double>::quiet_NaN(), 0};
  CHECK(!std::isfinite(b.run().sum));
}
TEST_CASE("without a place for the gradient only the result is made") {
  Bench<double> b(2, 3);
  LossResult r;
  loss(View<const double>(b.logits()), std::span<const std::int32_t>(b.labels), View<double>{}, 1.0, r);
  CHECK(r == b.run());
}
