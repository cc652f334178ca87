#pragma once
// An image in a file, read region by region through a tile cache.
//
//     auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 512_MiB, .threads = 2});
//     const CachedImage slide(open_tiff("slide.tif"), cache);
//     slide.read({{0, 1024}, {0, slide.info().width}}, pixels);
#include <lrcnn/data/tile_cache.hpp>
namespace lrcnn {
/// An image that is read through a cache. Cheap to copy; copies are the same image, and several threads may use them.
class CachedImage {
 public:
  /// Errors:  DataError if the cache has no room for one tile of the image
  CachedImage(std::shared_ptr<const ImageFile> file, std::shared_ptr<TileCache> cache)
      : image_(std::make_shared<TileCache::Image>(std::move(file), std::move(cache))) {
    const Index needed = info().tile_bytes(), bytes = image_->cache->options().bytes;
    if (needed > bytes)
      throw DataError(error_text("image '" + info().path.string() + "' has tiles of " + std::to_string(needed) + " bytes (" + info().format +
                                     "), and the tile cache holds " + std::to_string(bytes),
                                 "a cache has room for at least one tile", "give the cache more bytes, or store the image in smaller tiles"));
  }
  const ImageInfo& info() const { return image_->info(); }
  const std::shared_ptr<TileCache>& cache() const { return image_->cache; }
  /// Calls f(part, pixels, stride) for the part of each tile within a region, from top to bottom and left to right: `pixels` is the first pixel
  /// of the part, [channels] of info().sample each; `stride` is the bytes from one row to the next. They are valid during the call, which may
  /// not read from the same cache.
  /// Errors:  DataError if the region is not within the image; as TileDecoder::decode(); what f throws
  template <class F>
  void for_each_tile(const ImageRegion& region, F f) const {
    check(region);
    if (region.rows.empty() || region.columns.empty()) return;
    const detail::TileBlock block = detail::tiles_of(info(), region);
    for (Index row = block.rows.begin; row < block.rows.end; ++row)
      for (Index column = block.columns.begin; column < block.columns.end; ++column) {
        const Range rows = info().rows_of(row), columns = info().columns_of(column);
        const ImageRegion part{intersect(rows, region.rows), intersect(columns, region.columns)};
        const auto tile = image_->cache->acquire({image_.get(), {row, column}});
        const Index stride = columns.size() * info().pixel_bytes();
        f(part, tile.bytes() + (part.rows.begin - rows.begin) * stride + (part.columns.begin - columns.begin) * info().pixel_bytes(), stride);
      }
    image_->cache->passed(*image_, region);
  }
  /// Copies the pixels of a region.
  /// Shapes:  out [rows][columns][channels], dense, of info().sample
  /// Errors:  as for_each_tile(); DataError if `out` has not the region's bytes
  void read(const ImageRegion& region, std::span<std::byte> out) const {
    const Index line = region.columns.size() * info().pixel_bytes();
    if (static_cast<Index>(out.size()) != region.rows.size() * line)
      throw DataError(
          error_text(to_string(region) + " of image '" + info().path.string() + "' are read into " + std::to_string(out.size()) + " bytes",
                     "they take " + std::to_string(region.rows.size() * line), "give memory of that size"));
    for_each_tile(region, [&](const ImageRegion& part, const std::byte* pixels, Index stride) {
      const auto bytes = static_cast<std::size_t>(part.columns.size() * info().pixel_bytes());
      std::byte* to = out.data() + (part.rows.begin - region.rows.begin) * line + (part.columns.begin - region.columns.begin) * info().pixel_bytes();
      for (Index y = 0; y < part.rows.size(); ++y, to += line, pixels += stride) std::memcpy(to, pixels, bytes);
    });
  }
  /// Says which regions will be read, in this order, so that they are decoded ahead, and kept if they are read again. Replaces what was expected
  /// before; it is advice, and other regions may be read meanwhile. Empty regions are left out.
  /// Errors:  DataError if a region is not within the image
  void expect(std::span<const ImageRegion> regions) const {
    std::vector<ImageRegion> there;
    for (const ImageRegion& region : regions) {
      check(region);
      if (!region.rows.empty() && !region.columns.empty()) there.push_back(region);
    }
    image_->cache->expect(*image_, there);
  }

 private:
  void check(const ImageRegion& region) const {
    if (whole(info()).contains(region)) return;
    throw DataError(error_text(to_string(region) + " of image '" + info().path.string() + "' are asked for",
                               "it has " + std::to_string(info().height) + " rows and " + std::to_string(info().width) + " columns",
                               "ask for pixels within the image"));
  }
  std::shared_ptr<TileCache::Image> image_;
};
}   // namespace lrcnn
