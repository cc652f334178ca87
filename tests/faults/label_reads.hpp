#pragma once
// Labels by rows, compared with the same labels in memory.
#include "support/counted_labels.hpp"
#include <lrcnn/layer/pixel_loss.hpp>
#include <string>
namespace lrcnn::testing {
/// What is wrong with how labels are read; empty if nothing is.
inline std::string wrong_label_reads() {
  constexpr Shape output{3, 2, 11, 5};
  std::vector<std::int32_t> mask;
  std::vector<float> numbers;
  for (Index e = 0; e < 3 * 11 * 5; ++e) mask.push_back(static_cast<std::int32_t>(e * 7 % 13 % 3));
  for (Index e = 0; e < output.count(); ++e) numbers.push_back(static_cast<float>(e));
  const Labels classes = Labels::of_pixels(mask, 11, 5), targets = Labels::of_targets(numbers, 2, 11, 5);
  const CountedLabels classes_by_rows(classes), targets_by_rows(targets);
  LabelWindow window;
  for (const CountedLabels* rows : {&classes_by_rows, &targets_by_rows}) {
    const Labels read = window.over(Labels::from_rows(*rows), 2 * 4);
    window.read(read, {1, 3}, {4, 8});
    for (Index i = 1; i < 3; ++i)
      for (Index y = 4; y < 8; ++y)
        for (Index x = 0; x < 5; ++x)
          if (rows == &classes_by_rows ? read.classes(i, y)[x] != item(mask, (i * 11 + y) * 5 + x)
                                       : read.values(i, 1, y)[x] != item(numbers, ((2 * i + 1) * 11 + y) * 5 + x))
            return "a window has labels of another place";
  }
  const PixelCrossEntropy loss{.weights = {1, 2}, .ignore = 2}, heavier{.weights = {1, 3}, .ignore = 2};
  for (const PixelCrossEntropy& of : {loss, loss, heavier})
    if (window.total(of, window.over(Labels::from_rows(classes_by_rows), 3), output) != of.total(classes, output)) return "a total is another's";
  std::vector<std::int32_t> now = mask;
  const CountedLabels changing(Labels::of_pixels(now, 11, 5), false);
  for (int i = 0; i < 2; ++i, now[0] = now[0] == 0 ? 1 : 0)
    if (window.total(loss, window.over(Labels::from_rows(changing), 3), output) != loss.total(Labels::of_pixels(now, 11, 5), output))
      return "the total is that of labels as they were";
  return "";
}
}   // namespace lrcnn::testing
