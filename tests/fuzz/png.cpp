// PNG files, of colours and of palettes' indices.
#include "images/png_files.hpp"
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
  test::write_png(folder / "palette", 2, 3, {.bits = 2, .colours = PNG_COLOR_TYPE_PALETTE, .transparency = true}, {{0x18}, {0xa0}},
                  {{10, 20, 30}, {40, 50, 60}, {70, 80, 90}});
  test::write_png(folder / "interlaced", 20, 16, {.interlaced = true}, std::vector<std::vector<std::uint8_t>>(20, std::vector<std::uint8_t>(16, 9)));
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
