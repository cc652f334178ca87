#pragma once
// What a loss over pixels reads: logits, and the labels of their pixels.
#include <lrcnn/backend/cudnn/loops/loss.hpp>
#include <lrcnn/layer/labels.hpp>
namespace lrcnn::loops {
/// Labels of a batch, or of some rows of it, in memory that loops reach, laid out as Labels are.
struct PixelLabels {
  const std::int32_t* classes = nullptr;   ///< [images][rows][width]
  const float* values = nullptr;           ///< [images][channels][rows][width], if they are targets
  Index channels = 1, height = 0, width = 0;
  Index first_image = 0, first_row = 0, rows = 0;   ///< that are there
  bool unseen = false;                              ///< one for each image, which nobody may have looked at
};
/// What labels say of the same labels in other memory.
inline PixelLabels pixel_labels(const Labels& labels, const std::int32_t* classes, const float* values) {
  return {classes,
          values,
          labels.channels(),
          labels.height(),
          labels.width(),
          labels.held_images().begin,
          labels.held_rows().begin,
          labels.held_rows().size(),
          labels.kind() == LabelKind::images};
}
/// What a loss reads of all rows of a view.
template <class T>
struct PixelLogits {
  const T* x;
  T* dx;   ///< null if not wanted
  Index x_stride_n, x_stride_row, dx_stride_n, dx_stride_row, row0;
  int channels, width;
  PixelLabels labels;
  double scale;
  /// Labels of a row: of channel k, if they are targets.
  LRCNN_HOST_DEVICE Index row_of_labels(Index image, Index k, Index row) const {
    const Index plane = (image - labels.first_image) * labels.channels + (labels.values != nullptr ? k : 0);
    return (plane * labels.rows + row0 + row - labels.first_row) * labels.width;
  }
};
/// What a loss reads of a view of logits; of their gradient, if it has memory.
template <class T>
PixelLogits<T> pixel_logits(const View<const T>& logits, const PixelLabels& labels, const View<T>& dx, double scale) {
  assert(channels_last(logits) && channels_last(dx));
  return {logits.data,
          dx.data,
          logits.stride_n,
          logits.stride_row(),
          dx.stride_n,
          dx.data ? dx.stride_row() : 0,
          logits.row0,
          static_cast<int>(logits.c),
          static_cast<int>(logits.w),
          labels,
          scale};
}
/// Rows that pixel_loss() takes at once, of a loss that is local to rows.
inline constexpr Index pixel_loss_rows = Index{1} << 14;
/// Bytes of workspace that pixel_loss() needs, whatever it is given.
inline constexpr Index pixel_loss_bytes = pixel_loss_rows * static_cast<Index>(sizeof(detail::LossPart));
}   // namespace lrcnn::loops
