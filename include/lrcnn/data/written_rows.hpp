#pragma once
// What every writer of images checks: that rows are whole, not too many, and in the end all there, and that none follow after an error.
#include <lrcnn/data/image_writer.hpp>
namespace lrcnn::detail {
/// Counts the rows that a writer is given.
class WrittenRows {
 public:
  /// How many rows these bytes are. The writer writes them and then says so with written().
  /// Errors:  DataError if they are no whole rows or more than are left; if the file is finished, or an error kept rows from being written
  Index begin(const ImageInfo& info, std::span<const std::byte> bytes) {
    check_usable(info);
    const Index row = info.width * info.pixel_bytes(), count = static_cast<Index>(bytes.size()) / row;
    const std::string who = "image '" + info.path.string() + "' is given ";
    if (count * row != static_cast<Index>(bytes.size()))
      throw DataError(error_text(who + std::to_string(bytes.size()) + " bytes", "a row of it has " + std::to_string(row), "write whole rows"));
    if (count > info.height - rows_)
      throw DataError(error_text(who + std::to_string(count) + " rows behind its first " + std::to_string(rows_),
                                 "it has " + std::to_string(info.height), "write each row once, or create the image with its height"));
    usable_ = false;
    return count;
  }
  void written(Index count) { rows_ += count, usable_ = true; }
  /// Errors:  DataError if rows are missing; as begin()
  void finish(const ImageInfo& info) {
    check_usable(info);
    if (rows_ != info.height)
      throw DataError(error_text(
          "image '" + info.path.string() + "' is to be completed with " + std::to_string(rows_) + " of its " + std::to_string(info.height) + " rows",
          "a file is written whole or not at all", "write all rows first"));
    usable_ = false;
  }

 private:
  void check_usable(const ImageInfo& info) const {
    if (!usable_)
      throw DataError(
          error_text("image '" + info.path.string() + "' is finished, or was given up after an error", "a file is written once", "begin a new one"));
  }
  Index rows_ = 0;
  bool usable_ = true;
};
/// An image that is about to be written, as one tile.
/// Errors:  DataError if an extent or the channels are not positive, or the image has more than 2^62 bytes
inline ImageInfo new_image(const std::filesystem::path& path, Index height, Index width, Index channels, SampleType sample) {
  ImageInfo info;
  info.path = path, info.height = height, info.width = width, info.channels = channels, info.sample = sample;
  info.tile_height = height, info.tile_width = width;
  Index bytes = sample_bytes(info.sample);
  bool fits = info.height > 0 && info.width > 0 && info.channels > 0;
  for (const Index extent : {info.height, info.width, info.channels}) fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (!fits || bytes > (Index{1} << 62))
    throw DataError(error_text("image '" + info.path.string() + "' is to be created with " + std::to_string(info.height) + " rows, " +
                                   std::to_string(info.width) + " columns and " + std::to_string(info.channels) + " channels",
                               "an image has at least one of each, and at most 2^62 bytes", "choose other extents"));
  return info;
}
}   // namespace lrcnn::detail
