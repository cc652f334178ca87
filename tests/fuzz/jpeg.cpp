// JPEG files, baseline and progressive.
#include "images/jpeg_files.hpp"
#include "fuzz.hpp"
#include <lrcnn/data/jpeg.hpp>
void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) {
  test::write_jpeg(folder / "grey", 70, 40, {.channels = 1});
  test::write_jpeg(folder / "colour", 70, 40, {});
  test::write_jpeg(folder / "restarts", 70, 40, {.restart_rows = 1});
  test::write_jpeg(folder / "progressive", 40, 40, {.progressive = true});
  test::write_jpeg(folder / "cmyk", 8, 8, {.channels = 4});
}
void lrcnn::fuzz::read(std::span<const std::uint8_t> bytes) {
  const MemoryFile file(bytes);
  const auto image = open_jpeg(file.path(), {.most_bytes = 16_MiB});
  const ImageInfo& info = image->info();
  if (info.height < 1 || info.width < 1 || (info.channels != 1 && info.channels != 3)) std::abort();
  const auto decoder = image->decoder();
  std::vector<std::byte> tile;
  for (const Index row : {std::min<Index>(1, info.tile_rows() - 1), Index{0}}) {
    tile.resize(static_cast<std::size_t>(info.rows_of(row).size() * info.width * info.pixel_bytes()));
    decoder->decode(row, 0, tile);
  }
}
