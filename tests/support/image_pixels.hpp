#pragma once
// All pixels of an image in a file, for tests: tile by tile in some order.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/data/image_file.hpp>
#include <vector>
namespace lrcnn::testing {
enum class TileOrder { forward, backward, shuffled };
/// [height][width][channels] of the image's samples. One decoder decodes all tiles.
inline std::vector<std::byte> pixels_of(const ImageFile& image, TileOrder order = TileOrder::forward, std::uint64_t seed = 0) {
  const ImageInfo& info = image.info();
  const Index tiles = info.tile_rows() * info.tile_columns(), line = info.width * info.pixel_bytes();
  std::vector<Index> places;
  for (Index i = 0; i < tiles; ++i) places.push_back(order == TileOrder::backward ? tiles - 1 - i : i);
  if (order == TileOrder::shuffled)
    for (Index i = tiles - 1; i > 0; --i)
      std::swap(item(places, i),
                item(places, static_cast<Index>(Random(seed).below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i) + 1))));
  std::vector<std::byte> all(static_cast<std::size_t>(info.height * line)), tile;
  const auto decoder = image.decoder();
  for (const Index place : places) {
    const Range rows = info.rows_of(place / info.tile_columns()), columns = info.columns_of(place % info.tile_columns());
    const auto bytes = static_cast<std::size_t>(columns.size() * info.pixel_bytes());
    tile.assign(static_cast<std::size_t>(rows.size()) * bytes, std::byte{0xee});
    decoder->decode(place / info.tile_columns(), place % info.tile_columns(), tile);
    for (Index y = 0; y < rows.size(); ++y)
      std::memcpy(all.data() + (rows.begin + y) * line + columns.begin * info.pixel_bytes(), tile.data() + static_cast<std::size_t>(y) * bytes,
                  bytes);
  }
  return all;
}
}   // namespace lrcnn::testing
