#pragma once
// The labels of a batch: what a loss compares a network's output with.
//
// One class for each image; or, where the output is a map, a mask: one class for each pixel; or targets: a number for each pixel and
// channel. Masks and targets are read row by row, as slabs of the output come. They lie in memory, or come by rows from somewhere else
// (layer/label_rows.hpp): then a window of rows is in memory at a time, and a loss sees no difference.
#include <lrcnn/core/on_exit.hpp>
#include <lrcnn/layer/label_rows.hpp>
#include <algorithm>
#include <utility>
#include <vector>
namespace lrcnn {
class LabelWindow;
/// Labels of some images, in the host's memory or a device's, or by rows. Owned by somebody else, who leaves them alone during a run.
class Labels {
 public:
  Labels() = default;
  /// Labels that the host can read: anything that a span can be made of.
  template <class R>
    requires std::convertible_to<const R&, std::span<const std::int32_t>> Labels(const R& values) : Labels(std::span<const std::int32_t>(values)) {}
    Labels(std::span<const std::int32_t> values) : data_(values.data()), count_(static_cast<Index>(values.size())) { hold_all(); }
    /// `count` labels in the memory of the device that runs the step. Whether they are classes shows when they are used. They are left alone
    /// until the step is done, not only until it is started: see cudnn::DeviceSource.
    static Labels on_device(const std::int32_t* values, Index count) {
      Labels labels(std::span<const std::int32_t>(values, static_cast<std::size_t>(count)));
      labels.on_device_ = true;
      return labels;
    }
    /// One class for each pixel, in memory that the host can read.
    /// Shapes:  classes [N,height,width], row-major
    /// Errors:  DataError if they are no whole number of images
    static Labels of_pixels(std::span<const std::int32_t> classes, Index height, Index width) {
      Labels labels = mask(LabelKind::pixels, static_cast<Index>(classes.size()), 1, height, width);
      labels.data_ = classes.data();
      return labels;
    }
    /// A number for each pixel and channel, in memory that the host can read.
    /// Shapes:  values [N,channels,height,width], row-major
    /// Errors:  as of_pixels()
    static Labels of_targets(std::span<const float> values, Index channels, Index height, Index width) {
      Labels labels = mask(LabelKind::targets, static_cast<Index>(values.size()), channels, height, width);
      labels.values_ = values.data();
      return labels;
    }
    /// Masks or targets that are read when a step needs them, some rows at a time. `rows` outlives the run.
    /// Errors:  DataError if they are neither masks nor targets, or have no pixels
    static Labels from_rows(const LabelRows& rows) {
      const Shape s = rows.shape();
      if (rows.kind() == LabelKind::images || s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1 || (rows.kind() == LabelKind::pixels && s.c != 1))
        throw DataError(error_text(
            std::string("labels by rows are ") + (rows.kind() == LabelKind::images ? "one class for each image" : "of " + to_string(s)),
            "by rows come masks [N,1,height,width] of classes, or targets [N,channels,height,width]", "correct kind() and shape() of the labels"));
      Labels labels;
      labels.kind_ = rows.kind(), labels.count_ = s.n, labels.channels_ = s.c, labels.height_ = s.h, labels.width_ = s.w;
      labels.rows_ = &rows;
      return labels;
    }
    LabelKind kind() const { return kind_; }
    /// Images that they are of.
    Index size() const { return count_; }
    Index channels() const { return channels_; }   ///< 1 but for targets
    Index height() const { return height_; }       ///< 1 for images; so is the width
    Index width() const { return width_; }
    bool on_device() const { return on_device_; }
    /// Where labels by rows come from; null for all others.
    const LabelRows* rows() const { return rows_; }
    /// Pre: !on_device(), kind() is images.
    std::span<const std::int32_t> on_host() const { return {data_, static_cast<std::size_t>(count_)}; }
    /// A row of a mask. Of labels by rows, a loss's call operator is given those of its logits' rows, and total() all: a row that total() has
    /// asked for stays where it is until total() asks for another.
    /// Pre:     kind() is pixels
    /// Errors:  of labels by rows: DataError if a row is not one of those that a loss is given; what LabelRows throws
    const std::int32_t* classes(Index image, Index row) const {
      return rows_ ? window_part(image, row).classes(image, row) : data_ + place(image, 0, row);
    }
    /// A row of targets, as classes(). Pre: kind() is targets.
    const float* values(Index image, Index channel, Index row) const {
      return rows_ ? window_part(image, row).values(image, channel, row) : values_ + place(image, channel, row);
    }

    // ---- what is in memory, for backends -----------------------------------------------------------------------------
    /// Labels in memory: these; of labels by rows, those of the window that a run has read. Pre: labels by rows are those of a run.
    const Labels& in_memory() const;
    /// The first of them, of classes and of targets; null if they are the other kind, or by rows.
    const std::int32_t* data() const { return data_; }
    const float* target_data() const { return values_; }
    /// They are of these images and rows: [images][channels][rows][width].
    Range held_images() const { return held_images_; }
    Range held_rows() const { return held_rows_; }
    Index elements() const { return held_images_.size() * channels_ * held_rows_.size() * width_; }
    /// The most elements that are in memory at a time. Pre: as in_memory().
    Index most_elements() const;

   private:
    friend class LabelWindow;
    static Labels mask(LabelKind kind, Index elements, Index channels, Index height, Index width) {
      if (channels < 1 || height < 1 || width < 1 || elements % (channels * height * width) != 0)
        throw DataError(error_text(std::to_string(elements) + " labels are given as images of " + std::to_string(channels) + "x" +
                                       std::to_string(height) + "x" + std::to_string(width),
                                   "every pixel of every image has its own", "give channels, height and width of the labels themselves"));
      Labels labels;
      labels.kind_ = kind, labels.channels_ = channels, labels.height_ = height, labels.width_ = width;
      labels.count_ = elements / (channels * height * width);
      labels.hold_all();
      return labels;
    }
    void hold_all() { held_images_ = {0, count_}, held_rows_ = {0, height_}; }
    bool holds(Index image, Index row) const { return held_images_.contains({image, image + 1}) && held_rows_.contains({row, row + 1}); }
    Index place(Index image, Index channel, Index row) const {
      return (((image - held_images_.begin) * channels_ + channel) * held_rows_.size() + row - held_rows_.begin) * width_;
    }
    LabelWindow& window() const {
      if (window_) return *window_;
      throw DataError(error_text("labels by rows are asked for a row that nobody has read",
                                 "an executor reads the rows of a step into memory before it calls the loss",
                                 "run them with an executor or a trainer, or read the LabelRows yourself"));
    }
    const Labels& window_part(Index image, Index row) const;
    LabelKind kind_ = LabelKind::images;
    const std::int32_t* data_ = nullptr;
    const float* values_ = nullptr;
    Index count_ = 0, channels_ = 1, height_ = 1, width_ = 1;
    Range held_images_{}, held_rows_{};
    bool on_device_ = false;
    const LabelRows* rows_ = nullptr;
    LabelWindow* window_ = nullptr;   ///< of a run
};
/// Memory for some rows of labels by rows, and which are in it. An executor has one.
class LabelWindow {
 public:
  LabelWindow() = default;
  LabelWindow(const LabelWindow&) = delete;
  LabelWindow& operator=(const LabelWindow&) = delete;
  /// The same labels, with memory for as many rows as [images][rows] = `rows` rows of one image. Allocates if that is more than before.
  /// Pre:     labels.rows()
  Labels over(const Labels& labels, Index rows) {
    rows_ = rows;
    part_ = labels;
    part_.rows_ = nullptr, part_.held_images_ = {}, part_.held_rows_ = {};
    const auto elements = static_cast<std::size_t>(most_elements());
    if (labels.kind() == LabelKind::targets) values_.resize(std::max(values_.size(), elements));
    else classes_.resize(std::max(classes_.size(), elements));
    Labels here = labels;
    here.window_ = this;
    return here;
  }
  /// Reads rows of some images; no others are there then.
  /// Errors:  what the labels throw
  void read(const Labels& labels, Range images, Range rows) {
    part_.held_images_ = part_.held_rows_ = {};   // until all are there
    const Index count = labels.channels() * rows.size() * labels.width();
    for (Index i = 0; i < images.size(); ++i) {
      const auto part = [&](auto& all) { return std::span(all).subspan(static_cast<std::size_t>(i * count), static_cast<std::size_t>(count)); };
      if (labels.kind() == LabelKind::targets) labels.rows()->values(images.begin + i, rows, part(values_));
      else labels.rows()->classes(images.begin + i, rows, part(classes_));
    }
    part_.data_ = labels.kind() == LabelKind::targets ? nullptr : classes_.data();
    part_.values_ = labels.kind() == LabelKind::targets ? values_.data() : nullptr;
    part_.held_images_ = images, part_.held_rows_ = rows;
  }
  /// loss.total(), in one pass over the labels if it goes through the rows of image after image; what is known of constant labels is not
  /// looked for again.
  /// Pre:     labels come from over()
  /// Errors:  as loss.total(); what the labels throw
  template <class L>
  double total(const L& loss, const Labels& labels, const Shape& output) {
    if (const auto known = labels.rows()->known_total(loss, output)) return *known;
    const double total = with_all_rows(labels, [&] { return loss.total(labels, output); });
    labels.rows()->keep_total(loss, output, total);
    return total;
  }
  /// f(), which may ask for any row of the labels, and does so in the order of images and rows.
  template <class F>
  auto with_all_rows(const Labels& labels, F f) {
    const OnExit forget_labels([this] { turned_by_ = nullptr; });
    turned_by_ = &labels, announced_ = false;
    return f();
  }
  /// Bytes of memory that it has taken.
  Index bytes() const { return static_cast<Index>(classes_.size() * sizeof(std::int32_t) + values_.size() * sizeof(float)); }

 private:
  friend class Labels;
  Index most_elements() const { return rows_ * part_.channels_ * part_.width_; }
  Index page_size() const { return std::min(rows_, part_.height_); }
  Range page(Index row) const {
    const Index size = page_size(), first = row / size * size;
    return {first, std::min(first + size, part_.height_)};
  }
  /// Before the first page is read: a pass that already knows all reads none.
  void announce_pages() {
    if (std::exchange(announced_, true)) return;
    std::vector<RowRequest> pages;
    for (Index i = 0; i < part_.count_; ++i)
      for (Index row = 0; row < part_.height_; row += page_size()) pages.push_back({{i, i + 1}, page(row)});
    turned_by_->rows()->expect(pages);
  }
  /// The part in memory, with that row in it.
  const Labels& part_with(Index image, Index row) {
    if (part_.holds(image, row)) return part_;
    const Range all{0, part_.height_};
    if (turned_by_ && image >= 0 && image < part_.count_ && all.contains({row, row + 1})) {
      announce_pages();
      read(*turned_by_, {image, image + 1}, page(row));
      return part_;
    }
    throw DataError(
        error_text("the labels of image " + std::to_string(image) + ", row " + std::to_string(row) + " are asked for where " +
                       (turned_by_ ? first_to_last("images", {0, part_.count_}) + " have " + first_to_last("rows", all)
                                   : first_to_last("images", part_.held_images_) + ", " + first_to_last("rows", part_.held_rows_) + " are in memory"),
                   "of labels by rows a loss has those of the rows that it is given",
                   "let the loss use the labels of its own rows alone, or give it labels in memory"));
  }
  Index rows_ = 0;
  Labels part_{};                         ///< what is there
  std::vector<std::int32_t> classes_{};   ///< the memory
  std::vector<float> values_{};
  const Labels* turned_by_ = nullptr;   ///< labels whose rows are read when they are asked for
  bool announced_ = false;              ///< that they will be
};
inline const Labels& Labels::in_memory() const { return rows_ ? window().part_ : *this; }
inline Index Labels::most_elements() const { return rows_ ? window().most_elements() : elements(); }
inline const Labels& Labels::window_part(Index image, Index row) const { return window().part_with(image, row); }
}   // namespace lrcnn
