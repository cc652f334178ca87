#pragma once
// A whole picture of a file as bytes, grey or red, green and blue.
#include <lrcnn/data/samples.hpp>
#include <lrcnn/shape/window.hpp>
#include <cmath>
#include <type_traits>
#include <vector>
namespace lrcnn {
struct ByteImage {
  Pair size{0, 0};
  Index channels = 0;
  std::vector<std::uint8_t> pixels{};   ///< [rows][columns][channels]
  bool had_alpha = false;               ///< which was left out
};
/// Reads all of a picture. Of 1 channel it is grey, of 2 grey with alpha, of 3 red, green and blue, of 4 these with alpha. Alpha is left out,
/// samples of 16 bits become bytes (divided by 257), grey is repeated for 3 channels, and colours become grey by 0.299, 0.587 and 0.114. But for
/// samples of 16 bits that is what Pillow's convert("RGB") and convert("L") do.
/// Pre:     channels is 1 or 3
/// Errors:  DataError if the file has other channels, samples that are neither u8 nor u16, or it and a tile of its
///          file together take more than most_bytes, which may be fewer or more than the file's samples do; as TileDecoder::decode()
inline ByteImage read_byte_image(const ImageFile& file, Index channels, Index most_bytes) {
  const ImageInfo& info = file.info();
  const std::string who = "picture '" + info.path.string() + "'";
  if (info.channels > 4 || (info.sample != SampleType::u8 && info.sample != SampleType::u16))
    throw DataError(error_text(who + " has " + std::to_string(info.channels) + " channels of " + std::string(sample_name(info.sample)),
                               "a picture is grey or RGB, with or without alpha, of 8 or 16 bits", "convert it"));
  if (info.tile_bytes() > most_bytes || info.height > (most_bytes - info.tile_bytes()) / channels / info.width)
    throw DataError(error_text(who + " has " + std::to_string(info.height) + " rows and " + std::to_string(info.width) + " columns, and tiles of " +
                                   std::to_string(info.tile_bytes()) + " bytes",
                               "a picture that is read whole takes at most " + std::to_string(most_bytes) + " bytes with a tile of its file",
                               "make it smaller, or allow more"));
  ByteImage image{{info.height, info.width}, channels, {}, info.channels % 2 == 0};
  image.pixels.resize(static_cast<std::size_t>(info.height * info.width * channels));
  const auto decoder = file.decoder();
  std::vector<std::byte> tile(static_cast<std::size_t>(info.tile_bytes()));
  const auto convert = [&]<class S>(Range rows, Range columns, const S*) {
    const auto byte_of = [](S sample) { return static_cast<std::uint8_t>(sizeof(S) == 1 ? sample : (sample + 128) / 257); };
    const std::byte* from = tile.data();
    for (Index y = rows.begin; y < rows.end; ++y) {
      std::uint8_t* to = image.pixels.data() + (y * info.width + columns.begin) * channels;
      for (Index x = columns.begin; x < columns.end; ++x, to += channels, from += info.pixel_bytes()) {
        S samples[4];
        std::memcpy(samples, from, static_cast<std::size_t>(info.pixel_bytes()));
        const std::uint8_t r = byte_of(samples[0]), g = info.channels > 2 ? byte_of(samples[1]) : r, b = info.channels > 2 ? byte_of(samples[2]) : r;
        if (channels == 1) to[0] = static_cast<std::uint8_t>((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
        else to[0] = r, to[1] = g, to[2] = b;
      }
    }
  };
  for (Index row = 0; row < info.tile_rows(); ++row)
    for (Index column = 0; column < info.tile_columns(); ++column) {
      const Range rows = info.rows_of(row), columns = info.columns_of(column);
      const Index bytes = rows.size() * columns.size() * info.pixel_bytes();
      decoder->decode(row, column, std::span(tile).first(static_cast<std::size_t>(bytes)));
      if (info.sample == SampleType::u8) convert(rows, columns, static_cast<const std::uint8_t*>(nullptr));
      else convert(rows, columns, static_cast<const std::uint16_t*>(nullptr));
    }
  return image;
}
}   // namespace lrcnn
