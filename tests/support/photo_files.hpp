#pragma once
// Small pictures of known colours in files: JPEG by libjpeg, PNG and TIFF by the library's writers.
#include <lrcnn/data/png_writer.hpp>
#include <lrcnn/data/tiff_writer.hpp>
#include <cstdio>
#include <stdexcept>
#include <vector>
#include <jpeglib.h>
namespace lrcnn::test {
/// Writes a JPEG of 1 or 3 channels, [height][width][channels].
inline void write_jpeg(const std::filesystem::path& path, Index height, Index width, Index channels, const std::vector<std::uint8_t>& pixels) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) throw std::runtime_error("cannot write " + path.string());
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  jpeg_stdio_dest(&encoder, file);
  encoder.image_height = static_cast<JDIMENSION>(height), encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.input_components = static_cast<int>(channels), encoder.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, 95, TRUE);
  jpeg_start_compress(&encoder, TRUE);
  for (Index y = 0; y < height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data() + y * width * channels);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::fclose(file);
}
/// Writes a picture in the format that the name ends with: .jpg, .png or .tif.
template <class S>
void write_photo(const std::filesystem::path& path, Index height, Index width, Index channels, const std::vector<S>& pixels) {
  const SampleType sample = sizeof(S) == 1 ? SampleType::u8 : SampleType::u16;
  const auto bytes = std::as_bytes(std::span(pixels));
  const auto write = [&](auto&& writer) {
    writer.write(bytes);
    writer.finish();
  };
  std::filesystem::create_directories(path.parent_path());
  if (path.extension() == ".png") {
    write(PngWriter(path, height, width, channels, sample));
  } else if (path.extension() == ".tif") {
    write(TiffWriter(path, height, width, channels, sample, TiffWriterOptions{.tile_height = 16, .tile_width = 32}));
  } else if constexpr (sizeof(S) == 1) {
    write_jpeg(path, height, width, channels, pixels);
  }
}
}   // namespace lrcnn::test
