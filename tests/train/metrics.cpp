#include <lrcnn/train/metrics.hpp>
#include <doctest/doctest.h>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
using namespace lrcnn;
TEST_CASE("metrics are means over images, not over batches") {
  Metrics m;
  CHECK(std::isnan(m.loss()));
  CHECK(std::isnan(m.accuracy()));
  m.add(2.0, 3, 1);
  m.add(1.0, 1, 1);   // a last partial batch
  CHECK(m.images == 4);
  CHECK(m.loss() == 1.75);
  CHECK(m.accuracy() == 0.5);
  CHECK(m == Metrics{7, 4, 2, 4});
  m.add(std::numeric_limits<double>::quiet_NaN(), 1, 0);
  CHECK(std::isnan(m.loss()));
  CHECK(m.accuracy() == 0.4);
}
TEST_CASE("a loss with weights is that of one batch of all images, however they are cut into batches") {
  Metrics m;
  m.add(LossResult{.sum = 6, .correct = 3, .count = 10, .total = 2});    // few pixels that weigh much
  m.add(LossResult{.sum = 1, .correct = 20, .count = 30, .total = 5});   // many that weigh little
  CHECK(m.loss() == 1);
  CHECK(m.accuracy() == 23.0 / 40);
  CHECK(m == Metrics{7, 40, 23, 7});
  m.add(LossResult{.count = 9, .total = 0});   // no weights: every image weighs 1
  CHECK(m.loss() == 7.0 / 16);
}
TEST_CASE("metrics that are interrupted and continued are the same bits") {
  Metrics whole, first;
  for (int i = 0; i < 10; ++i) {
    whole.add(0.1 * i, 7, i % 3);
    if (i < 5) first.add(0.1 * i, 7, i % 3);
  }
  Metrics second = first;
  for (int i = 5; i < 10; ++i) second.add(0.1 * i, 7, i % 3);
  CHECK(whole == second);
}
TEST_CASE("the predicted class is the first of the largest scores") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto predict = [](std::vector<float> scores) { return predicted_class<float>(scores); };
  CHECK(predict({1, 3, 2}) == 1);
  CHECK(predict({3, 3, 2}) == 0);
  CHECK(predict({-3, -1, -1}) == 1);
  CHECK(predict({nan, 1, 2}) == -1);
  CHECK(predict({5, 1, nan}) == -1);
  const std::vector<float> scores{0, 1, 1, 0, nan, 0, 2, 1};
  const std::vector<std::uint8_t> labels{1, 1, 0, 0};
  CHECK(count_correct<float, std::uint8_t>(scores, labels) == 2);
  CHECK(count_correct<float, std::uint8_t>({}, {}) == 0);
}
TEST_CASE("a confusion matrix counts") {
  ConfusionMatrix m(3);
  CHECK(std::isnan(m.accuracy()));
  for (int i = 0; i < 10; ++i) m.add(0, 0);
  m.add(0, 2), m.add(0, 2), m.add(1, 1), m.add(2, 1);
  CHECK(m.total() == 14);
  CHECK(m(0, 2) == 2);
  CHECK(m.accuracy() == 11.0 / 14);
  CHECK(m.recall(0) == 10.0 / 12);
  CHECK(m.precision(1) == 0.5);
  CHECK(m.precision(2) == 0);
  CHECK(m.iou(0) == 10.0 / 12);
  CHECK(m.iou(1) == 0.5);
  CHECK(m.iou(2) == 0);
  CHECK(m.mean_iou() == (10.0 / 12 + 0.5) / 3);
  CHECK(std::isnan(ConfusionMatrix(2).iou(1)));
  CHECK(std::isnan(ConfusionMatrix(2).mean_iou()));
  std::ostringstream out;
  out << m;
  CHECK(out.str() ==
        "label \\ predicted\n"
        "     0  1  2\n"
        "  0 10  0  2\n"
        "  1  0  1  0\n"
        "  2  0  1  0\n");
  CHECK_THROWS_WITH_AS(m.add(0, -1),
                       "lrcnn: confusion matrix given label 0 and prediction -1; classes are 0 to 2; check the labels, "
                       "and the scores for NaN",
                       DataError);
  CHECK_THROWS_AS(m.add(3, 0), DataError);
}
TEST_CASE("a confusion matrix has a class") {
  for (const Index classes : {Index{0}, Index{-1}}) CHECK_THROWS_AS(ConfusionMatrix{classes}, DataError);
}
