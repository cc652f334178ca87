// Losses of a program's own by a device's loop: gradients and hits of the host's functions to the bit, sums of images too; sums of pixels but for
// their order.
#include "loops_case.hpp"
#include "support/own_losses.hpp"
#include <lrcnn/backend/cudnn/custom_loops.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Sums {
  loops::LossSums there;
  std::vector<std::byte> workspace = std::vector<std::byte>(static_cast<std::size_t>(loops::pixel_loss_bytes), std::byte{0xff});
  template <class T, class F>
  void add(const F& functor, const View<T>& logits, const loops::PixelLabels& labels, Index first, const View<T>& dx, double scale) {
    const auto loss = cudnn::custom_loss<T>(functor);
    loops::loss_by_strips(on_host, View<const T>(logits), labels, first, dx, scale, &there, workspace.data(),
                          [&](const loops::LossStrip<T>& strip) { loss(strip, nullptr); });
  }
};
template <class T, class F>
void over_pixels(const F& functor, const Shape& s, const Labels& labels) {
  CAPTURE(to_string(s));
  CAPTURE(F::name);
  const PixelLoss<F> loss{functor};
  Map logits = random_map(s, 5);
  for (double& e : logits.value) e *= 4;
  const double scale = 1 / loss.total(labels, s);
  const Slab<T> x(as<T>(logits), {0, s.h}, s.c), want(s, {0, s.h}, s.c);
  LossResult host;
  loss(View<const T>(x.view()), labels, 0, want.view(), scale, host);
  const auto there = loops::pixel_labels(labels, labels.data(), labels.target_data());
  for (const auto& cut : cuts_of(s.h))
    for (const bool gradient : {true, false}) {
      const Slab<T> got(s, {0, s.h}, s.c);
      Sums sums;
      for (const Range rows : cut) sums.add<T>(functor, x.view().slice(rows), there, 0, gradient ? got.view().slice(rows) : View<T>{}, scale);
      const LossResult ours = loops::result_of(sums.there);
      CHECK(ours.correct == host.correct);
      CHECK(ours.count == host.count);
      CHECK(loops::whole_images(sums.there) == s.n);
      CHECK(std::abs(ours.sum - host.sum) <= 1e-12 * (1 + std::abs(host.sum)));
      if (gradient) CHECK(same(got, want));
      else CHECK(got.intact());
    }
}
std::vector<std::int32_t> classes_of(Index count, Index classes, Index every) {
  std::vector<std::int32_t> result;
  for (Index i = 0; i < count; ++i) result.push_back(every > 0 && i % every == 0 ? -1 : static_cast<std::int32_t>(i * 7 % classes));
  return result;
}
}   // namespace
TEST_CASE_TEMPLATE("losses of functors over pixels are the host's", T, float, float16, bfloat16) {
  for (const Index width : {1, 3, 37, 300}) {
    const Shape s{2, 3, 3, width};
    over_pixels<T>(WeightedEntropy{}, s, Labels::of_pixels(classes_of(2 * 3 * width, 3, 5), 3, width));
    over_pixels<T>(SquaredHinge{.margin = 2}, s, Labels::of_pixels(classes_of(2 * 3 * width, 3, 0), 3, width));
    std::vector<float> numbers;
    for (Index i = 0; i < s.count(); ++i) numbers.push_back(static_cast<float>(i * 7 % 16) / 15);
    over_pixels<T>(LogCosh{}, s, Labels::of_targets(numbers, 3, 3, width));
  }
}
TEST_CASE_TEMPLATE("losses of functors over images are the host's to the bit, in any number of pieces", T, float, float16, bfloat16) {
  for (const Index k : {1, 2, 10, 100}) {
    const Index n = 300;   // more than one block of threads
    const Shape s{n, k, 1, 1};
    const auto labels = classes_of(n, k, 0);
    const Slab<T> x(as<T>(random_map(s, 5)), {0, 1}, k), want(s, {0, 1}, k);
    LossResult host;
    ImageLoss<SquaredHinge>{{.margin = 2}}(View<const T>(x.view()), std::span(labels), want.view(), 0.3, host);
    const Labels all(labels);
    const auto there = loops::pixel_labels(all, all.data(), nullptr);
    for (const Index step : {n, Index{7}}) {
      const Slab<T> got(s, {0, 1}, k);
      Sums sums;
      for (Index first = 0; first < n; first += step) {
        View<T> part = x.view(), dx = got.view();
        part.n = dx.n = std::min(step, n - first);
        part.data += first * part.stride_n, dx.data += first * dx.stride_n;
        sums.add<T>(SquaredHinge{.margin = 2}, part, there, first, dx, 0.3);
      }
      CHECK(loops::result_of(sums.there) == host);
      CHECK(loops::whole_images(sums.there) == n);
      CHECK(same(got, want));
    }
  }
}
TEST_CASE("labels of images that are no class are counted, not used: from there on no image counts") {
  const Shape s{6, 4, 1, 1};
  const Slab<float> x(random_map(s, 5), {0, 1}, 4), dx(s, {0, 1}, 4);
  auto labels = classes_of(6, 4, 0);
  labels[3] = 4, labels[5] = -1'000'000'000;
  const Labels all(labels);
  Sums sums;
  sums.add<float>(SquaredHinge{}, x.view(), loops::pixel_labels(all, all.data(), nullptr), 0, dx.view(), 1);
  CHECK(sums.there.invalid_labels == 2);
  CHECK(sums.there.finite == 0);
  CHECK(sums.there.count == 3);
  for (Index k = 0; k < 4; ++k) CHECK((dx.view()(3, k, 0, 0) == 0 && dx.view()(5, k, 0, 0) == 0));
}
