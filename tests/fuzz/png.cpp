// PNG files, of colours and of palettes' indices.
#include "fuzz.hpp"
#include <lrcnn/data/png.hpp>
#include <lrcnn/data/png_writer.hpp>
void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) {
  for (Index channels = 1; channels <= 4; ++channels)
    for (const SampleType sample : {SampleType::u8, SampleType::u16}) {
      PngWriter writer(folder / (std::to_string(channels) + std::string(sample_name(sample))), 70, 20, channels, sample);
      std::vector<std::byte> rows(static_cast<std::size_t>(70 * 20 * channels * sample_bytes(sample)));
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i / 7);
      writer.write(rows);
      writer.finish();
    }
  // A palette of two colours; and 16 rows of 16 pixels, interlaced. Both by hand: PngWriter writes neither.
  const std::vector<std::uint8_t> palette{137, 80,  78,  71, 13, 10,  26,  10,  0,   0,  0,  13,  73,  72, 68, 82,  0,  0,   0, 8, 0,   0, 0,   2,
                                          1,   3,   0,   0,  0,  171, 179, 226, 221, 0,  0,  0,   6,   80, 76, 84,  69, 255, 0, 0, 0,   0, 255, 108,
                                          161, 253, 142, 0,  0,  0,   12,  73,  68,  65, 84, 120, 156, 99, 88, 197, 16, 10,  0, 2, 155, 1, 0};
  write_file(folder / "palette", palette);
  if (const auto mask = real_file("large/plant-2454x2056-mask.png"); !mask.empty()) write_file(folder / "mask", mask);
}
void lrcnn::fuzz::read(std::span<const std::uint8_t> bytes) {
  const MemoryFile file(bytes);
  for (const PngPalette palette : {PngPalette::colours, PngPalette::indices}) {
    const auto image = open_png(file.path(), {.palette = palette});
    const ImageInfo& info = image->info();
    if (info.height < 1 || info.width < 1 || info.channels < 1 || info.channels > 4) std::abort();
    if (info.tile_bytes() > 16_MiB) continue;
    const auto decoder = image->decoder();
    std::vector<std::byte> tile;
    for (const Index row : {std::min<Index>(1, info.tile_rows() - 1), Index{0}}) {
      tile.resize(static_cast<std::size_t>(info.rows_of(row).size() * info.width * info.pixel_bytes()));
      decoder->decode(row, 0, tile);
    }
  }
}
