#pragma once
// A batch that is on the device already: rows are copied there, and the host is not asked.
#include <lrcnn/backend/cudnn/memory.hpp>
#include <lrcnn/data/row_source.hpp>
namespace lrcnn::cudnn {
/// Images in the device's memory, channels last: [N][H][W][C]. Owned by the caller, who does not change them during a step.
class DeviceSource final : public RowSource<float> {
 public:
  DeviceSource(const float* images, Shape shape) : images_(images), shape_(shape) {}
  Shape shape() const override { return shape_; }
  /// Images [first, first + count), all rows, as a view of device memory.
  View<const float> images(Index first, Index count) const {
    return dense_view(images_ + first * shape_.c * shape_.h * shape_.w, count, shape_.c, {0, shape_.h}, shape_.w, shape_.c);
  }
  /// Errors: DataError always: the host cannot read them.
  void read(Index, const View<float>&) const override {
    throw DataError(error_text("a batch in the memory of a device is given to a backend on the host", "only the backend of that device reads it",
                               "use MemorySource, or Cudnn"));
  }

 private:
  const float* images_;
  Shape shape_;
};
}   // namespace lrcnn::cudnn
