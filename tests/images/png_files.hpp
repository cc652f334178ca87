#pragma once
// Small PNG files of every kind, made with libpng.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <vector>
#include <png.h>
namespace lrcnn::test {
struct PngKind {
  int bits = 8, colours = PNG_COLOR_TYPE_GRAY;
  bool interlaced = false, transparency = false;
};
/// Writes rows as they are packed in the file: bits and channels of the kind, 16 bits big-endian.
inline void write_png(const std::filesystem::path& path, int height, int width, const PngKind& kind, std::vector<std::vector<std::uint8_t>> rows,
                      const std::vector<png_color>& palette = {}) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (!file) throw std::runtime_error("test file cannot be written");
  png_structp encoder = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);   // prints and aborts
  png_infop info = png_create_info_struct(encoder);
  png_init_io(encoder, file);
  png_set_IHDR(encoder, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.bits, kind.colours,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!palette.empty()) png_set_PLTE(encoder, info, palette.data(), static_cast<int>(palette.size()));
  if (kind.transparency) {
    png_byte alpha[2] = {0, 128};
    png_color_16 key{};
    png_set_tRNS(encoder, info, alpha, 2, &key);
  }
  png_write_info(encoder, info);
  std::vector<png_bytep> pointers;
  for (auto& row : rows) pointers.push_back(row.data());
  png_write_image(encoder, pointers.data());
  png_write_end(encoder, info);
  png_destroy_write_struct(&encoder, &info);
  std::fclose(file);
}
}   // namespace lrcnn::test
