#pragma once
// A batch that is on the device already: rows are copied there, and the host is not asked.
#include <lrcnn/backend/cudnn/memory.hpp>
#include <lrcnn/data/row_source.hpp>
namespace lrcnn::cudnn {
/// Images in the device's memory. Owned by the caller, who does not change them before the step is done: before wait(), or in a stream that
/// order_before() of the backend lets wait. Where a stream of the program writes them, order_behind() lets the step wait for that.
class DeviceSource : public RowSource<float> {
 public:
  /// Channels last: [N][H][W][C].
  DeviceSource(const float* images, Shape shape) : DeviceSource(dense_view(images, shape.n, shape.c, {0, shape.h}, shape.w, shape.c)) {}
  /// All rows of all images, NCHW (block 1) or channels last (a block of all channels). Pre: images.row0 == 0
  explicit DeviceSource(const View<const float>& images) : images_(images) {}
  Shape shape() const override { return {images_.n, images_.c, images_.rows, images_.w}; }
  /// Images [first, first + count), all rows, as a view of device memory.
  View<const float> images(Index first, Index count) const {
    View<const float> some = images_;
    some.data += first * images_.stride_n, some.n = count;
    return some;
  }
  /// Errors: DataError always: the host cannot read them.
  void read(Index, const View<float>&) const override {
    throw DataError(error_text("a batch in the memory of a device is given to a backend on the host", "only the backend of that device reads it",
                               "use MemorySource, or Cudnn"));
  }

 private:
  View<const float> images_;
};
}   // namespace lrcnn::cudnn
