// Dice loss: PyTorch's numbers, the plain formula's differences, storage blocks, images that do not count, and what is refused.
//
// The golden numbers are those of PyTorch 2.13:
//     def dice(z, t, smooth, ignore):   # z [2,C,3,4] = (i * 7 % 17) / 8 - 1 for element i, t [2,3,4] = i * 5 % 7 % 3, or % 2 for one channel
//       p, keep = z.softmax(1) if C > 1 else z.sigmoid(), t != ignore
//       o = one_hot(where(keep, t, 0), max(C, 2)).permute(0, 3, 1, 2)[:, -C:]
//       I, U = (p * o * keep[:, None]).sum((2, 3)), ((p + o) * keep[:, None]).sum((2, 3))
//       return (1 - ((2 * I + smooth) / (U + smooth)).mean(1)).mean()
#include "support/error_of.hpp"
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/rng.hpp>
#include <lrcnn/layer/dice.hpp>
#include <doctest/doctest.h>
#include <vector>
using namespace lrcnn;
using lrcnn::testing::error_of;
static_assert(WholeMapLoss<DiceLoss, float> && WholeMapLoss<DiceLoss, bfloat16> && !RowLocalLoss<DiceLoss, float> && TrainingLoss<DiceLoss, double>);
static_assert(!WholeMapLoss<PixelCrossEntropy, float> && !WholeMapLoss<SoftmaxCrossEntropy, float>);
namespace {
/// Logits in a storage block, and their mask.
struct Bench {
  Shape shape;
  Index block;
  std::vector<double> x, dx;
  std::vector<std::int32_t> mask;
  Bench(const Shape& s, Index storage_block)
      : shape(s), block(storage_block), x(static_cast<std::size_t>(stored_elements(s.n, s.c, s.h, s.w, block)), 99), dx(x.size(), 77) {
    Index at = 0;
    for (Index i = 0; i < s.n; ++i)
      for (Index c = 0; c < s.c; ++c)
        for (Index row = 0; row < s.h; ++row)
          for (Index column = 0; column < s.w; ++column, ++at) view(x)(i, c, row, column) = static_cast<double>(at * 7 % 17) / 8 - 1;
    for (Index i = 0; i < s.n * s.h * s.w; ++i) mask.push_back(static_cast<std::int32_t>(i * 5 % 7 % (s.c > 1 ? 3 : 2)));
  }
  View<double> view(std::vector<double>& values) const { return dense_view(values.data(), shape.n, shape.c, Range{0, shape.h}, shape.w, block); }
  Labels labels() const { return Labels::of_pixels(mask, shape.h, shape.w); }
  LossResult run(const DiceLoss& loss, double scale = 1, bool gradient = true) {
    LossResult result;
    loss(View<const double>(view(x)), labels(), 0, gradient ? view(dx) : View<double>{}, scale, result);
    return result;
  }
  /// The gradient of element i in the order of its channels.
  double gradient(Index i) {
    const Index plane = shape.h * shape.w;
    return view(dx)(i / (plane * shape.c), i / plane % shape.c, i / shape.w % shape.h, i % shape.w);
  }
  double gradient_norm() {
    double sum = 0;
    for (Index i = 0; i < shape.count(); ++i) sum += gradient(i) * gradient(i);
    return std::sqrt(sum);
  }
};
struct Golden {
  Index channels;
  DiceLoss loss;
  double value;
  std::vector<double> gradient;   ///< of elements 0, 5, 11, 13, 22 and the last
  double norm;
};
const std::vector<Golden> golden{
    {3,
     {.smooth = 1},
     0.59424419120386973,
     {-0.001907459651610913, 0.00051544200385202305, -0.0071505704726902066, 0.003948015303704068, -0.0093582881632392218, 0.0037780108188892529},
     0.046727171162124596},
    {3,
     {.smooth = 0, .ignore = 2},
     0.74630269045075204,
     {-0.0020863035740201269, 0.0014870466271214469, -0.0078210098551009452, 0, -0.011897313438163611, 0.0024968479981092415},
     0.047536110096079894},
    {1,
     {.smooth = 0.5},
     0.55032621511748636,
     {0.0040832116523275867, 0.0043125012036943512, 0.0051717398132643359, 0.0042028986737325949, -0.014649554419621178, -0.017637101461712906},
     0.052149327801707022}};
}   // namespace
TEST_CASE("dice: PyTorch's loss and gradient") {
  for (const Golden& g : golden)
    for (const Index block : {1, 4, 16}) {
      Bench b({2, g.channels, 3, 4}, block);
      CHECK(g.loss.total(b.labels(), b.shape) == 2);
      const LossResult result = b.run(g.loss, 0.5);
      CHECK(result.sum / 2 == doctest::Approx(g.value).epsilon(1e-13));
      const std::array<Index, 6> at{0, 5, 11, 13, 22, b.shape.count() - 1};
      for (std::size_t k = 0; k < at.size(); ++k) CHECK(std::abs(b.gradient(at[k]) - g.gradient[k]) < 1e-15);
      CHECK(b.gradient_norm() == doctest::Approx(g.norm).epsilon(1e-13));
      for (Index c = g.channels; c < round_up(g.channels, block); ++c) CHECK(b.view(b.dx)(1, c, 2, 3) == 0);
      CHECK(b.run(g.loss, 1, false) == result);
    }
}
TEST_CASE("dice: gradients are differences of the loss") {
  for (const Index channels : {1, 2, 5})
    for (const DiceLoss& loss : {DiceLoss{}, DiceLoss{.smooth = 0}, DiceLoss{.smooth = 0.1, .ignore = 1}}) {
      Bench b({2, channels, 3, 3}, 1);
      b.run(loss);
      for (std::size_t i = 0; i < b.x.size(); ++i) {
        const double here = b.x[i], h = 1e-5;
        b.x[i] = here + h;
        const double above = b.run(loss, 1, false).sum;
        b.x[i] = here - h;
        const double below = b.run(loss, 1, false).sum;
        b.x[i] = here;
        CHECK(std::abs(b.dx[i] - (above - below) / (2 * h)) < 1e-9);
      }
    }
}
TEST_CASE("dice: a perfect map has no loss, a wrong one all of it; pixels are counted") {
  Bench b({1, 3, 4, 5}, 1);
  const auto fill = [&](Index shift) {
    for (Index c = 0; c < 3; ++c)
      for (Index row = 0; row < 4; ++row)
        for (Index x = 0; x < 5; ++x) b.view(b.x)(0, c, row, x) = (b.mask[static_cast<std::size_t>(row * 5 + x)] + shift) % 3 == c ? 800 : -800;
  };
  fill(0);
  const LossResult good = b.run({.smooth = 0});
  CHECK(good.sum == 0);
  CHECK(good.correct == 20);
  CHECK(good.count == 20);
  fill(1);
  CHECK(b.run({.smooth = 0}).sum == 1);
  CHECK(b.run({.smooth = 0}).correct == 0);
  std::fill(b.mask.begin(), b.mask.end(), 2);   // classes 0 and 1 are neither there nor predicted
  fill(0);
  CHECK(b.run({.smooth = 0}).sum == 0);
  CHECK(b.run({.smooth = 1}).sum == 0);
}
TEST_CASE("dice: a logit that is not a number makes a loss that is none, unless its pixel is ignored") {
  for (const Index channels : {1, 3})
    for (const double smooth : {0.0, 1.0}) {
      Bench b({2, channels, 3, 4}, 1);
      b.view(b.x)(1, 0, 2, 1) = std::nan("");
      CHECK(std::isnan(b.run({.smooth = smooth}).sum));
      CHECK(std::isfinite(b.run({.smooth = smooth, .ignore = b.mask[21]}).sum));
    }
}
TEST_CASE("dice: an image all of whose pixels are ignored counts for nothing") {
  const DiceLoss loss{.smooth = 0, .ignore = 2};
  Bench b({2, 3, 2, 3}, 1);
  std::fill(b.mask.begin(), b.mask.begin() + 6, 2);
  b.mask[6] = 0;
  CHECK(loss.total(b.labels(), b.shape) == 1);
  const LossResult both = b.run(loss);
  CHECK(both.count == std::count_if(b.mask.begin(), b.mask.end(), [](std::int32_t label) { return label != 2; }));
  for (Index i = 0; i < 18; ++i) CHECK(b.gradient(i) == 0);
  CHECK(std::isfinite(both.sum));
  std::fill(b.mask.begin(), b.mask.end(), 2);
  CHECK(loss.total(b.labels(), b.shape) == 0);
}
TEST_CASE("dice: labels and outputs that it cannot use are refused") {
  const DiceLoss loss;
  std::vector<std::int32_t> mask{0, 1, 2, 3};
  const std::vector<float> targets(12, 0);
  const auto of = [&](Index channels) {
    return error_of([&] { static_cast<void>(loss.total(Labels::of_pixels(mask, 2, 2), {1, channels, 2, 2})); });
  };
  CHECK(of(4) == "no error");
  CHECK(of(3) ==
        "lrcnn: label 3 of image 0, row 1, column 1 is outside the 3 classes; labels are 0 .. classes - 1, or the one to ignore; "
        "correct the mask, set the loss's `ignore`, or widen the last layer");
  CHECK(of(1).starts_with(
      "lrcnn: label 2 of image 0, row 1, column 0 is outside the 2 classes; the one channel of the output is the logit of class 1, "));
  CHECK(of(257) ==
        "lrcnn: an output of 257 classes is given to the loss 'dice'; it has sums for at most 256; use PixelCrossEntropy, or fewer classes");
  CHECK(error_of([&] {
          static_cast<void>(loss.total(Labels::of_targets(targets, 3, 2, 2), {1, 3, 2, 2}));
        }) == "lrcnn: targets are given to the loss 'dice'; it compares classes, one for each pixel; give Labels::of_pixels");
}
