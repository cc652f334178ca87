#pragma once
// How many pixels of a mask each class has, and the weights that make up for it.
#include <lrcnn/layer/pixel_loss.hpp>
#include <numeric>
namespace lrcnn {
struct ClassBalance {
  std::vector<Index> counts{};   ///< pixels of each class
  Index ignored = 0;             ///< pixels that do not count
  Index pixels() const { return std::accumulate(counts.begin(), counts.end(), Index{0}); }
  /// Weights for PixelCrossEntropy with which every class that is there weighs the same in all, and a pixel 1 on average: pixels / (classes
  /// that are there * pixels of the class). Of a class that is not there: 0.
  std::vector<double> weights() const {
    const auto there = static_cast<double>(std::count_if(counts.begin(), counts.end(), [](Index count) { return count > 0; }));
    const auto all = static_cast<double>(pixels());
    std::vector<double> result;
    for (const Index count : counts) result.push_back(count > 0 ? all / (there * static_cast<double>(count)) : 0);
    return result;
  }
};
/// Counts the pixels of masks. Labels by rows are read once, some rows at a time (256 KiB of labels, or a row).
/// Errors:  DataError if they are not masks, if there is no class, or if a label is no class and not ignored; what LabelRows throws
inline ClassBalance class_balance(const Labels& masks, Index classes, std::optional<std::int32_t> ignore = {}) {
  if (classes < 1 || masks.kind() != LabelKind::pixels)
    throw DataError(error_text(std::to_string(classes) + " classes are to be counted in " +
                                   (masks.kind() == LabelKind::pixels    ? "masks"
                                    : masks.kind() == LabelKind::targets ? "targets"
                                                                         : "one label for each image"),
                               "masks of classes are counted, at least one class", "give masks, and the classes of the network's output"));
  ClassBalance balance{.counts = std::vector<Index>(static_cast<std::size_t>(classes))};
  const auto count = [&](const Labels& labels) {
    for (Index i = 0; i < labels.size(); ++i)
      for (Index row = 0; row < labels.height(); ++row) {
        const std::int32_t* label = labels.classes(i, row);
        for (Index x = 0; x < labels.width(); ++x)
          if (ignore && label[x] == *ignore) ++balance.ignored;
          else if (label[x] >= 0 && label[x] < classes) ++item(balance.counts, label[x]);
          else
            throw DataError(error_text(
                "label " + std::to_string(label[x]) + detail::pixel_place(i, row, x) + " is outside the " + std::to_string(classes) + " classes",
                "labels are 0 .. classes - 1, or the one to ignore", "correct the mask, or say which label is ignored"));
      }
  };
  if (!masks.rows()) {
    count(masks);
    return balance;
  }
  LabelWindow window;
  const Labels labels = window.over(masks, std::max<Index>(1, (Index{1} << 16) / masks.width()));
  window.with_all_rows(labels, [&] { count(labels); });
  return balance;
}
inline ClassBalance class_balance(const LabelRows& masks, Index classes, std::optional<std::int32_t> ignore = {}) {
  return class_balance(Labels::from_rows(masks), classes, ignore);
}
}   // namespace lrcnn
