// data/tiff.hpp: what is refused, and files that are damaged, change or vanish. Every error's text.
#include "images/jpeg_files.hpp"
#include "images/tiff_files.hpp"
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/tiff.hpp>
#include <doctest/doctest.h>
#include <fstream>
#include <sys/stat.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
namespace {
/// A TIFF file made byte by byte, for what libtiff does not write: one directory, and 64 bytes for its only strip or tile.
class RawTiff {
 public:
  /// Grey, 8 x 8 pixels of 8 bits, in one strip.
  RawTiff() {
    set(TIFFTAG_IMAGEWIDTH, 8), set(TIFFTAG_IMAGELENGTH, 8), set(TIFFTAG_BITSPERSAMPLE, 8), set(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    set(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK), set(TIFFTAG_STRIPOFFSETS, 8), set(TIFFTAG_SAMPLESPERPIXEL, 1), set(TIFFTAG_ROWSPERSTRIP, 8);
    set(TIFFTAG_STRIPBYTECOUNTS, 64);
  }
  RawTiff& set(std::uint32_t tag, std::uint32_t value) {
    std::erase_if(entries_, [&](const auto& e) { return e.first == tag; });
    entries_.emplace_back(tag, value);
    return *this;
  }
  RawTiff& remove(std::uint32_t tag) {
    std::erase_if(entries_, [&](const auto& e) { return e.first == tag; });
    return *this;
  }
  RawTiff& tiles(std::uint32_t height, std::uint32_t width) {
    remove(TIFFTAG_STRIPOFFSETS).remove(TIFFTAG_STRIPBYTECOUNTS).remove(TIFFTAG_ROWSPERSTRIP);
    return set(TIFFTAG_TILELENGTH, height).set(TIFFTAG_TILEWIDTH, width).set(TIFFTAG_TILEOFFSETS, 8).set(TIFFTAG_TILEBYTECOUNTS, 64);
  }
  void write(const std::filesystem::path& path) const {
    std::string bytes("II*\0\0\0\0\0", 8);
    const auto number = [](std::uint32_t value, int size) {
      std::string text;
      for (int i = 0; i < size; ++i) text += static_cast<char>(value >> (8 * i));
      return text;
    };
    bytes += std::string(64, '\1');
    std::string directory = number(static_cast<std::uint32_t>(entries_.size()), 2), behind;
    auto entries = entries_;
    std::sort(entries.begin(), entries.end());
    std::uint32_t channels = 1;
    for (const auto& [tag, value] : entries)
      if (tag == TIFFTAG_SAMPLESPERPIXEL) channels = value;
    const auto end = static_cast<std::uint32_t>(bytes.size() + 2 + 12 * entries.size() + 4);
    for (const auto& [tag, value] : entries) {
      const bool per_sample = (tag == TIFFTAG_BITSPERSAMPLE || tag == TIFFTAG_SAMPLEFORMAT) && channels > 2;
      directory += number(tag, 2) + number(per_sample ? 3 : 4, 2) + number(per_sample ? channels : 1, 4);
      directory += number(per_sample ? end + static_cast<std::uint32_t>(behind.size()) : value, 4);
      for (std::uint32_t i = 0; per_sample && i < channels; ++i) behind += number(value, 2);
    }
    bytes.replace(4, 4, number(static_cast<std::uint32_t>(bytes.size()), 4));
    bytes += directory + number(0, 4) + behind;
    std::ofstream(path, std::ios::binary) << bytes;
  }

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries_{};
};
/// The error of opening it, without the file's name.
std::string error_of_raw(const RawTiff& raw, const TiffOptions& options = {}) {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  raw.write(path);
  std::string text = error_of([&] { decode_all(*open_tiff(path, options)); });
  const std::string who = "lrcnn: image '" + path.string() + "' ";
  return text.starts_with(who) ? text.substr(who.size()) : text;
}
const std::string vips = "convert it first, as in `vips tiffsave IN OUT --tile --compression deflate`";
std::vector<std::byte> tile_of(const ImageFile& file, Index row, Index column, TileDecoder& decoder) {
  const ImageInfo& info = file.info();
  std::vector<std::byte> tile(static_cast<std::size_t>(info.rows_of(row).size() * info.columns_of(column).size() * info.pixel_bytes()));
  decoder.decode(row, column, tile);
  return tile;
}
/// Where a tile's bytes are in the file.
Range bytes_of_tile(const std::filesystem::path& path, std::uint32_t tile) {
  TIFF* const tiff = TIFFOpen(path.c_str(), "r");
  REQUIRE(tiff != nullptr);
  const auto begin = static_cast<Index>(TIFFGetStrileOffset(tiff, tile));
  const Range range{begin, begin + static_cast<Index>(TIFFGetStrileByteCount(tiff, tile))};
  TIFFClose(tiff);
  return range;
}
void overwrite(const std::filesystem::path& path, Range range, char value) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(range.begin);
  file << std::string(static_cast<std::size_t>(range.size()), value);
}
}   // namespace
TEST_CASE("the raw file of these tests is sound") {
  CHECK(error_of_raw(RawTiff()) == "no error");
  CHECK(error_of_raw(RawTiff().tiles(16, 16)).find("is damaged") != std::string::npos);   // of 256 bytes, 64 are there
}
TEST_CASE("colours that samples as stored would misrepresent are refused") {
  const auto colours = [](std::uint32_t photometric, std::uint32_t channels) {
    return RawTiff().set(TIFFTAG_PHOTOMETRIC, photometric).set(TIFFTAG_SAMPLESPERPIXEL, channels);
  };
  CHECK(error_of_raw(colours(PHOTOMETRIC_SEPARATED, 4)) ==
        "has inks (CMYK) for channels; how they turn into colours depends on a printer's profile; convert it to RGB first, as in `vips icc_transform "
        "IN "
        "OUT srgb`");
  const std::string rule = "; pixels are grey, RGB, or channels of any meaning as they are stored; " + vips;
  CHECK(error_of_raw(colours(PHOTOMETRIC_CIELAB, 3)) == "has Lab colours" + rule);
  CHECK(error_of_raw(colours(PHOTOMETRIC_YCBCR, 3)) == "has YCbCr colours without JPEG" + rule);
  CHECK(error_of_raw(colours(PHOTOMETRIC_LOGLUV, 3)) == "has logarithmic (LogLuv) colours" + rule);
  CHECK(error_of_raw(colours(PHOTOMETRIC_CFA, 1)) == "has a camera's colour filter array" + rule);
  CHECK(error_of_raw(colours(77, 1)) == "has colours of kind 77" + rule);
  // libtiff takes a palette without colours for grey, so here is one with.
  const TestFolder folder;
  const auto path = folder / "palette.tif";
  TIFF* const tiff = TIFFOpen(path.c_str(), "w");
  const auto drawn = draw_image(8, 8, 1, 8, 8);
  const TiffKind kind{.tiled = false, .photometric = PHOTOMETRIC_PALETTE};
  set_tiff_kind(tiff, drawn->info(), kind);
  std::vector<std::uint16_t> map(256);
  TIFFSetField(tiff, TIFFTAG_COLORMAP, map.data(), map.data(), map.data());
  write_tiff_pixels(tiff, drawn->info(), kind, [&](const ImageRegion& r) { return drawn->pixels(r); });
  TIFFClose(tiff);
  CHECK(error_of([&] { open_tiff(path); }) == "lrcnn: image '" + path.string() +
                                                  "' has a palette: its pixels are numbers of colours; pixels are samples of channels; "
                                                  "convert it to RGB first, as in `pal2rgb IN OUT`");
}
TEST_CASE("samples that no type holds are refused") {
  const auto samples = [](std::uint32_t bits, std::uint32_t format, std::uint32_t channels = 1) {
    return RawTiff().set(TIFFTAG_BITSPERSAMPLE, bits).set(TIFFTAG_SAMPLEFORMAT, format).set(TIFFTAG_SAMPLESPERPIXEL, channels);
  };
  const std::string rule =
      "; samples are integers of 8, 16 or 32 bits, grey ones of 1, 2 or 4, signed ones of 64, or floating point of 16, 32 or 64; "
      "convert it first, as in `vips cast IN OUT float`";
  CHECK(error_of_raw(samples(12, SAMPLEFORMAT_UINT)) == "has samples of 12 bits, unsigned integers" + rule);
  CHECK(error_of_raw(samples(64, SAMPLEFORMAT_UINT)) == "has samples of 64 bits, unsigned integers" + rule);
  CHECK(error_of_raw(samples(4, SAMPLEFORMAT_INT)) == "has samples of 4 bits, signed integers" + rule);
  CHECK(error_of_raw(samples(24, SAMPLEFORMAT_IEEEFP)) == "has samples of 24 bits, floating point" + rule);
  CHECK(error_of_raw(samples(64, SAMPLEFORMAT_COMPLEXIEEEFP)) == "has samples of 64 bits, complex numbers" + rule);
  CHECK(error_of_raw(samples(4, SAMPLEFORMAT_UINT, 3)) == "has 3 channels of 4 bits; samples of less than 8 bits are grey; " + vips);
  CHECK(error_of_raw(samples(32, SAMPLEFORMAT_IEEEFP).set(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISWHITE)) ==
        "has samples of type f32 in which 0 is white; only unsigned integers have a largest value that is black; " + vips);
  CHECK(error_of_raw(RawTiff().set(TIFFTAG_IMAGEDEPTH, 2)) ==
        "has a volume of several depths in one directory; an image has rows and columns; " + vips);
}
TEST_CASE("compressions that libtiff cannot decode are named") {
  CHECK(error_of_raw(RawTiff().set(TIFFTAG_COMPRESSION, 33005)) ==
        "is compressed with JPEG 2000; this libtiff cannot decode that; read it with OpenSlide (open_slide), or convert it first");
  CHECK(error_of_raw(RawTiff().set(TIFFTAG_COMPRESSION, 4711)) == "is compressed with compression 4711; this libtiff cannot decode that; " + vips);
}
TEST_CASE("extents that overflow and tiles of absurd size are refused before any memory is asked for") {
  const std::string unreadable =
      "; a TIFF file is a list of directories, each whole; ask for one that tiff_directories() lists, or fetch the file again";
  for (const std::uint32_t tag : {TIFFTAG_IMAGEWIDTH, TIFFTAG_IMAGELENGTH, TIFFTAG_SAMPLESPERPIXEL}) {
    const std::string error = error_of_raw(RawTiff().set(tag, 0));
    CHECK(error.starts_with("cannot be read: "));
    CHECK(error.ends_with(unreadable));
  }
  CHECK(error_of_raw(RawTiff().tiles(0, 16)).starts_with("cannot be read: "));
  CHECK(
      error_of_raw(RawTiff()
                       .set(TIFFTAG_IMAGEWIDTH, 0x40000000)
                       .set(TIFFTAG_IMAGELENGTH, 0xFFFE0000)
                       .set(TIFFTAG_ROWSPERSTRIP, 0x10000)
                       .set(TIFFTAG_BITSPERSAMPLE, 32)) ==
      "has 1073741824 x 4294836224 pixels of 1 channels of type u32; an image has at least one pixel, and less than 2^62 bytes; check that it is the "
      "right file");
  CHECK(error_of_raw(RawTiff().tiles(65536, 65536)) ==
        "has tiles of 65536x65536 pixels, 65536 bytes a row; a tile is decoded as a whole, and may have 1073741824 bytes; store the image in smaller "
        "tiles, or raise TiffOptions::tile_bytes");
  CHECK(error_of_raw(RawTiff().set(TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE), {.tile_bytes = 63, .strip_bytes = 64}) ==
        "has tiles of 8x8 pixels, 8 bytes a row; a tile is decoded as a whole, and may have 63 bytes; store the image in smaller tiles, or raise "
        "TiffOptions::tile_bytes");
  // A thousand-fold decompression: 64 bytes that claim 2^30 pixels. They are decoded in bands, and the first shows that there are none.
  const auto thousandfold = error_of_raw(RawTiff()
                                             .set(TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE)
                                             .set(TIFFTAG_IMAGEWIDTH, 32768)
                                             .set(TIFFTAG_IMAGELENGTH, 32768)
                                             .set(TIFFTAG_ROWSPERSTRIP, 32768));
  CHECK(thousandfold.starts_with("is damaged: rows 0 to 0, columns 0 to 32767 (strips 0, 0) cannot be decoded: "));
}
TEST_CASE("a file that is no TIFF, a directory that is not there") {
  const TestFolder folder;
  const auto text = folder / "text.tif", path = folder / "image.tif", missing = folder / "missing.tif";
  std::ofstream(text) << "not a TIFF file";
  const std::string error = error_of([&] { open_tiff(text); });
  CHECK(error.starts_with("lrcnn: image '" + text.string() + "' cannot be read: Not a TIFF"));
  CHECK(error.ends_with("; a TIFF file begins with a header that libtiff knows; check that it is a TIFF file, or fetch it again"));
  CHECK(error_of([&] { open_tiff(missing); }) == "lrcnn: image '" + missing.string() +
                                                     "' cannot be opened: No such file or directory; an image is a file that can be read; check "
                                                     "the path");
  CHECK(error_of([&] { open_tiff(folder / "."); }) ==
        "lrcnn: image '" + (folder / ".").string() + "' is a folder; an image is one file; give the path of a file");
  const auto pipe = folder / "pipe";   // nobody writes to it: who waits for that waits for ever
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string no_file = "lrcnn: image '" + pipe.string() + "' is a device or pipe; an image is one file; give the path of a file";
  CHECK(error_of([&] { open_tiff(pipe); }) == no_file);
  CHECK(error_of([&] { open_image(pipe, std::array{tiff_format}); }) == no_file);
  RawTiff().write(path);
  const std::string rule = "; a TIFF file is a list of directories, each whole; ask for one that tiff_directories() lists, or fetch the file again";
  CHECK(error_of([&] { open_tiff(path, {.directory = 1}); }) == "lrcnn: directory 1 of image '" + path.string() + "' is not there" + rule);
  CHECK(error_of([&] { open_tiff(path, {.sub_directory = 0}); }) ==
        "lrcnn: sub-directory 0 of directory 0 of image '" + path.string() + "' is not there" + rule);
  CHECK(
      error_of([&] { open_tiff(path, {.directory = -1}); }) ==
      "lrcnn: options of image '" + path.string() +
          "' have directory -1.-1, 1073741824 bytes a tile, 16777216 bytes a strip; directories are counted from 0, and tiles and strips have bytes; "
          "correct the options");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 20);   // within the directory
  const std::string cut = error_of([&] { open_tiff(path); });
  CHECK(cut.starts_with("lrcnn: image '" + path.string() + "' cannot be read: "));
  CHECK(cut.ends_with(rule));
  CHECK(error_of([&] { tiff_directories(path); }) == cut);
}
TEST_CASE("a damaged tile is named, and the others are as they were") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  for (const std::uint16_t compression : {COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_ZSTD, COMPRESSION_JPEG, COMPRESSION_LZMA})
    for (const bool tiled : {true, false}) {
      if (TIFFIsCODECConfigured(compression) != 1) continue;
      const std::string what = "compression " + std::to_string(compression) + (tiled ? ", tiles" : ", strips");
      INFO(what);
      const auto drawn = draw_image(200, 256, 1, 64, 64);
      const TiffKind kind{.tiled = tiled, .compression = compression, .tile_height = 64, .tile_width = 64};
      write_tiff(path, *drawn, kind);
      const auto good = decode_all(*open_tiff(path));
      const Range bytes = bytes_of_tile(path, tiled ? 6 : 1);   // rows 64 to 127, columns 128 to 191
      overwrite(path, {bytes.begin + bytes.size() / 2, bytes.end}, static_cast<char>(0xFF));
      const auto file = open_tiff(path, {.strip_bytes = tiled ? 16_MiB : Index{1}});
      const auto decoder = file->decoder();
      const ImageInfo& info = file->info();
      std::string error,
          expected = "lrcnn: image '" + path.string() + "' is damaged: rows 64 to 127, columns 128 to 191 (tile 1, 2) cannot be decoded: ";
      if (!tiled) {   // by rows: the strip's first rows may be whole
        REQUIRE(info.tile_height == 200);
        error = error_of([&] { tile_of(*file, 0, 0, *decoder); });
        expected = "lrcnn: image '" + path.string() + "' is damaged: rows ";
        const auto strips = open_tiff(path);
        REQUIRE(strips->info().tile_height == 200);   // four strips are one tile
        const std::string whole_strip = error_of([&] { tile_of(*strips, 0, 0, *strips->decoder()); });
        CHECK(whole_strip.starts_with(expected + "64 to 127, columns 0 to 255 (strips 0, 0) cannot be decoded: "));
      } else {
        error = error_of([&] { tile_of(*file, 1, 2, *decoder); });
        CHECK(error == error_of([&] { tile_of(*file, 1, 2, *decoder); }));
      }
      CHECK(error.starts_with(expected));
      CHECK(error.ends_with("; a tile is whole, or cannot be used; fetch or write the file again, or leave these pixels out"));
      if (!tiled) continue;
      for (Index row = 0; row < info.tile_rows(); ++row)
        for (Index column = 0; column < info.tile_columns(); ++column) {
          if (row == 1 && column == 2) continue;
          const auto tile = tile_of(*file, row, column, *decoder);
          for (Index y = 0; y < info.rows_of(row).size(); ++y)
            REQUIRE(std::memcmp(&tile[static_cast<std::size_t>(y * 64)], &good[static_cast<std::size_t>((row * 64 + y) * 256 + column * 64)], 64) ==
                    0);
        }
    }
}
TEST_CASE("padding before the end of a JPEG tile is passed over, the rest of damaged data before a restart marker is not") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  write_jpeg(folder / "tile.jpg", 64, 64, {.channels = 1, .restart_rows = 1});
  std::vector<std::uint8_t> sound;
  for (const std::byte b : testing::file_bytes(folder / "tile.jpg")) sound.push_back(std::to_integer<std::uint8_t>(b));
  const auto error_of_tile = [&](const std::vector<std::uint8_t>& bytes) {
    TIFF* const tiff = TIFFOpen(path.c_str(), "w");
    set_tiff_kind(tiff, draw_image(64, 64, 1, 64, 64)->info(), {.compression = COMPRESSION_JPEG, .tile_height = 64, .tile_width = 64});
    TIFFSetField(tiff, TIFFTAG_JPEGTABLESMODE, 0);
    auto copy = bytes;
    TIFFWriteRawTile(tiff, 0, copy.data(), static_cast<tmsize_t>(copy.size()));
    TIFFClose(tiff);
    std::vector<std::byte> pixels;
    const std::string error = error_of([&] { pixels = decode_all(*open_tiff(path)); });
    if (error == "no error") CHECK(pixels == decode_jpeg(folder / "tile.jpg"));
    return error;
  };
  CHECK(error_of_tile(sound) == "no error");
  CHECK(error_of_tile(padded_jpeg(sound, 0xd9)) == "no error");
  const auto damaged = [&](const std::string& marker) {
    return "lrcnn: image '" + path.string() +
           "' is damaged: rows 0 to 63, columns 0 to 63 (tile 0, 0) cannot be decoded: Corrupt JPEG data: 20 extraneous bytes before marker " +
           marker + "; a tile is whole, or cannot be used; fetch or write the file again, or leave these pixels out";
  };
  CHECK(error_of_tile(padded_jpeg(sound, 0xd0)) == damaged("0xd0"));
  CHECK(error_of_tile(padded_jpeg(padded_jpeg(sound, 0xd0), 0xdb)) == damaged("0xdb"));   // of which libtiff tells the first
}
TEST_CASE("a tile whose bytes end with the file") {
  RawTiff raw;
  raw.tiles(16, 16).set(TIFFTAG_IMAGEWIDTH, 16).set(TIFFTAG_IMAGELENGTH, 16).set(TIFFTAG_TILEBYTECOUNTS, 256).set(TIFFTAG_TILEOFFSETS, 100);
  const std::string error = error_of_raw(raw);
  CHECK(error.starts_with("is damaged: rows 0 to 15, columns 0 to 15 (tile 0, 0) cannot be decoded: "));
}
TEST_CASE("a file that changes or vanishes while it is read") {
  const TestFolder folder;
  const auto path = folder / "image.tif", other = folder / "other.tif";
  const auto drawn = draw_image(64, 64, 1, 16, 16), redrawn = draw_image(64, 64, 1, 16, 16);
  redrawn->value = [](Index y, Index x, Index) { return static_cast<int>((x ^ y) & 31); };
  const TiffKind kind{.tile_height = 16, .tile_width = 16};
  const std::string changed = "lrcnn: file '" + path.string() +
                              "' has changed since it was opened; a file stays as it is while it is read; open it again, and let nothing write to it "
                              "meanwhile";
  const auto later = [&] { std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(2)); };
  write_tiff(path, *drawn, kind);
  const auto file = open_tiff(path);
  const auto decoder = file->decoder();
  CHECK(tile_of(*file, 1, 1, *decoder) == drawn->pixels({{16, 32}, {16, 32}}));
  SUBCASE("written again in place, with the same extents") {
    overwrite(path, bytes_of_tile(path, 3), 'x');
    later();
    CHECK(error_of([&] { tile_of(*file, 2, 2, *decoder); }) == changed);
    CHECK(error_of([&] { tile_of(*file, 2, 2, *decoder); }) == changed);
    CHECK(error_of([&] { file->decoder(); }) == changed);
  }
  SUBCASE("made shorter") {
    std::filesystem::resize_file(path, 200);
    CHECK(error_of([&] { tile_of(*file, 3, 3, *decoder); }) == changed);
  }
  SUBCASE("replaced by another file: who has it open reads on") {
    write_tiff(other, *redrawn, kind);
    std::filesystem::rename(other, path);
    CHECK(tile_of(*file, 2, 1, *decoder) == drawn->pixels({{32, 48}, {16, 32}}));
    CHECK(error_of([&] { file->decoder(); }) == changed);
  }
  SUBCASE("removed") {
    std::filesystem::remove(path);
    CHECK(tile_of(*file, 2, 1, *decoder) == drawn->pixels({{32, 48}, {16, 32}}));
    CHECK(error_of([&] { file->decoder(); }) ==
          "lrcnn: image '" + path.string() + "' cannot be opened: No such file or directory; an image is a file that can be read; check the path");
  }
}
