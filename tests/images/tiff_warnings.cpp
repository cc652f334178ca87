// data/tiff.hpp: which of libtiff's warnings leave a tile as it is, and which are the only sign of data that is lost.
#include "images/jpeg_files.hpp"
#include "images/tiff_files.hpp"
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
#include <lrcnn/data/tiff.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
namespace {
using Encoded = std::vector<std::uint8_t>;
Encoded encoded_jpeg(const std::filesystem::path& path, int height, int width, const JpegKind& kind) {
  write_jpeg(path, height, width, kind);
  Encoded bytes;
  for (const std::byte b : testing::file_bytes(path)) bytes.push_back(std::to_integer<std::uint8_t>(b));
  return bytes;
}
/// A file whose tiles or strips are these bytes, as a decoder will find them.
void write_encoded(const std::filesystem::path& path, const ImageInfo& info, const TiffKind& kind, std::vector<Encoded> pieces) {
  TIFF* const tiff = TIFFOpen(path.c_str(), "w");
  REQUIRE(tiff != nullptr);
  set_tiff_kind(tiff, info, kind);
  if (kind.compression == COMPRESSION_JPEG) TIFFSetField(tiff, TIFFTAG_JPEGTABLESMODE, 0);
  for (std::uint32_t i = 0; i < pieces.size(); ++i) {
    const auto size = static_cast<tmsize_t>(pieces[i].size());
    REQUIRE((kind.tiled ? TIFFWriteRawTile(tiff, i, pieces[i].data(), size) : TIFFWriteRawStrip(tiff, i, pieces[i].data(), size)) == size);
  }
  TIFFClose(tiff);
}
/// All pixels, by whole strips or tiles, and, where there are strips, row by row. Both have to be the same.
std::vector<std::byte> decode_each_way(const std::filesystem::path& path) {
  const auto pixels = decode_all(*open_tiff(path));
  CHECK(decode_all(*open_tiff(path, {.strip_bytes = 1})) == pixels);
  return pixels;
}
/// What libtiff says of a damaged image, "no error" if nothing, or the whole error if that speaks of something else.
std::string damage_of(const std::filesystem::path& path, const TiffOptions& options = {}) {
  std::string text = error_of([&] { decode_all(*open_tiff(path, options)); });
  const std::string before = " cannot be decoded: ", behind = "; a tile is whole, or cannot be used; ";
  const auto begin = text.find(before), end = text.find(behind);
  if (text.find("is damaged: rows ") == std::string::npos || begin == std::string::npos || end == std::string::npos) return text;
  return text.substr(begin + before.size(), end - begin - before.size());
}
/// LZW with the bits of a code in the other order, as before TIFF 5.0. Pre: less than 250 bytes, so that all codes have 9 bits.
Encoded old_lzw(std::span<const std::byte> from) {
  std::vector<unsigned> codes{256};
  for (const std::byte b : from) codes.push_back(std::to_integer<unsigned>(b));
  codes.push_back(257);
  Encoded bytes((codes.size() * 9 + 7) / 8);
  for (std::size_t i = 0; i < codes.size() * 9; ++i)
    bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | ((codes[i / 9] >> (i % 9)) & 1) << (i % 8));
  return bytes;
}
}   // namespace
TEST_CASE("tiles and strips of progressive JPEG are read, and damage in them is told") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  for (const int channels : {1, 3}) {
    INFO(channels << " channels");
    const Encoded jpeg = encoded_jpeg(folder / "tile.jpg", 64, 64, {.channels = channels, .progressive = true});
    const auto pixels = decode_jpeg(folder / "tile.jpg");
    const auto twice = draw_image(128, 64, channels, 64, 64);
    TiffKind kind{.compression = COMPRESSION_JPEG,
                  .photometric = static_cast<std::uint16_t>(channels == 1 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_YCBCR),
                  .tile_height = 64,
                  .tile_width = 64};
    auto all = pixels;
    all.insert(all.end(), pixels.begin(), pixels.end());
    for (const bool tiled : {true, false}) {
      kind.tiled = tiled;
      write_encoded(path, twice->info(), kind, {jpeg, jpeg});
      CHECK(decode_each_way(path) == all);
      write_encoded(path, twice->info(), kind, {padded_jpeg(jpeg, 0xd9), jpeg});
      CHECK(decode_each_way(path) == all);
      // The harmless warning comes first, and does not hide the other.
      write_encoded(path, twice->info(), kind, {Encoded(jpeg.begin(), jpeg.end() - static_cast<std::ptrdiff_t>(jpeg.size() / 3)), jpeg});
      CHECK(damage_of(path) == "Premature end of JPEG file");
      CHECK(damage_of(path, {.strip_bytes = 1}) == "Premature end of JPEG file");
    }
  }
}
TEST_CASE("a last strip of JPEG with rows below the image is read, and damage in it is told") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const Encoded jpeg = encoded_jpeg(folder / "strip.jpg", 32, 64, {.channels = 1});
  const auto strip = decode_jpeg(folder / "strip.jpg");
  const auto drawn = draw_image(48, 64, 1, 32, 64);
  const TiffKind kind{.tiled = false, .compression = COMPRESSION_JPEG, .tile_height = 32};
  write_encoded(path, drawn->info(), kind, {jpeg, jpeg});
  auto all = strip;
  all.insert(all.end(), strip.begin(), strip.begin() + std::ptrdiff_t{16} * 64);
  CHECK(decode_each_way(path) == all);
  write_encoded(path, drawn->info(), kind, {jpeg, Encoded(jpeg.begin(), jpeg.end() - static_cast<std::ptrdiff_t>(jpeg.size() / 2))});
  CHECK(damage_of(path) == "Premature end of JPEG file");
  CHECK(damage_of(path, {.strip_bytes = 1}) == "Premature end of JPEG file");
}
TEST_CASE("old-style LZW is read, and damage in it is told") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const auto drawn = draw_image(32, 16, 1, 8, 16);
  const auto strip_of = [&](Index top) { return drawn->pixels({{top, top + 8}, {0, 16}}); };
  const TiffKind kind{.tiled = false, .compression = COMPRESSION_LZW, .tile_height = 8};
  const std::vector<Encoded> strips{old_lzw(strip_of(0)), old_lzw(strip_of(8)), old_lzw(strip_of(16)), old_lzw(strip_of(24))};
  write_encoded(path, drawn->info(), kind, strips);
  CHECK(decode_each_way(path) == drawn->pixels({{0, 32}, {0, 16}}));
  auto cut = strips;
  cut[1].resize(cut[1].size() / 2);
  write_encoded(path, drawn->info(), kind, cut);
  for (const Index strip_bytes : {Index{1}, 16_MiB}) CHECK(damage_of(path, {.strip_bytes = strip_bytes}).starts_with("Not enough data at scanline "));
}
TEST_CASE("LERC of another version than the tag says is read, because its data says the version, too") {
  if (TIFFIsCODECConfigured(COMPRESSION_LERC) != 1) {
    MESSAGE("skipped: this libtiff was built without LERC");
    return;
  }
  const TestFolder folder;
  const auto path = folder / "image.tif", other = folder / "other.tif";
  const auto drawn = draw_image(64, 96, 1, 32, 48, SampleType::f32);
  const TiffKind kind{.compression = COMPRESSION_LERC, .tile_height = 32, .tile_width = 48};
  write_tiff(path, *drawn, kind);
  TIFF *const from = TIFFOpen(path.c_str(), "r"), *const to = TIFFOpen(other.c_str(), "w");
  REQUIRE(from != nullptr);
  REQUIRE(to != nullptr);
  set_tiff_kind(to, drawn->info(), kind);
  int parameters[] = {5, LERC_ADD_COMPRESSION_NONE};   // libtiff writes data of version 4
  TIFFSetField(to, TIFFTAG_LERC_PARAMETERS, 2, parameters);
  for (std::uint32_t tile = 0; tile < 4; ++tile) {
    Encoded bytes(static_cast<std::size_t>(TIFFGetStrileByteCount(from, tile)));
    const auto size = static_cast<tmsize_t>(bytes.size());
    REQUIRE(TIFFReadRawTile(from, tile, bytes.data(), size) == size);
    REQUIRE(TIFFWriteRawTile(to, tile, bytes.data(), size) == size);
  }
  TIFFClose(from);
  TIFFClose(to);
  CHECK(decode_all(*open_tiff(other)) == decode_all(*open_tiff(path)));
  CHECK(decode_all(*open_tiff(path)) == drawn->pixels({{0, 64}, {0, 96}}));
}
TEST_CASE("tags that libtiff does not know are no damage") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const auto drawn = draw_image(32, 48, 1, 32, 48);
  write_tiff(path, *drawn, {});
  auto bytes = testing::file_bytes(path);
  const auto directory = std::to_integer<std::size_t>(bytes[4]) + 256 * std::to_integer<std::size_t>(bytes[5]);
  const auto entries = std::to_integer<std::size_t>(bytes[directory]);
  const auto last = directory + 2 + 12 * (entries - 1);   // the kind of samples, which is as if it were not there
  REQUIRE(std::to_integer<int>(bytes[last]) + 256 * std::to_integer<int>(bytes[last + 1]) == TIFFTAG_SAMPLEFORMAT);
  bytes[last] = std::byte{0x60}, bytes[last + 1] = std::byte{0xea};   // 60000
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  CHECK(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
  CHECK(decode_all(*open_tiff(path)) == drawn->pixels({{0, 32}, {0, 48}}));
}
TEST_CASE("warnings of decoders that lose data are damage") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  SUBCASE("a JPEG that lacks rows or columns of its tile") {
    const TiffKind kind{.compression = COMPRESSION_JPEG, .tile_height = 64, .tile_width = 64};
    write_encoded(path, draw_image(64, 64, 1, 64, 64)->info(), kind, {encoded_jpeg(folder / "t.jpg", 48, 64, {.channels = 1, .progressive = true})});
    CHECK(damage_of(path) == "Improper JPEG strip/tile size, expected 64x64, got 64x48");
    write_encoded(path, draw_image(64, 64, 1, 64, 64)->info(), kind, {encoded_jpeg(folder / "t.jpg", 64, 48, {.channels = 1})});
    CHECK(damage_of(path) == "Improper JPEG strip/tile size, expected 64x64, got 48x64");
  }
  SUBCASE("PackBits with a run that is longer than what is left") {   // by rows, what is dropped belongs to the next row
    const TiffKind kind{.tiled = false, .compression = COMPRESSION_PACKBITS, .tile_height = 8};
    write_encoded(path, draw_image(8, 8, 1, 8, 8)->info(), kind, {{193, 7, 255, 9}});   // 64 times 7
    CHECK(damage_of(path) == "no error");
    write_encoded(path, draw_image(8, 8, 1, 8, 8)->info(), kind, {{254, 5, 193, 7}});   // 3 + 64 bytes
    CHECK(damage_of(path) == "Discarding 3 bytes to avoid buffer overrun");
    CHECK(damage_of(path, {.strip_bytes = 1}) == "Discarding 59 bytes to avoid buffer overrun");
  }
  SUBCASE("fax lines that are too short") {   // white of 8 pixels, where 16 are asked for, and the end of the line
    const TiffKind kind{.tiled = false, .compression = COMPRESSION_CCITTFAX3, .photometric = PHOTOMETRIC_MINISBLACK, .tile_height = 1, .bits = 1};
    write_encoded(path, draw_image(1, 16, 1, 1, 16)->info(), kind, {{0x00, 0x19, 0x80, 0x08, 0x00, 0x80}});
    CHECK(damage_of(path).find("Premature EOL at line 0") == 0);
  }
}
