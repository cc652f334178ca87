// Losses over pixels: PyTorch's numbers, plain formulas, finite differences, large logits, and cuts that add up.
//
// The golden numbers are those of PyTorch 2.13 with torchvision 0.28:
//     import torch, torch.nn.functional as F
//     from torchvision.ops import sigmoid_focal_loss as focal
//     def logits(c):
//       k = torch.arange(2 * c * 2 * 2, dtype=torch.float64)
//       return (((k * 37) % 23 - 11) / 4).reshape(2, c, 2, 2).requires_grad_()
//     def show(f, z): loss = f(z); loss.backward(); print(loss.item(), z.grad.flatten().tolist())
//     m = torch.tensor([0, 1, 2, 9, 2, 2, 9, 0]).reshape(2, 2, 2)
//     t = ((torch.arange(8, dtype=torch.float64) * 3) % 5 / 4).reshape(2, 1, 2, 2)
//     b = (torch.arange(8) % 3 == 0).double().reshape(2, 1, 2, 2)
//     w, p = torch.tensor([1, 0.5, 2], dtype=torch.float64), torch.tensor(3.0, dtype=torch.float64)
//     show(lambda z: F.cross_entropy(z, m.clamp(max=2)), logits(3))
//     show(lambda z: F.cross_entropy(z, m, w, ignore_index=9), logits(3))
//     show(lambda z: F.binary_cross_entropy_with_logits(z, t), logits(1))
//     show(lambda z: F.binary_cross_entropy_with_logits(z, b, pos_weight=p), logits(1))
//     show(lambda z: focal(z, b, reduction="mean"), logits(1))
//     show(lambda z: focal(z, t, alpha=-1, gamma=1.5, reduction="mean"), logits(1))
//     show(lambda z: F.mse_loss(z, t), logits(1))
//     show(lambda z: F.huber_loss(z, t, delta=0.75), logits(1))
#include "support/error_of.hpp"
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/rng.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <doctest/doctest.h>
#include <limits>
#include <vector>
using namespace lrcnn;
using lrcnn::testing::error_of;
static_assert(RowLocalLoss<PixelCrossEntropy, float> && RowLocalLoss<PixelBinaryCrossEntropy, bfloat16> && RowLocalLoss<PixelFocal, double>);
static_assert(RowLocalLoss<MeanSquaredError, float> && RowLocalLoss<Huber, double> && !RowLocalLoss<SoftmaxCrossEntropy, double>);
static_assert(!Loss<PixelCrossEntropy, float> && TrainingLoss<PixelCrossEntropy, float> && TrainingLoss<SoftmaxCrossEntropy, float>);
namespace {
/// A map of logits, its labels of every kind, and what a loss makes of them.
template <class T>
struct Bench {
  Shape shape;
  Index block;
  std::vector<T> x, dx;
  std::vector<std::int32_t> mask, yes;
  std::vector<float> soft, hard;
  explicit Bench(const Shape& s, Index storage_block = 1, double spread = 3)
      : shape(s),
        block(storage_block),
        x(static_cast<std::size_t>(stored_elements(s.n, s.c, s.h, s.w, block)), static_cast<T>(99)),
        dx(x.size(), static_cast<T>(77)) {
    const Random random(5);
    std::uint64_t at = 0;
    for (Index i = 0; i < s.n; ++i)
      for (Index c = 0; c < s.c; ++c)
        for (Index row = 0; row < s.h; ++row)
          for (Index column = 0; column < s.w; ++column) {
            logits()(i, c, row, column) = static_cast<T>(static_cast<float>(spread * random.normal(at++)));
            soft.push_back(static_cast<float>(at * 7 % 16) / 15);
            hard.push_back(static_cast<float>(at * 7 % 3 % 2));
            if (c > 0) continue;
            mask.push_back(static_cast<std::int32_t>(at * 5 % 7) % static_cast<std::int32_t>(s.c));
            yes.push_back(static_cast<std::int32_t>(at * 7 % 3 % 2));
          }
  }
  View<T> logits() { return dense_view(x.data(), shape.n, shape.c, {0, shape.h}, shape.w, block); }
  View<T> gradient() { return dense_view(dx.data(), shape.n, shape.c, {0, shape.h}, shape.w, block); }
  Labels classes() const { return Labels::of_pixels(mask, shape.h, shape.w); }
  Labels binary() const { return Labels::of_pixels(yes, shape.h, shape.w); }
  Labels numbers() const { return Labels::of_targets(soft, shape.c, shape.h, shape.w); }
  Labels zeros_and_ones() const { return Labels::of_targets(hard, shape.c, shape.h, shape.w); }
  /// The mean loss and its gradient.
  template <class L>
  LossResult run(const L& loss, const Labels& labels) {
    check_pixel_labels(L::name, labels, shape);
    LossResult result;
    result.total = loss.total(labels, shape);
    loss(View<const T>(logits()), labels, 0, gradient(), 1 / result.total, result);
    return result;
  }
};
/// Every loss with labels of its own.
template <class B, class F>
void each_loss(B& bench, F f) {
  std::vector<double> weights;
  for (Index k = 0; k < bench.shape.c; ++k) weights.push_back(0.5 + static_cast<double>(k % 4));
  f(PixelCrossEntropy{}, bench.classes());
  f(PixelCrossEntropy{.weights = weights, .ignore = 1}, bench.classes());
  f(PixelBinaryCrossEntropy{}, bench.numbers());
  f(PixelBinaryCrossEntropy{.positive_weight = 3}, bench.zeros_and_ones());
  f(PixelFocal{}, bench.zeros_and_ones());
  f(PixelFocal{.gamma = 0.5, .alpha = -1}, bench.numbers());
  f(PixelFocal{.gamma = 0}, bench.zeros_and_ones());
  f(MeanSquaredError{}, bench.numbers());
  f(Huber{.delta = 0.75}, bench.numbers());
}
/// The golden logits.
Bench<double> golden(Index channels) {
  Bench<double> bench({2, channels, 2, 2});
  for (std::size_t k = 0; k < bench.x.size(); ++k) bench.x[k] = (static_cast<double>(k * 37 % 23) - 11) / 4;
  return bench;
}
template <class L>
void check_golden(Index channels, const L& loss, const Labels& labels, double mean, const std::vector<double>& gradient) {
  CAPTURE(L::name);
  Bench<double> bench = golden(channels);
  CHECK(bench.run(loss, labels).mean() == doctest::Approx(mean).epsilon(1e-14));
  REQUIRE(bench.dx.size() == gradient.size());
  for (std::size_t k = 0; k < gradient.size(); ++k) CHECK(std::abs(bench.dx[k] - gradient[k]) <= 1e-15);
}
}   // namespace
TEST_CASE("pixel losses: PyTorch's numbers") {
  const std::vector<std::int32_t> mask{0, 1, 2, 9, 2, 2, 9, 0}, plain{0, 1, 2, 2, 2, 2, 2, 0}, yes{1, 0, 0, 1, 0, 0, 1, 0};
  const std::vector<float> soft{0, 0.75f, 0.25f, 1, 0.5f, 0, 0.75f, 0.25f}, hard{1, 0, 0, 1, 0, 0, 1, 0};
  const Labels targets = Labels::of_targets(soft, 1, 2, 2), binary = Labels::of_pixels(yes, 2, 2);
  const Labels ones = Labels::of_targets(hard, 1, 2, 2);
  check_golden(3, PixelCrossEntropy{}, Labels::of_pixels(plain, 2, 2), 2.972509239273243,
               {-0.1242264643409,    0.08271896520918662,  0.00915424949796637,  0.08271896520918662,  0.009423593495374584, -0.12179263765135402,
                0.11152158922374811, 0.003207362348645984, 0.1148028708455254,   0.03907367244216741,  -0.12067583872171446, -0.08592632755783258,
                0.00915424949796637, 0.08271896520918662,  0.00915424949796637,  -0.11584575050203363, 0.11152158922374811,  0.003207362348645984,
                0.11152158922374811, 0.11152158922374811,  -0.12067583872171446, -0.08592632755783258, -0.12067583872171446, 0.004324161278285539});
  check_golden(3, PixelCrossEntropy{.weights = {1, 0.5, 2}, .ignore = 9}, Labels::of_pixels(mask, 2, 2), 2.977969063048902,
               {-0.11691902526202352,
                0.038926571863146645,
                0.017231528466760224,
                0.0,
                0.008869264466234903,
                -0.057314182424166596,
                0.20992299147999643,
                0.0,
                0.10804976079578861,
                0.01838761056101996,
                -0.22715451994675662,
                0.0,
                0.017231528466760224,
                0.15570628745258658,
                0.0,
                -0.10903129459014929,
                0.20992299147999643,
                0.006037387950392441,
                0.0,
                0.10496149573999822,
                -0.22715451994675662,
                -0.161743675402979,
                0.0,
                0.004069798850151095});
  check_golden(1, PixelBinaryCrossEntropy{}, targets, 0.40589997589735155,
               {0.007510831271750953, -0.008852662603075878, -0.008446809524205456, -0.01490036525276471, -0.007772062610724759, 0.009482272502655443,
                -0.002367677671249388, -0.003412482646836395});
  for (const Labels& labels : {binary, ones}) {
    check_golden(1, PixelBinaryCrossEntropy{.positive_weight = 3}, labels, 1.50018929778845,
                 {-0.35246750618474715, 0.08489733739692412, 0.022803190475794544, -0.04470109575829412, 0.05472793738927524, 0.009482272502655443,
                  -0.10085303301374815, 0.027837517353163605});
    check_golden(1, PixelFocal{}, labels, 0.1397523997189549,
                 {-0.03527776318167389, 0.06091728049160659, 0.0015966661146783684, -0.00015221688110602432, 0.01950528554295603,
                  0.00011958608706214645, -0.0016431603117987694, 0.002856455224910852});
  }
  check_golden(1, PixelFocal{.gamma = 1.5, .alpha = -1}, targets, 0.09729848556332281,
               {0.00027147529268638953, -0.009844146270369523, 0.0030243710844937766, -0.0014759457316644016, -0.0027478390879249496,
                0.00048371823141949463, -0.0070020248254607015, 0.004764976627958577});
  check_golden(1, MeanSquaredError{}, targets, 2.59375, {-0.6875, 0.0, -0.4375, 0.25, -0.1875, -0.625, 0.0625, -0.375});
  check_golden(1, Huber{.delta = 0.75}, targets, 0.75390625, {-0.09375, 0.0, -0.09375, 0.09375, -0.09375, -0.09375, 0.03125, -0.09375});
}
TEST_CASE("pixel losses: the sum of losses is the formula's") {
  Bench<double> b({2, 3, 4, 5});
  const auto z = b.logits();
  long double cross = 0, binary = 0, weight = 0;
  const PixelCrossEntropy weighted{.weights = {1, 0.25, 3}, .ignore = 1};
  for (Index i = 0; i < 2; ++i)
    for (Index row = 0; row < 4; ++row)
      for (Index x = 0; x < 5; ++x) {
        long double sum = 0;
        for (Index k = 0; k < 3; ++k) {
          sum += std::exp(static_cast<long double>(z(i, k, row, x)));
          const long double p = 1 / (1 + std::exp(-static_cast<long double>(z(i, k, row, x)))), t = b.numbers().values(i, k, row)[x];
          binary -= 2 * t * std::log(p) + (1 - t) * std::log(1 - p);
        }
        const auto label = b.classes().classes(i, row)[x];
        if (label == 1) continue;
        weight += weighted.weights[static_cast<std::size_t>(label)];
        cross += weighted.weights[static_cast<std::size_t>(label)] * (std::log(sum) - static_cast<long double>(z(i, label, row, x)));
      }
  const LossResult c = b.run(weighted, b.classes()), e = b.run(PixelBinaryCrossEntropy{.positive_weight = 2}, b.numbers());
  CHECK(c.total == doctest::Approx(static_cast<double>(weight)).epsilon(1e-15));
  CHECK(c.mean() == doctest::Approx(static_cast<double>(cross / weight)).epsilon(1e-14));
  CHECK(c.count == 40 - std::count(b.mask.begin(), b.mask.end(), 1));
  CHECK(e.mean() == doctest::Approx(static_cast<double>(binary / 120)).epsilon(1e-14));
  CHECK(e.count == 120);
}
TEST_CASE("pixel losses: the gradient is that of the mean") {
  Bench<double> b({2, 3, 2, 3});
  each_loss(b, [&](const auto& loss, const Labels& labels) {
    CAPTURE(loss.name);
    b.run(loss, labels);
    const auto dx = b.dx;
    for (std::size_t e = 0; e < dx.size(); ++e) {
      const double step = 1e-5, at = b.x[e];
      b.x[e] = at + step;
      const double more = b.run(loss, labels).mean();
      b.x[e] = at - step;
      const double less = b.run(loss, labels).mean();
      b.x[e] = at;
      CHECK(std::abs(dx[e] - (more - less) / (2 * step)) <= 1e-8 + 1e-6 * std::abs(dx[e]));
    }
  });
}
TEST_CASE("pixel losses: large logits overflow nowhere") {
  Bench<double> b({1, 2, 1, 4});
  b.x = {1e4, -1e4, 1e4, -1e4, /**/ -1e4, 1e4, 1e4, -1e4};
  b.mask = {0, 0, 1, 1}, b.hard = b.soft = {1, 1, 0, 0, 0, 1, 1, 0};
  each_loss(b, [&](const auto& loss, const Labels& labels) {
    CAPTURE(loss.name);
    CHECK(std::isfinite(b.run(loss, labels).sum));
    for (const double g : b.dx) CHECK(std::isfinite(g));
  });
  CHECK(b.run(PixelCrossEntropy{}, b.classes()).sum == doctest::Approx(2e4 + 2 * std::log(2.0)).epsilon(1e-15));
  CHECK(b.dx == std::vector<double>{0, -0.25, 0.125, 0.125, 0, 0.25, -0.125, -0.125});
  CHECK(b.run(PixelBinaryCrossEntropy{}, b.zeros_and_ones()).sum == 2e4);   // of the second and the third
  CHECK(b.dx == std::vector<double>{0, -0.125, 0.125, 0, 0, 0, 0, 0});
  CHECK(b.run(PixelFocal{.alpha = -1}, b.zeros_and_ones()).sum == 2e4);
  CHECK(b.run(Huber{}, b.zeros_and_ones()).sum == doctest::Approx(8e4).epsilon(1e-4));
  b.x[2] = std::numeric_limits<double>::quiet_NaN();
  each_loss(b, [&](const auto& loss, const Labels& labels) {
    if (labels.kind() == LabelKind::pixels && loss.total(labels, b.shape) < 4) return;   // that pixel is ignored
    CAPTURE(loss.name);
    CHECK(!std::isfinite(b.run(loss, labels).sum));
  });
}
TEST_CASE("pixel losses: rows and images in pieces add up, with gradients to the last bit") {
  for (const Index block : {1, 8, 16}) {
    Bench<double> whole({5, 9, 7, 3}, block), parts({5, 9, 7, 3}, block);
    each_loss(whole, [&](const auto& loss, const Labels& labels) {
      CAPTURE(loss.name);
      const LossResult once = whole.run(loss, labels);
      LossResult result;
      result.total = once.total;
      for (const Range rows : {Range{0, 1}, Range{1, 5}, Range{5, 7}})
        for (const Range images : {Range{0, 2}, Range{2, 5}}) {
          View<double> x = parts.logits().slice(rows), dx = parts.gradient().slice(rows);
          x.data += images.begin * x.stride_n, dx.data += images.begin * dx.stride_n;
          x.n = dx.n = images.size();
          loss(View<const double>(x), labels, images.begin, dx, 1 / once.total, result);
        }
      CHECK(result.sum == doctest::Approx(once.sum).epsilon(1e-12));
      CHECK(result.correct == once.correct);
      CHECK(result.count == once.count);
      CHECK(parts.dx == whole.dx);
    });
  }
}
TEST_CASE("pixel losses: blocked storage gives the same bits, and zero gradient in padded channels") {
  for (const Index block : {8, 16}) {
    Bench<double> plain({2, 5, 3, 4}), blocked({2, 5, 3, 4}, block);
    each_loss(plain, [&](const auto& loss, const Labels& labels) {
      CAPTURE(loss.name);
      CHECK(plain.run(loss, labels) == blocked.run(loss, labels));
      for (Index i = 0; i < 2; ++i)
        for (Index c = 0; c < block; ++c)
          for (Index row = 0; row < 3; ++row)
            for (Index x = 0; x < 4; ++x) CHECK(blocked.gradient()(i, c, row, x) == (c < 5 ? plain.gradient()(i, c, row, x) : 0));
    });
  }
}
TEST_CASE("pixel losses: elements of four and two bytes are computed in double") {
  const Shape shape{2, 4, 3, 5};
  Bench<bfloat16> stored(shape, 8);
  Bench<float> narrow(shape);
  Bench<double> wide(shape);
  for (Index e = 0; e < shape.count(); ++e) {
    const Index x = e % 5, row = e / 5 % 3, c = e / 15 % 4, i = e / 60;
    wide.x[static_cast<std::size_t>(e)] = static_cast<double>(narrow.x[static_cast<std::size_t>(e)] = stored.logits()(i, c, row, x));
  }
  each_loss(wide, [&](const auto& loss, const Labels& labels) {
    CAPTURE(loss.name);
    const LossResult result = wide.run(loss, labels);
    CHECK(narrow.run(loss, labels) == result);
    CHECK(stored.run(loss, labels) == result);
    for (Index e = 0; e < shape.count(); ++e) {
      const double g = wide.dx[static_cast<std::size_t>(e)];
      CHECK(narrow.dx[static_cast<std::size_t>(e)] == static_cast<float>(g));
      CHECK(stored.gradient()(e / 60, e / 15 % 4, e / 5 % 3, e % 5).bits() == static_cast<bfloat16>(g).bits());
    }
  });
}
TEST_CASE("pixel losses: hits, ignored pixels, and a loss without a gradient") {
  Bench<double> b({1, 3, 1, 4});
  b.x = {1, 4, 4, 0, /**/ 5, 4, 4, 0, /**/ 2, 1, 1, 0};
  b.mask = {1, 0, 1, 2};
  CHECK(b.run(PixelCrossEntropy{}, b.classes()).correct == 2);   // of the equal ones the first counts
  const LossResult some = b.run(PixelCrossEntropy{.ignore = 2}, b.classes());
  CHECK(some.correct == 2);
  CHECK(some.count == 3);
  CHECK(some.total == 3);
  for (const std::size_t k : {3u, 7u, 11u}) CHECK(b.dx[k] == 0);
  b.mask[3] = -100;   // labels that are ignored need not be classes
  CHECK(b.run(PixelCrossEntropy{.ignore = -100}, b.classes()) == some);
  b.x = {1, -1, 0, 2, /**/ 1, -1, 0, 2, /**/ 1, -1, 0, 2};
  b.hard = {1, 1, 0, 0, /**/ 1, 0, 1, 1, /**/ 0, 0, 0, 0};
  CHECK(b.run(PixelBinaryCrossEntropy{}, b.zeros_and_ones()).accuracy() == 7.0 / 12);
  CHECK(b.run(PixelFocal{}, b.zeros_and_ones()).correct == 7);
  CHECK(b.run(MeanSquaredError{}, b.numbers()).correct == 0);
  each_loss(b, [&](const auto& loss, const Labels& labels) {
    if (labels.kind() == LabelKind::pixels) return;
    LossResult result;
    result.total = loss.total(labels, b.shape);
    loss(View<const double>(b.logits()), labels, 0, View<double>{}, 1.0, result);
    CHECK(result == b.run(loss, labels));
  });
}
TEST_CASE("pixel losses: the weight of a class that is not there does not matter") {
  const std::vector<std::int32_t> mask{0, 2, 2, -1};
  const PixelCrossEntropy loss{.weights = {0.5, std::numeric_limits<double>::infinity(), 3}, .ignore = -1};
  CHECK(loss.total(Labels::of_pixels(mask, 2, 2), {1, 3, 2, 2}) == 6.5);
}
TEST_CASE("pixel losses: labels that do not fit are refused") {
  Bench<double> b({2, 3, 4, 5});
  const auto total = [&](const auto& loss, const Labels& labels) { return error_of<DataError>([&] { b.run(loss, labels); }); };
  b.mask[33] = 3;
  CHECK(total(PixelCrossEntropy{}, b.classes()) ==
        "lrcnn: label 3 of image 1, row 2, column 3 is outside the 3 classes; labels are 0 .. classes - 1, or the one to ignore; correct "
        "the mask, set the loss's `ignore`, or widen the last layer");
  b.mask[33] = -1;
  CHECK(total(PixelCrossEntropy{}, b.classes()).starts_with("lrcnn: label -1 of image 1, row 2, column 3 is outside "));
  CHECK(total(PixelCrossEntropy{.weights = {1, 2}}, b.classes()) ==
        "lrcnn: 2 weights are given for 3 classes; each class has one, or none has; give as many weights as classes");
  CHECK(total(PixelCrossEntropy{}, b.numbers()) ==
        "lrcnn: targets are given to the loss 'pixel_cross_entropy'; it compares classes, one for each pixel; give Labels::of_pixels");
  CHECK(total(MeanSquaredError{}, b.classes()) ==
        "lrcnn: a mask of classes is given to the loss 'mean_squared_error'; it compares numbers, 3 for each pixel; give "
        "Labels::of_targets");
  CHECK(total(PixelFocal{}, b.binary()) ==
        "lrcnn: a mask of classes is given to the loss 'pixel_focal' on an output of 3 channels; each channel says yes or no by itself, "
        "and a mask has one label for each pixel; give Labels::of_targets, or use PixelCrossEntropy");
  b.soft[60 + 20 + 5 + 2] = 1.5f;
  CHECK(total(PixelBinaryCrossEntropy{}, b.numbers()) ==
        "lrcnn: target 1.500000 of image 1, row 1, column 2, channel 1 cannot be used by the loss 'pixel_binary_cross_entropy'; targets "
        "are from 0 to 1; correct the targets");
  CHECK(total(Huber{}, b.numbers()) == "no error");
  b.soft[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK(total(Huber{}, b.numbers()).ends_with(" cannot be used by the loss 'huber'; targets are finite; correct the targets"));
  Bench<double> one({1, 1, 2, 2});
  one.yes[3] = 2;
  CHECK(total(PixelCrossEntropy{}, Labels::of_pixels(b.mask, 5, 4)) ==
        "lrcnn: masks of 5x4 are given for the network's output of 4x5; every pixel of the output has one label; make the masks as large "
        "as the output");
  CHECK(error_of<DataError>([&] { one.run(PixelFocal{}, one.binary()); }) ==
        "lrcnn: label 2 of image 0, row 1, column 1 is outside the 2 classes; the one channel of the output is the logit of class 1, so labels "
        "are 0 and 1; correct the mask, or end the network in a channel for each class and train with PixelCrossEntropy");
  one.yes[3] = 1;
  CHECK(error_of<DataError>([&] { one.run(PixelFocal{}, one.binary()); }) == "no error");
  CHECK(error_of<DataError>([&] { one.run(PixelCrossEntropy{}, one.binary()); }) ==
        "lrcnn: an output of 1 channel is given to the loss 'pixel_cross_entropy'; it compares the logits of classes, of which there are two at "
        "least; end the network in a channel for each class, or train with PixelBinaryCrossEntropy");
  CHECK(error_of<DataError>([&] { Labels::of_pixels(b.mask, 4, 6); }) ==
        "lrcnn: 40 labels are given as images of 1x4x6; every pixel of every image has its own; give channels, height and width of the "
        "labels themselves");
}
