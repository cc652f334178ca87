// Losses from functors of one sample, on the host: those of the library's own losses, whatever the storage and the cuts; gradients of
// differences; labels that do not fit.
#include "support/counted_labels.hpp"
#include "support/error_of.hpp"
#include "support/own_losses.hpp"
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/rng.hpp>
#include <doctest/doctest.h>
#include <vector>
using namespace lrcnn;
using namespace lrcnn::testing;
static_assert(Loss<ImageLoss<SquaredHinge>, bfloat16> && !DenseLoss<ImageLoss<SquaredHinge>, float>);
static_assert(RowLocalLoss<PixelLoss<SquaredHinge>, float> && RowLocalLoss<PixelLoss<LogCosh>, double>);
static_assert(!Loss<PixelLoss<WeightedEntropy>, float> && std::equality_comparable<PixelLoss<SquaredHinge>>);
static_assert(!std::equality_comparable<PixelLoss<WeightedEntropy>>);   // its functor is not
namespace {
/// Logits of a map, their gradient, and labels: -1 for every fifth pixel, and targets.
template <class T>
struct Case {
  Shape shape;
  Index block;
  std::vector<T> x, dx;
  std::vector<std::int32_t> mask;
  std::vector<float> numbers;
  explicit Case(const Shape& s, Index storage_block = 1)
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
            logits()(i, c, row, column) = static_cast<T>(static_cast<float>(3 * random.normal(at++)));
            numbers.push_back(static_cast<float>(at * 7 % 16) / 15);
            if (c == 0) mask.push_back(at % 5 == 0 ? -1 : static_cast<std::int32_t>(at * 5 % 7) % static_cast<std::int32_t>(s.c));
          }
  }
  View<T> logits() { return dense_view(x.data(), shape.n, shape.c, {0, shape.h}, shape.w, block); }
  View<T> gradient() { return dense_view(dx.data(), shape.n, shape.c, {0, shape.h}, shape.w, block); }
  Labels classes() const { return Labels::of_pixels(mask, shape.h, shape.w); }
  Labels targets() const { return Labels::of_targets(numbers, shape.c, shape.h, shape.w); }
  template <class L>
  LossResult run(const L& loss, const Labels& labels, bool wants_gradient = true) {
    LossResult result;
    result.total = loss.total(labels, shape);
    loss(View<const T>(logits()), labels, 0, wants_gradient ? gradient() : View<T>{}, 1 / result.total, result);
    return result;
  }
};
/// The largest difference between the gradient and central differences of the mean loss.
template <class L>
double worst_of_differences(const L& loss, const Labels& labels, Case<double>& c) {
  c.run(loss, labels);
  const auto gradient = c.dx;
  double worst = 0;
  for (std::size_t e = 0; e < c.x.size(); ++e) {
    const double here = c.x[e], h = 1e-5;
    c.x[e] = here + h;
    const double above = c.run(loss, labels, false).mean();
    c.x[e] = here - h;
    const double below = c.run(loss, labels, false).mean();
    c.x[e] = here;
    worst = std::max(worst, std::abs((above - below) / (2 * h) - gradient[e]));
  }
  return worst;
}
}   // namespace
TEST_CASE_TEMPLATE("a functor of cross entropy gives the bits of the library's, in any storage", T, float, double, bfloat16, float16) {
  for (const Index block : {1, 3, 8}) {
    Case<T> own({2, 3, 4, 5}, block), library({2, 3, 4, 5}, block);
    const PixelCrossEntropy known{.weights = {0.5, 2, 1}, .ignore = -1};
    const LossResult a = own.run(PixelLoss<WeightedEntropy>{}, own.classes()), b = library.run(known, library.classes());
    CHECK(a == b);
    CHECK(a.count == 32);
    for (std::size_t e = 0; e < own.dx.size(); ++e)
      REQUIRE(static_cast<float>(own.dx[e]) == static_cast<float>(library.dx[e]));   // zeros, too, where storage alone has channels
  }
}
TEST_CASE("gradients of functors are those of differences, and a part of the rows gives a part of the sum") {
  Case<double> c({2, 3, 4, 5});
  CHECK(worst_of_differences(PixelLoss<WeightedEntropy>{}, c.classes(), c) < 1e-9);
  CHECK(worst_of_differences(PixelLoss<LogCosh>{}, c.targets(), c) < 1e-9);
  for (std::int32_t& label : c.mask) label = std::max(label, 0);
  CHECK(worst_of_differences(PixelLoss<SquaredHinge>{{.margin = 2}}, c.classes(), c) < 1e-8);
  const PixelLoss<LogCosh> loss;
  const LossResult whole = c.run(loss, c.targets());
  CHECK(whole.total == 40);   // pixels: the functor's loss is a mean over channels
  CHECK(whole.count == 40);
  const auto gradient = c.dx;
  std::fill(c.dx.begin(), c.dx.end(), 77);
  LossResult parts;
  for (const Range rows : {Range{0, 1}, Range{1, 4}})
    loss(View<const double>(c.logits().slice(rows)), c.targets(), 0, c.gradient().slice(rows), 1 / whole.total, parts);
  CHECK(std::abs(parts.sum - whole.sum) <= 1e-12 * whole.sum);
  CHECK(parts.count == whole.count);
  CHECK(c.dx == gradient);
}
TEST_CASE("a functor over images: its formula, image by image") {
  const ImageLoss<SquaredHinge> loss{{.margin = 2}};
  std::vector<float> x{1, -3, 0.5f, 0, 2.5f, -1}, dx(16, 77);
  const std::vector<std::int32_t> labels{2, 1};
  LossResult result;
  loss(View<const float>(dense_view(x.data(), 2, 3, {0, 1}, 1)), std::span(labels), dense_view(dx.data(), 2, 3, {0, 1}, 1, 8), 0.5, result);
  CHECK(result.sum == 9 + 0 + 2.25 + (4 + 0 + 1));
  CHECK(result.correct == 1);
  CHECK(result.count == 2);
  const std::vector<float> want{3, 0, -1.5f, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0};   // 3 channels in storage of 8
  CHECK(dx == want);
}
TEST_CASE("labels that a functor cannot be given are refused, also those read again") {
  Case<double> c({2, 3, 4, 5});
  const auto refused = [&](const auto& loss, const Labels& labels) { return error_of<DataError>([&] { c.run(loss, labels); }); };
  CHECK(refused(PixelLoss<SquaredHinge>{}, c.classes()) ==
        "lrcnn: label -1 of image 0, row 0, column 4 is outside the 3 classes; labels are 0 .. classes - 1, or the one to ignore; correct the mask, "
        "set the loss's `ignore`, or widen the last layer");
  CHECK(refused(PixelLoss<WeightedEntropy>{}, c.targets()) ==
        "lrcnn: targets are given to the loss 'weighted_entropy'; its functor is given a class for each pixel; give Labels::of_pixels, or let the "
        "functor say targets");
  CHECK(refused(PixelLoss<LogCosh>{}, c.classes()) ==
        "lrcnn: a mask of classes is given to the loss 'log_cosh'; it compares numbers, 3 for each pixel; give Labels::of_targets");
  c.mask[33] = 3;
  CHECK(refused(PixelLoss<WeightedEntropy>{}, c.classes()).starts_with("lrcnn: label 3 of image 1, row 2, column 3 is outside the 3 classes; "));
  const PixelLoss<WeightedEntropy> loss;
  CHECK(error_of<DataError>([&] { loss.check_again(c.classes(), 3, {1, 2}, {0, 2}); }) == "no error");
  CHECK(error_of<DataError>([&] { loss.check_again(c.classes(), 3, {1, 2}, {2, 3}); }).starts_with("lrcnn: label 3 of image 1, row 2, column 3 "));
  LossResult result;
  CHECK(error_of<DataError>([&] { loss(View<const double>(c.logits()), c.classes(), 0, View<double>{}, 1, result); }).starts_with("lrcnn: label 3"));
}
TEST_CASE("what counts of labels by rows is not mistaken for what a balance of all classes would find") {
  Case<float> c({2, 3, 4, 5});
  const CountedLabels rows(c.classes());
  LabelWindow window;
  const Labels labels = window.over(Labels::from_rows(rows), 4);
  CHECK(window.total(PixelLoss<WeightedEntropy>{}, labels, c.shape) == PixelLoss<WeightedEntropy>{}.total(c.classes(), c.shape));
  CHECK(error_of<DataError>([&] { class_balance(rows, 3); }).starts_with("lrcnn: label -1 "));
}
