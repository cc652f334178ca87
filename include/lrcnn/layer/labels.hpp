#pragma once
// The labels of a batch: what a loss compares a network's output with.
//
// One class for each image; or, where the output is a map, a mask: one class for each pixel; or targets: a number for each pixel and
// channel. Masks and targets are read row by row, as slabs of the output come.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <concepts>
#include <cstdint>
#include <span>
namespace lrcnn {
enum class LabelKind : std::uint8_t { images, pixels, targets };
/// Labels of some images, in the host's memory or a device's. Owned by somebody else, who leaves them alone during a run.
class Labels {
 public:
  Labels() = default;
  /// Labels that the host can read: anything that a span can be made of.
  template <class R>
    requires std::convertible_to<const R&, std::span<const std::int32_t>> Labels(const R& values) : Labels(std::span<const std::int32_t>(values)) {}
    Labels(std::span<const std::int32_t> values) : data_(values.data()), count_(static_cast<Index>(values.size())) {}
    /// `count` labels in the memory of the device that runs the step. Whether they are classes shows when they are used.
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
    LabelKind kind() const { return kind_; }
    const std::int32_t* data() const { return data_; }
    /// Images that they are of.
    Index size() const { return count_; }
    Index channels() const { return channels_; }   ///< 1 but for targets
    Index height() const { return height_; }       ///< 1 for images; so is the width
    Index width() const { return width_; }
    Index elements() const { return count_ * channels_ * height_ * width_; }
    bool on_device() const { return on_device_; }
    /// Pre: !on_device(), kind() is images.
    std::span<const std::int32_t> on_host() const { return {data_, static_cast<std::size_t>(count_)}; }
    /// A row of a mask. Pre: kind() is pixels.
    const std::int32_t* classes(Index image, Index row) const { return data_ + (image * height_ + row) * width_; }
    /// A row of targets. Pre: kind() is targets.
    const float* values(Index image, Index channel, Index row) const { return values_ + ((image * channels_ + channel) * height_ + row) * width_; }

   private:
    static Labels mask(LabelKind kind, Index elements, Index channels, Index height, Index width) {
      if (channels < 1 || height < 1 || width < 1 || elements % (channels * height * width) != 0)
        throw DataError(error_text(std::to_string(elements) + " labels are given as images of " + std::to_string(channels) + "x" +
                                       std::to_string(height) + "x" + std::to_string(width),
                                   "every pixel of every image has its own", "give channels, height and width of the labels themselves"));
      Labels labels;
      labels.kind_ = kind, labels.channels_ = channels, labels.height_ = height, labels.width_ = width;
      labels.count_ = elements / (channels * height * width);
      return labels;
    }
    LabelKind kind_ = LabelKind::images;
    const std::int32_t* data_ = nullptr;
    const float* values_ = nullptr;
    Index count_ = 0, channels_ = 1, height_ = 1, width_ = 1;
    bool on_device_ = false;
};
}   // namespace lrcnn
