#pragma once
// Tiles of formats that are decoded row by row, from the top down.
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/data/image_file.hpp>
#include <utility>
namespace lrcnn::detail {
/// Rows: reads a file's rows in order. start() begins with the first one, next() is the number of the one that read(to) gives; an interlaced
/// file, if the format has such, has all of its rows in one tile, which read_all(to) gives. kept_bytes() as TileDecoder's.
template <class Rows>
class RowDecoder final : public TileDecoder {
 public:
  /// Errors:  DataError as OpenFile, also if the file is no longer of that identity
  template <class... Options>
  RowDecoder(std::shared_ptr<const ImageFile> image, const FileIdentity& identity, const Options&... options)
      : image_(std::move(image)), file_(image_->info().path, identity), rows_(file_, options...) {}
  void decode(Index tile_row, Index, std::span<std::byte> out) override {
    const ImageInfo& info = image_->info();
    const Range rows = info.rows_of(tile_row);
    const Index line = info.width * info.pixel_bytes();
    const bool begins = !sound_ || rows.begin < rows_.next();
    sound_ = false;   // unless all goes well, it begins anew with the next tile
    if (begins) rows_.start();
    if constexpr (requires { rows_.read_all(out.data()); })
      if (rows_.interlaced()) rows_.read_all(out.data());
    while (rows_.next() < rows.begin) rows_.read(out.data());
    while (rows_.next() < rows.end) rows_.read(out.data() + (rows_.next() - rows.begin) * line);
    file_.check_unchanged();
    sound_ = true;
  }
  Index kept_bytes() const override { return rows_.kept_bytes(); }

 private:
  std::shared_ptr<const ImageFile> image_;
  OpenFile file_;
  Rows rows_;
  bool sound_ = false;
};
}   // namespace lrcnn::detail
