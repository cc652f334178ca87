// data/png.hpp and data/png_writer.hpp: every kind of PNG file in any order of bands, what is written is read, and every error.
#include "data/support.hpp"
#include "images/png_files.hpp"
#include "support/drawn_image.hpp"
#include "support/file_bytes.hpp"
#include "support/image_pixels.hpp"
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/png.hpp>
#include <lrcnn/data/png_writer.hpp>
#include <doctest/doctest.h>
#include <csignal>
#include <sys/resource.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::pixels_of;
using Order = lrcnn::testing::TileOrder;
namespace {
/// What drawn_sample says of an image in the samples of a format.
std::vector<std::byte> drawn(Index height, Index width, Index channels, SampleType sample) {
  const auto image = draw_image(height, width, channels, height, width, sample);
  if (sample == SampleType::u16) image->value = [](Index y, Index x, Index c) { return 257 * drawn_sample(y, x, c) + 3; };
  return image->pixels(whole(image->info()));
}
void write_drawn(const std::filesystem::path& path, Index height, Index width, Index channels, SampleType sample = SampleType::u8) {
  PngWriter writer(path, height, width, channels, sample);
  writer.write(drawn(height, width, channels, sample));
  writer.finish();
}
std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int v : values) result.push_back(static_cast<std::byte>(v));
  return result;
}
Bytes of_file(const std::filesystem::path& path) {
  Bytes result;
  for (const std::byte b : testing::file_bytes(path)) result.push_back(std::to_integer<std::uint8_t>(b));
  return result;
}
}   // namespace
TEST_CASE("png: what is written is read, with 1 to 4 channels of 8 and 16 bits, bands in any order") {
  const TemporaryFolder folder;
  const auto path = folder / "a.png";
  for (Index channels = 1; channels <= 4; ++channels)
    for (const SampleType sample : {SampleType::u8, SampleType::u16}) {
      write_drawn(path, 200, 37, channels, sample);
      const auto file = open_png(path);
      CHECK(file->info().sample == sample);
      CHECK(file->info().channels == channels);
      CHECK(file->info().tile_rows() == 4);
      CHECK(file->info().in_order);
      for (const Order order : {Order::forward, Order::backward, Order::shuffled}) CHECK(pixels_of(*file, order) == drawn(200, 37, channels, sample));
    }
  CHECK(open_png(path)->info().format == "PNG, 16 bit RGB with alpha");
  const CachedImage cached(open_png(path), std::make_shared<TileCache>());
  std::vector<std::byte> part(3 * 2 * 8);
  cached.read({{150, 153}, {4, 6}}, part);
  CHECK(std::equal(part.begin(), part.begin() + 16, drawn(200, 37, 4, SampleType::u16).begin() + (150 * 37 + 4) * 8));
}
TEST_CASE("png: rows that are written in pieces make the same file") {
  const TemporaryFolder folder;
  write_drawn(folder / "a.png", 20, 9, 3);
  const auto pixels = drawn(20, 9, 3, SampleType::u8);
  PngWriter writer(folder / "b.png", 20, 9, 3);
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 1}, {1, 12}, {12, 20}})
    writer.write(std::span(pixels).subspan(27 * static_cast<std::size_t>(begin), 27 * static_cast<std::size_t>(end - begin)));
  writer.finish();
  CHECK(testing::file_bytes(folder / "a.png") == testing::file_bytes(folder / "b.png"));
}
TEST_CASE("png: palettes, few bits, transparency, interlaced rows") {
  const TemporaryFolder folder;
  const auto path = folder / "a.png";
  const std::vector<png_color> palette{{10, 20, 30}, {40, 50, 60}, {70, 80, 90}};
  write_png(path, 2, 3, {.bits = 2, .colours = PNG_COLOR_TYPE_PALETTE}, {{0b00'01'10'00}, {0b10'10'00'00}}, palette);
  CHECK(pixels_of(*open_png(path)) == bytes({10, 20, 30, 40, 50, 60, 70, 80, 90, 70, 80, 90, 70, 80, 90, 10, 20, 30}));
  CHECK(open_png(path)->info().format == "PNG, 2 bit palette");
  const auto indices = open_png(path, {.palette = PngPalette::indices});
  CHECK(indices->info().channels == 1);
  CHECK(indices->info().format == "PNG, 2 bit palette, as indices");
  CHECK(pixels_of(*indices) == bytes({0, 1, 2, 2, 2, 0}));
  write_png(path, 1, 3, {.bits = 8, .colours = PNG_COLOR_TYPE_PALETTE, .transparency = true}, {{0, 1, 2}}, palette);
  CHECK(pixels_of(*open_png(path)) == bytes({10, 20, 30, 40, 50, 60, 70, 80, 90}));
  CHECK(pixels_of(*open_png(path, {.palette = PngPalette::indices})) == bytes({0, 1, 2}));
  write_png(path, 1, 5, {.bits = 1}, {{0b10110'000}});
  CHECK(pixels_of(*open_png(path)) == bytes({255, 0, 255, 255, 0}));
  CHECK(pixels_of(*open_png(path, {.palette = PngPalette::indices})) == bytes({255, 0, 255, 255, 0}));
  write_png(path, 1, 2, {.bits = 4, .transparency = true}, {{0x1f}});
  CHECK(pixels_of(*open_png(path)) == bytes({17, 255}));
  write_png(path, 1, 1, {.colours = PNG_COLOR_TYPE_RGB, .transparency = true}, {{1, 2, 3}});
  CHECK(pixels_of(*open_png(path)) == bytes({1, 2, 3}));
  // Interlaced: one tile, which a cache has to have room for.
  std::vector<std::vector<std::uint8_t>> rows(100, std::vector<std::uint8_t>(90));
  for (std::size_t y = 0; y < 100; ++y)
    for (std::size_t x = 0; x < 90; ++x) rows[y][x] = static_cast<std::uint8_t>(drawn_sample(static_cast<Index>(y), static_cast<Index>(x), 0));
  write_png(path, 100, 90, {.interlaced = true}, rows);
  const auto interlaced = open_png(path);
  CHECK(interlaced->info().tile_height == 100);
  CHECK(interlaced->info().format == "PNG, 8 bit grey, interlaced");
  CHECK(pixels_of(*interlaced) == drawn(100, 90, 1, SampleType::u8));
  CHECK(testing::error_of<DataError>([&] { CachedImage(interlaced, std::make_shared<TileCache>(TileCacheOptions{.bytes = 8999})); }) ==
        "lrcnn: image '" + path.string() +
            "' has tiles of 9000 bytes (PNG, 8 bit grey, interlaced), and the tile cache holds 8999; a cache has room for at "
            "least one tile; give the cache more bytes, or store the image in smaller tiles");
}
TEST_CASE("png: files that are cut off or damaged give the rows that are sound, and never others") {
  const TemporaryFolder folder;
  const auto path = folder / "a.png";
  std::vector<std::vector<std::uint8_t>> rows(256, std::vector<std::uint8_t>(300));
  const Random random(20261124);
  std::uint64_t n = 0;
  for (auto& row : rows)
    for (auto& value : row) value = static_cast<std::uint8_t>(random.below(n++, 256));   // does not compress: chunks end within the image
  write_png(path, 256, 300, {}, rows);
  const Bytes sound = of_file(path);
  const auto file = open_png(path);
  const auto expected = pixels_of(*file);
  const std::string who = "lrcnn: image '" + path.string() + "' ";
  const std::string change = "; rows are read of whole PNG files; fetch the file again, or convert it";
  std::vector<std::byte> band(64 * 300);
  folder.write("a.png", cut(sound, sound.size() * 3 / 5));
  CHECK(testing::error_of<DataError>([&] { file->decoder(); }).find("' has changed since it was opened") != std::string::npos);
  const auto short_file = open_png(path);
  const auto decoder = short_file->decoder();
  decoder->decode(1, 0, band);
  CHECK(std::equal(band.begin(), band.end(), expected.begin() + 64 * 300));
  const std::string text = testing::error_of<DataError>([&] { decoder->decode(2, 0, band); });
  CHECK(text.starts_with(who + "is cut off or damaged in row 1"));
  CHECK(text.ends_with(" of 256 or above: the file ends there" + change));
  decoder->decode(0, 0, band);   // and goes on
  CHECK(std::equal(band.begin(), band.end(), expected.begin()));
  Bytes damaged = sound;
  damaged[damaged.size() - 200] ^= 0x40;   // in the last rows' chunk: its checksum is behind it
  folder.write("a.png", damaged);
  const auto bad = open_png(path)->decoder();
  for (const Index row : {0, 1, 2}) bad->decode(row, 0, band);
  CHECK(testing::error_of<DataError>([&] { bad->decode(3, 0, band); }).find("is cut off or damaged in row ") != std::string::npos);
  // Before the pixels.
  for (const std::size_t size : {std::size_t{4}, std::size_t{20}}) {
    folder.write("a.png", cut(sound, size));
    CHECK(testing::error_of<DataError>([&] { open_png(path); }) == who + "cannot be decoded: the file ends there" + change);
  }
  damaged = sound;
  damaged[20] ^= 1;   // the height
  folder.write("a.png", damaged);
  CHECK(testing::error_of<DataError>([&] { open_png(path); }) == who + "cannot be decoded: IHDR: CRC error" + change);
  folder.write("a.png", bytes_of("no picture at all"));
  CHECK(testing::error_of<DataError>([&] { open_png(path); }) == who + "cannot be decoded: Not a PNG file" + change);
  // A file that is written to while it is read.
  folder.write("a.png", sound);
  const auto changing = open_png(path)->decoder();
  changing->decode(0, 0, band);
  std::filesystem::resize_file(path, 20000);
  CHECK(testing::error_of<DataError>([&] { changing->decode(3, 0, band); }).find("' has changed since it was opened") != std::string::npos);
  std::filesystem::remove(path);
  CHECK(testing::error_of<DataError>([&] { file->decoder(); }) ==
        who + "cannot be opened: No such file or directory; an image is a file that can be read; check the path");
  // Interlaced.
  write_png(path, 256, 300, {.interlaced = true}, rows);
  folder.write("a.png", cut(of_file(path), 40000));
  std::vector<std::byte> all(256 * 300);
  CHECK(testing::error_of<DataError>([&] { open_png(path)->decoder()->decode(0, 0, all); }).find(" of 256 or above: the file ends there" + change) !=
        std::string::npos);
}
TEST_CASE("png: extents that no memory holds are refused before any is taken") {
  const TemporaryFolder folder;
  const auto path = folder / "a.png";
  write_png(path, 4, 4, {}, std::vector<std::vector<std::uint8_t>>(4, std::vector<std::uint8_t>(4)));
  Bytes large = of_file(path);
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) large[at + i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
  };
  put(16, 2000000);
  put(29, static_cast<std::uint32_t>(crc32(0, large.data() + 12, 17)));
  folder.write("a.png", large);
  CHECK(testing::error_of<DataError>([&] { open_png(path); }) ==
        "lrcnn: image '" + path.string() +
            "' cannot be decoded: Invalid IHDR data; rows are read of whole PNG files; fetch the file again, or convert it");
  put(16, 900000), put(20, 900000);   // 810 GB of a file of some bytes: bands are decoded, and end with the file
  put(29, static_cast<std::uint32_t>(crc32(0, large.data() + 12, 17)));
  folder.write("a.png", large);
  const auto file = open_png(path);
  CHECK(file->info().tile_bytes() == 64 * Index{900000});
  std::vector<std::byte> band(64 * 900000);
  CHECK(testing::error_of<DataError>([&] { file->decoder()->decode(0, 0, band); }).find("is cut off or damaged in row 0 of 900000") !=
        std::string::npos);
}
TEST_CASE("png: what a PNG file cannot hold, and files that cannot be written") {
  const TemporaryFolder folder;
  const std::string path = folder.write("old.png", {1, 2, 3}).string();
  const auto created = [&](Index h, Index w, Index c, SampleType sample) {
    return testing::error_of<DataError>([&] { PngWriter(path, h, w, c, sample); });
  };
  const std::string rule =
      "; PNG files have 1 to 4 channels of u8 or u16, and libpng writes up to 1000000 rows and columns; scale the values, choose channels, or "
      "write a TIFF or .npy file";
  CHECK(created(2, 3, 5, SampleType::u8) == "lrcnn: image '" + path + "' is to be created with 2 rows, 3 columns, 5 channels of u8" + rule);
  CHECK(created(2, 3, 1, SampleType::f32) == "lrcnn: image '" + path + "' is to be created with 2 rows, 3 columns, 1 channels of f32" + rule);
  CHECK(created(2, 1000001, 1, SampleType::u8).find("1000001 columns") != std::string::npos);
  CHECK(created(0, 3, 1, SampleType::u8).find("an image has at least one of each, and at most 2^62 bytes") != std::string::npos);
  CHECK(testing::error_of<DataError>([&] { PngWriter(folder / "no" / "a.png", 1, 1, 1); }).find("cannot be written: No such file or directory") !=
        std::string::npos);
  {
    PngWriter writer(path, 4, 3, 1);
    const std::vector<std::byte> rows(9);
    writer.write(rows);
    CHECK(testing::error_of<DataError>([&] { writer.write(rows); }).find("is given 3 rows behind its first 3; it has 4") != std::string::npos);
    CHECK(testing::error_of<DataError>([&] { writer.finish(); }).find("is to be completed with 3 of its 4 rows") != std::string::npos);
  }
  CHECK(folder.count() == 1);
  CHECK(testing::file_bytes(path).size() == 3);
  // A disk that is full: a limit of this process's files stands for it.
  struct sigaction old {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignore, &old);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  {
    PngWriter writer(path, 400, 300, 3);
    std::vector<std::byte> noise(400 * 900);
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(Random(1).bits(i));
    rlimit small = before;
    small.rlim_cur = 50000;
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string text = testing::error_of<DataError>([&] { writer.write(noise); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    CHECK(text.find("old.png' cannot be written: File too large; ") != std::string::npos);
    CHECK(testing::error_of<DataError>([&] { writer.write(noise); }) ==
          "lrcnn: image '" + path + "' is finished, or was given up after an error; a file is written once; begin a new one");
    CHECK(testing::error_of<DataError>([&] { writer.finish(); }).find("was given up after an error") != std::string::npos);
  }
  ::sigaction(SIGXFSZ, &old, nullptr);
  CHECK(folder.count() == 1);
  CHECK(testing::file_bytes(path).size() == 3);
}
TEST_CASE("png: a real mask") {
  const char* const root = std::getenv("LRCNN_DATA");
  const auto path = std::filesystem::path(root ? root : "") / "large" / "plant-2454x2056-mask.png";
  if (!root || !std::filesystem::exists(path)) {
    MESSAGE("skipped: set LRCNN_DATA to a folder that has large/plant-2454x2056-mask.png");
    return;
  }
  const auto file = open_png(path);
  CHECK(file->info().height == 2056);
  CHECK(file->info().width == 2454);
  CHECK(file->info().channels == 1);
  Index white = 0, black = 0;
  for (const std::byte b : pixels_of(*file)) ++(b == std::byte{255} ? white : black);
  CHECK(white == 63632);   // as published with it
  CHECK(white + black == 2056 * 2454);
}
