// Labels by rows: what a loss finds in them is what it finds in memory, to the bit, in one pass and with no more rows than the window has.
#include "support/counted_labels.hpp"
#include "support/error_of.hpp"
#include <lrcnn/core/rng.hpp>
#include <lrcnn/layer/dice.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr Shape output{2, 3, 7, 5};
/// Labels of every kind, logits, and memory for their gradient.
struct Maps {
  Shape shape;
  std::vector<std::int32_t> mask, yes;
  std::vector<float> numbers;
  std::vector<double> logits;
  explicit Maps(Shape s) : shape(s) {
    const Random random(4);
    for (Index e = 0; e < s.count(); ++e) {
      const auto at = static_cast<std::uint64_t>(e);
      logits.push_back(random.normal(at));
      numbers.push_back(static_cast<float>(random.below(at + 1'000, 16)) / 15);
      if (e >= s.n * s.h * s.w) continue;
      mask.push_back(static_cast<std::int32_t>(random.below(at + 2'000, static_cast<std::uint64_t>(s.c) + 1)) - 1);   // -1 does not count
      yes.push_back(static_cast<std::int32_t>(random.below(at + 3'000, 2)));
    }
  }
  Labels classes() const { return Labels::of_pixels(mask, shape.h, shape.w); }
  Labels binary() const { return Labels::of_pixels(yes, shape.h, shape.w); }
  Labels targets() const { return Labels::of_targets(numbers, shape.c, shape.h, shape.w); }
  View<const double> rows(Index image, Range r) const {
    auto view = dense_view(logits.data(), shape.n, shape.c, {0, shape.h}, shape.w);
    view.data += image * view.stride_n, view.n = 1;
    return view.slice(r);
  }
};
struct Incomparable {
  double total(const Labels& labels, const Shape& shape) const { return MeanSquaredError{}.total(labels, shape); }
};
/// f(loss, labels, logits) for every loss.
template <class F>
void each_loss(const Maps& maps, const Maps& one, F f) {
  f(PixelCrossEntropy{.weights = {0.3, 0.7, 1.9}, .ignore = -1}, maps.classes(), maps);
  f(PixelBinaryCrossEntropy{.positive_weight = 2}, maps.targets(), maps);
  f(PixelBinaryCrossEntropy{}, one.binary(), one);
  f(PixelFocal{}, maps.targets(), maps);
  f(MeanSquaredError{}, maps.targets(), maps);
  f(Huber{.delta = 0.5}, maps.targets(), maps);
  f(DiceLoss{.ignore = -1}, maps.classes(), maps);
}
}   // namespace
TEST_CASE("totals of labels by rows are those of labels in memory, in one pass, with as many rows at a time as the window has") {
  const Maps maps(output), one({2, 1, 7, 5});
  each_loss(maps, one, [&](const auto& loss, const Labels& labels, const Maps& of) {
    const double want = loss.total(labels, of.shape);
    for (Index rows = 1; rows <= 15; ++rows) {
      INFO(loss.name, ", ", rows, " rows at a time");
      const CountedLabels by_rows(labels);
      LabelWindow window;
      const Labels read = window.over(Labels::from_rows(by_rows), rows);
      CHECK(window.total(loss, read, of.shape) == want);
      CHECK(by_rows.pixels == 2 * 7 * 5);   // each once
      CHECK(by_rows.most_rows() == std::min<Index>(rows, 7));
      CHECK(by_rows.was_read == by_rows.expected);
      CHECK(window.bytes() == rows * 5 * labels.channels() * 4);
    }
  });
}
TEST_CASE("rows of a window give a loss what they give it in memory") {
  const Maps maps(output), one({2, 1, 7, 5});
  each_loss(maps, one, [&](const auto& loss, const Labels& labels, const Maps& of) {
    const CountedLabels by_rows(labels);
    LabelWindow window;
    const Labels read = window.over(Labels::from_rows(by_rows), 7);
    const bool whole = WholeMapLoss<std::remove_cvref_t<decltype(loss)>, double>;
    for (const Range rows : whole ? std::vector<Range>{{0, 7}} : std::vector<Range>{{0, 7}, {0, 2}, {2, 3}, {3, 7}})
      for (Index image = 0; image < 2; ++image) {
        INFO(loss.name, ", image ", image, ", rows ", rows.begin, " to ", rows.end - 1);
        const auto size = static_cast<std::size_t>(of.shape.c * rows.size() * 5);
        std::vector<double> gradient(size, 9), other(size, 8);
        LossResult want, got;
        loss(of.rows(image, rows), labels, image, dense_view(gradient.data(), 1, of.shape.c, rows, 5), 0.1, want);
        window.read(read, {image, image + 1}, rows);
        loss(of.rows(image, rows), read, image, dense_view(other.data(), 1, of.shape.c, rows, 5), 0.1, got);
        CHECK(got == want);
        CHECK(other == gradient);
      }
  });
}
TEST_CASE("a total is kept for constant labels and equal losses, and found again for all others") {
  const Maps maps(output);
  LabelWindow window;
  const auto pixels_for = [&](const CountedLabels& rows, const Labels& same, const auto& loss, const Shape& shape = output) {
    rows.forget();
    CHECK(window.total(loss, window.over(Labels::from_rows(rows), 2), shape) == loss.total(same, shape));
    return rows.pixels;
  };
  const Labels targets = maps.targets(), classes = maps.classes();
  const CountedLabels constant(targets), changing(targets, false);
  CHECK(pixels_for(constant, targets, Huber{}) == 70);
  CHECK(pixels_for(constant, targets, Huber{}) == 0);
  const CountedLabels copy = constant;
  CHECK(pixels_for(copy, targets, Huber{}) == 0);
  CHECK(pixels_for(constant, targets, Huber{.delta = 3}) == 70);
  CHECK(pixels_for(constant, targets, MeanSquaredError{}) == 70);
  CHECK(pixels_for(constant, targets, Huber{}) == 70);
  CHECK(pixels_for(constant, targets, Huber{}, {1, 3, 7, 5}) == 35);
  for (int i = 0; i < 2; ++i) {
    CHECK(pixels_for(changing, targets, Huber{}) == 70);
    CHECK(pixels_for(constant, targets, Incomparable{}) == 70);
  }
  // Of masks the classes are counted, whatever their weights.
  const CountedLabels mask(classes), other_mask(classes, false);
  const PixelCrossEntropy loss{.weights = {0.3, 0.7, 1.9}, .ignore = -1}, heavier{.weights = {0.3, 0.7, 2}, .ignore = -1};
  CHECK(pixels_for(mask, classes, loss) == 70);
  CHECK(pixels_for(mask, classes, loss) == 0);
  CHECK(pixels_for(mask, classes, heavier) == 0);
  CHECK(pixels_for(mask, classes, loss, {1, 3, 7, 5}) == 35);
  for (int i = 0; i < 2; ++i) CHECK(pixels_for(other_mask, classes, loss) == 70);
}
TEST_CASE("class balance and totals of losses come from one pass over constant labels, which reads each row once") {
  const Maps maps(output);
  Index reads[2][7];
  const auto counted = [&](bool constant) {
    CountedLabels rows(maps.classes(), constant);
    std::fill_n(*reads, 14, 0);
    rows.before = [&](Index image, Range range) {
      for (Index row = range.begin; row < range.end; ++row) ++reads[image][row];
    };
    return rows;
  };
  const auto each_row_read = [&](Index times) { return std::all_of(*reads, *reads + 14, [&](Index count) { return count == times; }); };
  const CountedLabels rows = counted(true);
  const ClassBalance balance = class_balance(rows, 3, -1);
  CHECK(each_row_read(1));
  CHECK(balance == class_balance(maps.classes(), 3, -1));
  CHECK(balance.images == 2);
  const PixelCrossEntropy loss{.weights = balance.weights(), .ignore = -1}, alike{.ignore = -1};
  LabelWindow window;
  const auto total = [&](const CountedLabels& of, const auto& a_loss) { return window.total(a_loss, window.over(Labels::from_rows(of), 3), output); };
  CHECK(total(rows, loss) == loss.total(maps.classes(), output));
  CHECK(total(rows, alike) == static_cast<double>(balance.pixels()));
  CHECK(total(rows, DiceLoss{.ignore = -1}) == 2);
  CHECK(class_balance(rows, 3, -1) == balance);
  CHECK(each_row_read(1));
  CHECK(rows.expected == rows.was_read);   // nothing was asked for in vain
  // The loss may come first. Other classes, or another label that does not count, are another question.
  const CountedLabels later = counted(true);
  CHECK(total(later, loss) == loss.total(maps.classes(), output));
  CHECK(class_balance(later, 3, -1) == balance);
  CHECK(each_row_read(1));
  CHECK(class_balance(later, 4, -1).counts.size() == 4);
  CHECK(each_row_read(2));
  CHECK(error_of([&] { class_balance(later, 4); }).starts_with("lrcnn: label -1 of image "));
  // Labels that may change are read again.
  const CountedLabels changing = counted(false);
  CHECK(class_balance(changing, 3, -1) == balance);
  CHECK(total(changing, loss) == loss.total(maps.classes(), output));
  CHECK(each_row_read(2));
}
TEST_CASE("errors of labels by rows") {
  const Maps maps(output);
  const CountedLabels rows(maps.classes());
  LabelWindow window;
  const Labels unread = Labels::from_rows(rows), read = window.over(unread, 3);
  CHECK(error_of([&] { static_cast<void>(unread.classes(0, 0)); }) ==
        "lrcnn: labels by rows are asked for a row that nobody has read; an executor reads the rows of a step into memory before it calls the loss; "
        "run them with an executor or a trainer, or read the LabelRows yourself");
  CHECK(error_of([&] {
          static_cast<void>(read.classes(0, 0));
        }).starts_with("lrcnn: the labels of image 0, row 0 are asked for where no images, no rows are in memory; "));
  window.read(read, {1, 2}, {2, 5});
  CHECK(read.classes(1, 2)[4] == maps.classes().classes(1, 2)[4]);
  const std::string rule =
      "; of labels by rows a loss has those of the rows that it is given; let the loss use the labels of its own rows alone, or give it labels in "
      "memory";
  for (const auto& [image, row] : std::vector<std::pair<Index, Index>>{{1, 1}, {1, 5}, {0, 3}, {2, 3}})
    CHECK(error_of([&, i = image, r = row] { static_cast<void>(read.classes(i, r)); }) ==
          "lrcnn: the labels of image " + std::to_string(image) + ", row " + std::to_string(row) +
              " are asked for where images 1 to 1, rows 2 to 4 are in memory" + rule);
  CHECK(error_of([&] { window.with_all_rows(read, [&] { return read.classes(0, 7); }); }) ==
        "lrcnn: the labels of image 0, row 7 are asked for where images 0 to 1 have rows 0 to 6" + rule);
  // A pass that an error ends leaves no way to read on.
  CHECK(error_of([&] { static_cast<void>(read.classes(0, 6)); }).find("are in memory") != std::string::npos);
  // The place of a wrong label is that in the whole mask.
  CHECK(error_of([&] { window.total(PixelCrossEntropy{}, read, output); }) == error_of([&] { PixelCrossEntropy{}.total(maps.classes(), output); }));

  struct Odd final : LabelRows {
    LabelKind kind() const override { return of; }
    Shape shape() const override { return extents; }
    LabelKind of = LabelKind::pixels;
    Shape extents{1, 1, 4, 4};
  } odd;
  std::vector<std::int32_t> classes(16);
  std::vector<float> values(16);
  CHECK(
      error_of([&] {
        odd.classes(0, {0, 4}, classes);
      }) ==
      "lrcnn: labels by rows of 1x1x4x4 have no function classes(); labels whose kind() is pixels give classes(), and those whose kind() is targets "
      "give values(); define the function, or return the other kind");
  CHECK(error_of([&] { odd.values(0, {0, 4}, values); }).starts_with("lrcnn: labels by rows of 1x1x4x4 have no function values(); "));
  const auto made = [&](LabelKind kind, Shape shape) {
    odd.of = kind, odd.extents = shape;
    return error_of([&] { static_cast<void>(Labels::from_rows(odd)); });
  };
  const std::string by_rows =
      "; by rows come masks [N,1,height,width] of classes, or targets [N,channels,height,width]; correct kind() and shape() of the labels";
  CHECK(made(LabelKind::images, {4, 1, 1, 1}) == "lrcnn: labels by rows are one class for each image" + by_rows);
  CHECK(made(LabelKind::pixels, {1, 3, 4, 4}) == "lrcnn: labels by rows are of 1x3x4x4" + by_rows);
  CHECK(made(LabelKind::targets, {1, 3, 0, 4}) == "lrcnn: labels by rows are of 1x3x0x4" + by_rows);
  CHECK(made(LabelKind::targets, {1, 3, 4, 4}) == "no error");
}
TEST_CASE("a label that has changed since the total was found is an error, not a place in memory") {
  Maps maps(output);
  const CountedLabels rows(maps.classes());
  LabelWindow window;
  const Labels read = window.over(Labels::from_rows(rows), 7);
  const PixelCrossEntropy loss{.ignore = -1};
  window.total(loss, read, output);
  maps.mask[7 * 5 + 5 * 4 + 3] = 1'000'000;
  window.read(read, {1, 2}, {0, 7});
  const std::string text = "lrcnn: label 1000000 of image 1, row 4, column 3 is outside the 3 classes; ";
  LossResult result;
  CHECK(error_of([&] { loss(maps.rows(1, {0, 7}), read, 1, View<double>{}, 1.0, result); }).starts_with(text));
  CHECK(error_of([&] { loss.check_again(read, 3, {1, 2}, {0, 7}); }).starts_with(text));
}
