// JPEG files, baseline and progressive.
#include "fuzz.hpp"
#include <lrcnn/data/jpeg.hpp>
namespace {
/// libjpeg writes it into memory, which the caller frees.
std::vector<std::uint8_t> encoded(int height, int width, int channels, bool progressive, int restart_rows) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &bytes, &size);
  encoder.image_height = static_cast<JDIMENSION>(height), encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.input_components = channels, encoder.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  if (progressive) jpeg_simple_progression(&encoder);
  encoder.restart_in_rows = restart_rows;
  jpeg_start_compress(&encoder, TRUE);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(width * channels));
  for (int y = 0; y < height; ++y) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::uint8_t>(i * i / 40 + static_cast<std::size_t>(y * y) / 20);
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&encoder, &rows, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::vector<std::uint8_t> result(bytes, bytes + size);
  std::free(bytes);
  return result;
}
}   // namespace
void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) {
  write_file(folder / "grey", encoded(70, 40, 1, false, 0));
  write_file(folder / "colour", encoded(70, 40, 3, false, 0));
  write_file(folder / "restarts", encoded(70, 40, 3, false, 1));
  write_file(folder / "progressive", encoded(40, 40, 3, true, 0));
  write_file(folder / "cmyk", encoded(8, 8, 4, false, 0));
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
