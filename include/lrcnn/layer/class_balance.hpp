#pragma once
// One pass over masks that counts the pixels of each class: class weights come from it, and what losses of classes are divided by.
#include <lrcnn/layer/labels.hpp>
namespace lrcnn {
namespace detail {
inline std::string pixel_place(Index image, Index row, Index column) {
  return " of image " + std::to_string(image) + ", row " + std::to_string(row) + ", column " + std::to_string(column);
}
struct ClassCounter {
  /// Counts the pixels of each class in the first `images` masks; returns those of no class. Of constant labels by rows it keeps what it has
  /// found, so that whoever counts the same classes again reads nothing.
  /// Pre:     labels are masks; labels by rows come from LabelWindow::over()
  /// Post:    counts has an entry for each class
  /// Errors:  what wrong(label, image, row, column) throws of a label that is no class and not ignored; what LabelRows throws
  template <class Wrong>
  static LabelRows::Others count(const Labels& labels, Index images, std::optional<std::int32_t> ignore, std::span<Index> counts, Wrong wrong) {
    if (labels.rows())
      if (const auto known = labels.rows()->known_counts(images, ignore, counts)) return *known;
    std::fill(counts.begin(), counts.end(), 0);
    LabelRows::Others others;
    for (Index i = 0; i < images; ++i) {
      const Index before = others.ignored;
      for (Index row = 0; row < labels.height(); ++row) {
        const std::int32_t* label = labels.classes(i, row);
        for (Index x = 0; x < labels.width(); ++x)
          if (ignore && label[x] == *ignore) ++others.ignored;
          else if (label[x] >= 0 && label[x] < static_cast<Index>(counts.size())) ++item(counts, label[x]);
          else wrong(label[x], i, row, x);
      }
      others.images += others.ignored - before < labels.height() * labels.width();
    }
    if (labels.rows()) labels.rows()->keep_counts(images, ignore, counts, others);
    return others;
  }
};
/// f(a span for the pixels of each class), which takes memory for more than 256 classes alone: steps do not allocate.
template <class F>
double with_counts(Index classes, F f) {
  std::array<Index, 256> few;
  if (classes <= static_cast<Index>(few.size())) return f(std::span(few).first(static_cast<std::size_t>(classes)));
  std::vector<Index> many(static_cast<std::size_t>(classes));
  return f(std::span(many));
}
}   // namespace detail
/// Counts the pixels of masks. Labels by rows are read once, some rows at a time (256 KiB of labels, or a row). If they are constant, what was
/// found is kept: the total of a loss over the same classes that ignores the same label takes no pass of its own, nor does a second call.
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
    const auto others =
        detail::ClassCounter::count(labels, labels.size(), ignore, balance.counts, [&](std::int32_t label, Index image, Index row, Index column) {
          throw DataError(error_text(
              "label " + std::to_string(label) + detail::pixel_place(image, row, column) + " is outside the " + std::to_string(classes) + " classes",
              "labels are 0 .. classes - 1, or the one to ignore", "correct the mask, or say which label is ignored"));
        });
    balance.ignored = others.ignored, balance.images = others.images;
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
