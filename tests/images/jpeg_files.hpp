#pragma once
// Small JPEG files of every kind, made with libjpeg, and all of a file decoded by libjpeg as its users do it.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <vector>
#include <jpeglib.h>
namespace lrcnn::test {
struct JpegKind {
  int channels = 3;
  bool progressive = false;
  int restart_rows = 0;   ///< rows of blocks between restart markers
  int quality = 90;
};
/// A smooth picture with edges.
inline void write_jpeg(const std::filesystem::path& path, int height, int width, const JpegKind& kind) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (!file) throw std::runtime_error("test file cannot be written");
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);   // prints and exits
  jpeg_create_compress(&encoder);
  jpeg_stdio_dest(&encoder, file);
  encoder.image_height = static_cast<JDIMENSION>(height), encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.input_components = kind.channels;
  encoder.in_color_space = kind.channels == 1 ? JCS_GRAYSCALE : kind.channels == 3 ? JCS_RGB : kind.channels == 4 ? JCS_CMYK : JCS_UNKNOWN;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, kind.quality, TRUE);
  if (kind.progressive) jpeg_simple_progression(&encoder);
  encoder.restart_in_rows = kind.restart_rows;
  jpeg_start_compress(&encoder, TRUE);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(width * kind.channels));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < kind.channels; ++c)
        row[static_cast<std::size_t>(x * kind.channels + c)] = static_cast<std::uint8_t>(((x - 40) * (x - 40) + (y - 30) * (y - 30)) / (8 + 5 * c));
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&encoder, &rows, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::fclose(file);
}
/// A file with twenty bytes that belong to nothing before its first such marker. Pre: it has one.
inline std::vector<std::uint8_t> padded_jpeg(std::vector<std::uint8_t> file, std::uint8_t marker) {
  for (std::size_t i = 2; i + 1 < file.size(); ++i)
    if (file[i] == 0xff && file[i + 1] == marker) {
      file.insert(file.begin() + static_cast<std::ptrdiff_t>(i), 20, std::uint8_t{17});
      return file;
    }
  throw std::runtime_error("no such marker");
}
/// Pre: libjpeg decodes the file, perhaps with warnings, which are counted. [height][width][channels], grey or RGB.
inline std::vector<std::byte> decode_jpeg(const std::filesystem::path& path, long* warnings = nullptr) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (!file) throw std::runtime_error("test file cannot be read");
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors;
  decoder.err = jpeg_std_error(&errors);
  errors.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&decoder);
  jpeg_stdio_src(&decoder, file);
  jpeg_read_header(&decoder, TRUE);
  jpeg_start_decompress(&decoder);
  const std::size_t line = decoder.output_width * static_cast<std::size_t>(decoder.output_components);
  std::vector<std::byte> pixels(line * decoder.output_height);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = reinterpret_cast<JSAMPROW>(pixels.data() + decoder.output_scanline * line);
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  if (warnings) *warnings = errors.num_warnings;
  jpeg_destroy_decompress(&decoder);
  std::fclose(file);
  return pixels;
}
}   // namespace lrcnn::test
