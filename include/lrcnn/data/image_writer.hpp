#pragma once
// An image that is written from top to bottom. One format is one class (data/tiff_writer.hpp, data/png_writer.hpp, data/npy.hpp);
// data/image_sink.hpp gives a network's output to any of them.
#include <lrcnn/data/image_file.hpp>
namespace lrcnn {
/// Takes the rows of one image, in order. What was there under that name before stays until finish() returns, and for good if it is never called.
class ImageWriter {
 public:
  virtual ~ImageWriter() = default;
  /// Path, extents and type of samples; how the file will be cut into tiles.
  virtual const ImageInfo& info() const = 0;
  /// Says, before the first row, that samples are numbers of classes: a writer that also makes smaller versions takes no means of them.
  virtual void holds_classes() {}
  /// The next rows.
  /// Shapes:  rows [any number][width][channels], dense, in the machine's byte order
  /// Errors:  DataError if these are no whole rows or more rows than are left, or the file cannot be written
  virtual void write(std::span<const std::byte> rows) = 0;
  /// Completes the file and gives it its name. Errors: DataError if rows are missing, or the file cannot be completed or renamed.
  virtual void finish() = 0;
};
}   // namespace lrcnn
