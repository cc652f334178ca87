// Writes small photographs for the tests of programs that read them: write_photograph FILE HEIGHT WIDTH CHANNELS
// FILE ends with .jpg, or with the format of another kind of image.
#include <lrcnn/data/images.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <jpeglib.h>
namespace {
/// Rings around a point, other colours for other rings.
std::vector<std::uint8_t> row_of(int y, int width, int channels) {
  std::vector<std::uint8_t> row(static_cast<std::size_t>(width * channels));
  for (int x = 0; x < width; ++x)
    for (int c = 0; c < channels; ++c)
      row[static_cast<std::size_t>(x * channels + c)] = static_cast<std::uint8_t>(((x - 40) * (x - 40) + (y - 30) * (y - 30)) / (8 + 5 * c));
  return row;
}
int write_jpeg(const char* path, int height, int width, int channels) {
  std::FILE* file = std::fopen(path, "wb");
  if (!file) return 1;
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);   // prints and exits
  jpeg_create_compress(&encoder);
  jpeg_stdio_dest(&encoder, file);
  encoder.image_height = static_cast<JDIMENSION>(height), encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.input_components = channels, encoder.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  for (int y = 0; y < height; ++y) {
    auto row = row_of(y, width, channels);
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&encoder, &rows, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  return std::fclose(file) == 0 ? 0 : 1;
}
}   // namespace
int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int height = std::atoi(argv[2]), width = std::atoi(argv[3]), channels = std::atoi(argv[4]);
  if (std::string(argv[1]).ends_with(".jpg")) return write_jpeg(argv[1], height, width, channels);
  const auto writer = lrcnn::create_image(argv[1], height, width, channels, lrcnn::SampleType::u8);
  for (int y = 0; y < height; ++y) {
    const auto row = row_of(y, width, channels);
    writer->write(std::as_bytes(std::span(row)));
  }
  writer->finish();
  return 0;
}
