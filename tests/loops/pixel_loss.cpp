// Losses over pixels: values, hits and gradients of layer/pixel_loss.hpp, whatever the cuts, widths and classes.
#include "loops_case.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Truth {
  std::vector<std::int32_t> classes;
  std::vector<float> values;
  Truth(const Shape& s, std::int32_t count, bool ignores) {
    const Random random(11);
    for (Index i = 0; i < s.n * s.h * s.w; ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      classes.push_back(
          ignores && random.below(at + 100'000, 5) == 0 ? 255 : static_cast<std::int32_t>(random.below(at, static_cast<std::uint64_t>(count))));
    }
    for (Index i = 0; i < s.count(); ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      values.push_back(random.below(at, 3) == 0 ? 1 : random.below(at, 3) == 1 ? 0 : static_cast<float>(random.uniform(at)));
    }
  }
};
/// Runs the loss by the host's code, whole, and by the loops, cut into slabs of images and rows.
template <class T, class L>
void on_both(const L& loss, const Shape& s, bool targets, std::int32_t classes) {
  CAPTURE(to_string(s));
  CAPTURE(L::name);
  Map logits = random_map(s, 5);
  for (double& e : logits.value) e *= 4;
  const bool ignores = [&] {
    if constexpr (requires { loss.ignore; }) return loss.ignore.has_value();
    else return false;
  }();
  const Truth truth(s, classes, ignores);
  const Labels labels = targets ? Labels::of_targets(truth.values, s.c, s.h, s.w) : Labels::of_pixels(truth.classes, s.h, s.w);
  const double scale = 1 / loss.total(labels, s);
  const Slab<T> x(as<T>(logits), {0, s.h}, s.c), want(s, {0, s.h}, s.c);
  LossResult host;
  loss(View<const T>(x.view()), labels, 0, want.view(), scale, host);
  const auto known = cudnn::device_loss(loss);
  REQUIRE(known.has_value());
  const auto there = loops::pixel_labels(labels, labels.data(), labels.target_data());
  std::vector<std::byte> workspace(static_cast<std::size_t>(loops::pixel_loss_bytes));
  for (const auto& cut : cuts_of(s.h))
    for (const bool apart : {false, true})
      for (const bool gradient : {true, false}) {
        const Slab<T> got(s, {0, s.h}, s.c);
        loops::LossSums sums;
        for (Index i = 0; i < (apart ? s.n : 1); ++i)
          for (const Range rows : cut) {
            View<T> part = x.view().slice(rows), dx = got.view().slice(rows);
            if (apart) part.data += i * part.stride_n, dx.data += i * dx.stride_n, part.n = dx.n = 1;
            std::fill(workspace.begin(), workspace.end(), std::byte{0xff});
            loops::pixel_loss(on_host, *known, View<const T>(part), there, i, gradient ? dx : View<T>{}, scale, &sums, workspace.data());
          }
        const LossResult ours = loops::result_of(sums);
        CHECK(ours.correct == host.correct);
        CHECK(ours.count == host.count);
        CHECK(loops::whole_images(sums) == s.n);
        CHECK(std::abs(ours.sum - host.sum) <= 1e-12 * (1 + std::abs(host.sum)));
        if (gradient) CHECK(same(got, want));
      }
}
template <class T>
void all_losses(const Shape& s) {
  if (s.c > 1) {
    on_both<T>(PixelCrossEntropy{}, s, false, static_cast<std::int32_t>(s.c));
    PixelCrossEntropy uneven{.ignore = 255};
    for (Index k = 0; k < s.c; ++k) uneven.weights.push_back(0.25 + static_cast<double>(k));
    on_both<T>(uneven, s, false, static_cast<std::int32_t>(s.c));
  }
  on_both<T>(PixelBinaryCrossEntropy{.positive_weight = 3}, s, true, 0);
  on_both<T>(PixelFocal{}, s, true, 0);
  on_both<T>(PixelFocal{.gamma = 1, .alpha = -1}, s, true, 0);
  on_both<T>(MeanSquaredError{}, s, true, 0);
  on_both<T>(Huber{.delta = 0.7}, s, true, 0);
  if (s.c == 1) on_both<T>(PixelBinaryCrossEntropy{}, s, false, 2), on_both<T>(PixelFocal{}, s, false, 2);
}
struct Own {
  static constexpr std::string_view name = "own";
  double total(const Labels&, const Shape& output) const { return static_cast<double>(output.count()); }
  template <class T>
  void operator()(const View<const T>&, const Labels&, Index, const View<T>&, double, LossResult&) const {}
};
}   // namespace
TEST_CASE_TEMPLATE("losses over pixels are the host's: gradients to the bit, sums but for their order", T, float, double, float16, bfloat16) {
  for (const Index classes : {1, 2, 5, 19})
    for (const Index width : {1, 3, 37, 300}) all_losses<T>({2, classes, 3, width});
  all_losses<T>({2, 256, 3, 37});
}
TEST_CASE("more rows than fit into the workspace at once are taken in turns, and sums do not depend on how rows are cut") {
  const Index rows = loops::pixel_loss_rows + 300;
  const Shape s{1, 2, rows, 1};
  const Slab<float> x(random_map(s, 5), {0, rows}, 2);
  const Truth truth(s, 2, false);
  std::vector<std::byte> workspace(static_cast<std::size_t>(loops::pixel_loss_bytes));
  std::vector<loops::LossSums> results;
  for (const Index first : {rows, Index{7}, rows - 100}) {
    loops::LossSums sums;
    for (const Range part : {Range{0, first}, Range{first, rows}})
      loops::pixel_loss(on_host, *cudnn::device_loss(PixelCrossEntropy{}), View<const float>(x.view().slice(part)),
                        {truth.classes.data(), nullptr, 1, rows, 1, 0, 0, rows}, 0, View<float>{}, 1, &sums, workspace.data());
    results.push_back(sums);
  }
  LossResult host;
  PixelCrossEntropy{}(View<const float>(x.view()), Labels::of_pixels(truth.classes, rows, 1), 0, View<float>{}, 1, host);
  for (const loops::LossSums& sums : results) {
    CHECK(sums.sum == results[0].sum);
    CHECK(sums.count == rows);
    CHECK(sums.correct == host.correct);
    CHECK(loops::whole_images(sums) == 1);
  }
  CHECK(std::abs(results[0].sum - host.sum) <= 1e-12 * host.sum);
}
TEST_CASE("from the first row on whose loss is not finite nothing is counted") {
  const Shape s{3, 2, 4, 8};
  Map logits = random_map(s, 5);
  logits.at(1, 0, 2, 5) = std::nan("");
  const Slab<float> x(logits, {0, 4}, 2);
  const Truth truth(s, 2, false);
  std::vector<std::byte> workspace(static_cast<std::size_t>(loops::pixel_loss_bytes));
  loops::LossSums sums;
  loops::pixel_loss(on_host, *cudnn::device_loss(PixelCrossEntropy{}), View<const float>(x.view()), {truth.classes.data(), nullptr, 1, 4, 8}, 0,
                    View<float>{}, 1, &sums, workspace.data());
  CHECK(std::isnan(sums.sum));
  CHECK(sums.finite == 0);
  CHECK(sums.count == 6 * 8);
  CHECK(loops::whole_images(sums) == 1);
}
TEST_CASE("losses without loops are known as such") {
  CHECK(!cudnn::device_loss(Own{}));
  CHECK(!cudnn::device_loss(PixelCrossEntropy{.weights = std::vector<double>(257, 1.0)}));
  CHECK(cudnn::device_loss(PixelCrossEntropy{.weights = std::vector<double>(256, 1.0)}));
}
