#pragma once
// A large image in a file, decoded piece by piece.
//
// Formats store an image in pieces that are decoded as a whole: tiles, strips, bands of rows. All of them are called tiles here. An
// ImageFile says how its image is cut into tiles and makes decoders for them; one format is one class (data/tiff.hpp, data/jpeg.hpp, ...).
// What all formats share is elsewhere: data/tile_cache.hpp keeps decoded tiles and decodes ahead, data/image_source.hpp turns pixels into
// the rows that a network reads.
//
// Lifetimes: a file is shared by everything that reads it. A decoder keeps its file alive.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/core/types.hpp>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
namespace lrcnn {
/// The type of the numbers that a file stores for each pixel and channel.
enum class SampleType : std::uint8_t { u8, i8, u16, i16, u32, i32, i64, f16, f32, f64 };
/// Bytes of one sample.
constexpr Index sample_bytes(SampleType type) {
  constexpr std::array<Index, 10> bytes{1, 1, 2, 2, 4, 4, 8, 2, 4, 8};
  return bytes[static_cast<std::size_t>(type)];
}
/// "u8", "f32", ...
constexpr std::string_view sample_name(SampleType type) {
  constexpr std::array<std::string_view, 10> names{"u8", "i8", "u16", "i16", "u32", "i32", "i64", "f16", "f32", "f64"};
  return names[static_cast<std::size_t>(type)];
}
constexpr bool is_floating(SampleType type) { return type == SampleType::f16 || type == SampleType::f32 || type == SampleType::f64; }
/// What is known of an image before anything is decoded.
struct ImageInfo {
  std::filesystem::path path{};
  std::string format{};   ///< for people: "TIFF, tiles of 512x512, JPEG"
  Index height = 0, width = 0, channels = 0;
  SampleType sample = SampleType::u8;
  Index tile_height = 0, tile_width = 0;   ///< of every tile but the last of a row or column, which end with the image
  /// Decoding a tile passes through all tiles above it, so a decoder that is asked for a tile further up begins anew (JPEG, PNG).
  bool in_order = false;
  Index tile_rows() const { return ceil_div(height, tile_height); }
  Index tile_columns() const { return ceil_div(width, tile_width); }
  /// Rows of the image that a row of tiles covers, columns that a column of tiles covers.
  Range rows_of(Index tile_row) const { return {tile_row * tile_height, std::min(height, (tile_row + 1) * tile_height)}; }
  Range columns_of(Index tile_column) const { return {tile_column * tile_width, std::min(width, (tile_column + 1) * tile_width)}; }
  Index pixel_bytes() const { return channels * sample_bytes(sample); }
  /// Bytes of the largest tile after decoding.
  Index tile_bytes() const { return std::min(tile_height, height) * std::min(tile_width, width) * pixel_bytes(); }
};
/// A part of an image: some rows of some columns.
struct ImageRegion {
  Range rows{}, columns{};
  bool contains(const ImageRegion& other) const { return rows.contains(other.rows) && columns.contains(other.columns); }
  friend bool operator==(const ImageRegion&, const ImageRegion&) = default;
};
/// All of an image.
inline ImageRegion whole(const ImageInfo& info) { return {{0, info.height}, {0, info.width}}; }
/// "rows 0 to 9, columns 5 to 7"
inline std::string to_string(const ImageRegion& r) { return first_to_last("rows", r.rows) + ", " + first_to_last("columns", r.columns); }
/// `who` has the channels, for the message: "image 'a.tif'".
/// Errors:  DataError if one of these channels is not there
inline void check_channels(const std::string& who, std::span<const Index> channels, Index there) {
  for (const Index c : channels)
    if (c < 0 || c >= there)
      throw DataError(error_text("channel " + std::to_string(c) + " of " + who + " is to be read",
                                 "it has channels 0 to " + std::to_string(there - 1), "choose channels that are there"));
}
/// Decodes tiles of one image. Used by one thread at a time; several decoders of one file may be used at once.
class TileDecoder {
 public:
  virtual ~TileDecoder() = default;
  /// Writes a tile's pixels that lie within the image.
  /// Shapes:  out [rows][columns][channels], dense, in the machine's byte order; rows_of(tile_row) x columns_of(tile_column)
  /// Pre:     the tile exists; out has exactly its bytes
  /// Errors:  DataError that names the file, the tile (or its rows) and what is wrong; the decoder can go on with other tiles
  virtual void decode(Index tile_row, Index tile_column, std::span<std::byte> out) = 0;
  /// About how many bytes it keeps between two tiles: its own, and those of its library.
  virtual Index kept_bytes() const { return 0; }
};
/// An image in a file: its extents, and decoders for its tiles. Never changes; may be used by several threads.
class ImageFile {
 public:
  virtual ~ImageFile() = default;
  virtual const ImageInfo& info() const = 0;
  /// A decoder for one more thread. Errors: DataError if the file cannot be opened again, or is no longer the one that info() is of.
  virtual std::unique_ptr<TileDecoder> decoder() const = 0;
};
/// A format as a value, so that a program can say which ones it reads: `open_image(path, std::array{tiff_format, png_format})`.
struct ImageFormat {
  std::string_view name{};   ///< "TIFF"
  bool (*recognizes)(std::span<const std::uint8_t> first_bytes) = nullptr;
  std::shared_ptr<const ImageFile> (*open)(const std::filesystem::path&) = nullptr;
  /// Asked as well, where there is one: for formats that share their first bytes with others, or are several files (whole-slide images).
  bool (*recognizes_file)(const std::filesystem::path&) = nullptr;
};
/// How many bytes of a file's beginning tell its format.
inline constexpr std::size_t format_bytes_needed = 64;
/// Opens an image whose format shows in its first bytes; the file's name does not matter. The first format that recognizes it counts.
/// Errors:  DataError as OpenFile; if it cannot be read, is of none of these formats (which are listed), or its format's reader refuses it
inline std::shared_ptr<const ImageFile> open_image(const std::filesystem::path& path, std::span<const ImageFormat> formats) {
  const std::string who = "image '" + path.string() + "'";
  std::array<std::uint8_t, format_bytes_needed> bytes{};
  const Index count = OpenFile(path).read_some(0, std::as_writable_bytes(std::span(bytes)));
  if (count < 0)
    throw DataError(error_text(who + " cannot be read: " + std::strerror(errno), "its first bytes say which format it has", "check its disk"));
  const std::span<const std::uint8_t> first(bytes.data(), static_cast<std::size_t>(count));
  std::string names;
  for (const ImageFormat& format : formats) {
    if (format.recognizes(first) && (!format.recognizes_file || format.recognizes_file(path))) return format.open(path);
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  }
  throw DataError(error_text(who + (first.empty() ? " is empty" : " is of no format that this program reads"),
                             (first.empty() ? "this program reads " : "it reads ") + names,
                             "give a file of one of these formats, or convert it first"));
}
}   // namespace lrcnn
