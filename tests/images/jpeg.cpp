// data/jpeg.hpp: libjpeg's pixels in any order of bands, never made-up ones, and every error.
#include "data/support.hpp"
#include "images/jpeg_files.hpp"
#include "support/file_bytes.hpp"
#include "support/image_pixels.hpp"
#include <lrcnn/data/jpeg.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::pixels_of;
using Order = lrcnn::testing::TileOrder;
namespace {
Bytes of_file(const std::filesystem::path& path) {
  Bytes result;
  for (const std::byte b : testing::file_bytes(path)) result.push_back(std::to_integer<std::uint8_t>(b));
  return result;
}
constexpr std::string_view change = "; rows are read of whole JPEG files of 8 bits a sample; fetch the file again, or convert it";
}   // namespace
TEST_CASE("jpeg: the pixels are libjpeg's, grey and colour, baseline and progressive, bands in any order") {
  const TemporaryFolder folder;
  const auto path = folder / "a.jpg";
  for (const JpegKind& kind : {JpegKind{.channels = 1}, JpegKind{}, JpegKind{.progressive = true}, JpegKind{.channels = 1, .progressive = true},
                               JpegKind{.restart_rows = 1}}) {
    write_jpeg(path, 203, 75, kind);
    const auto file = open_jpeg(path);
    const ImageInfo& info = file->info();
    CHECK(info.height == 203);
    CHECK(info.width == 75);
    CHECK(info.channels == kind.channels);
    CHECK(info.tile_rows() == 4);
    CHECK(info.in_order);
    CHECK(info.format == (kind.progressive ? "JPEG, progressive" : "JPEG, baseline"));
    const auto expected = decode_jpeg(path);
    for (const Order order : {Order::forward, Order::backward, Order::shuffled}) CHECK(pixels_of(*file, order) == expected);
  }
  CHECK(pixels_of(*open_image(path, std::array{jpeg_format})) == decode_jpeg(path));
}
TEST_CASE("jpeg: files that are cut off give the rows before that, name the row, and the decoder goes on") {
  const TemporaryFolder folder;
  const auto path = folder / "a.jpg";
  write_jpeg(path, 256, 320, {});
  const auto expected = decode_jpeg(path);
  const Bytes sound = of_file(path);
  const std::string who = "lrcnn: image '" + path.string() + "' ";
  folder.write("a.jpg", cut(sound, sound.size() * 3 / 4));
  const auto decoder = open_jpeg(path)->decoder();
  std::vector<std::byte> band(64 * 960);
  const std::string text = testing::error_of<DataError>([&] { decoder->decode(3, 0, band); });
  CHECK(text.starts_with(who + "is cut off or damaged in row "));
  CHECK(text.ends_with(" of 256: Premature end of JPEG file" + std::string(change)));
  decoder->decode(1, 0, band);
  CHECK(std::equal(band.begin(), band.end(), expected.begin() + 64 * 960));
  for (std::size_t size = 0; size < sound.size(); size += 97) {   // wherever it is cut: all rows that come are right
    folder.write("a.jpg", cut(sound, size));
    Index right = 0;
    const std::string fault = testing::error_of<DataError>([&] {
      const auto some = open_jpeg(path)->decoder();
      for (Index row = 0; row < 4; ++row, ++right) {
        some->decode(row, 0, band);
        CHECK(std::equal(band.begin(), band.end(), expected.begin() + row * 64 * 960));
      }
    });
    CHECK(fault.starts_with(who));
    CHECK(right < 4);
  }
  folder.write("a.jpg", cut(sound, 2));
  CHECK(testing::error_of<DataError>([&] { open_jpeg(path); }) == who + "cannot be decoded: Premature end of JPEG file" + std::string(change));
}
TEST_CASE("jpeg: what libjpeg warns of is an error, and where it has no doubt the pixels are its own") {
  const TemporaryFolder folder;
  const auto path = folder / "a.jpg";
  write_jpeg(path, 256, 320, {.restart_rows = 1});
  const Bytes sound = of_file(path);
  Index refused = 0, named = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    Bytes damaged = sound;
    const std::size_t at = 700 + static_cast<std::size_t>(Random(20261124).below(i, sound.size() - 750));
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at), 1 + 39 * (i % 2), std::uint8_t{0xff});   // markers where none may be
    folder.write("a.jpg", damaged);
    CAPTURE(i);
    long warnings = 0;
    const auto decoded = decode_jpeg(path, &warnings);
    std::vector<std::byte> pixels;
    const std::string fault = testing::error_of<DataError>([&] { pixels = pixels_of(*open_jpeg(path)); });
    if (warnings == 0) {
      CHECK(pixels == decoded);
      continue;
    }
    CHECK(fault != "no error");
    ++refused;
    named += fault.find("is cut off or damaged in row ") != std::string::npos && fault.find("orrupt JPEG data: ") != std::string::npos;
  }
  CHECK(refused > 40);
  CHECK(named > 30);
}
TEST_CASE("jpeg: padding before the end is passed over, the rest of damaged data is not") {
  const TemporaryFolder folder;
  const auto path = folder / "a.jpg";
  for (const bool progressive : {false, true}) {
    write_jpeg(path, 96, 64, {.progressive = progressive});
    const auto sound = decode_jpeg(path);
    folder.write("a.jpg", padded_jpeg(of_file(path), 0xd9));
    CHECK(pixels_of(*open_jpeg(path)) == sound);
  }
  const auto error_with_padding = [&](const JpegKind& kind, std::uint8_t marker) {
    write_jpeg(path, 96, 64, kind);
    folder.write("a.jpg", padded_jpeg(of_file(path), marker));
    return testing::error_of<DataError>([&] { pixels_of(*open_jpeg(path)); });
  };
  const auto ending = [](const std::string& marker) {
    return ": Corrupt JPEG data: 20 extraneous bytes before marker " + marker + std::string(change);
  };
  const std::string who = "lrcnn: image '" + path.string() + "' ";
  CHECK(error_with_padding({}, 0xdb) == who + "cannot be decoded" + ending("0xdb"));
  const std::string restart = error_with_padding({.restart_rows = 1}, 0xd0);
  CHECK(restart.starts_with(who + "is cut off or damaged in row "));
  CHECK(restart.ends_with(ending("0xd0")));
}
TEST_CASE("jpeg: what is refused") {
  const TemporaryFolder folder;
  const auto path = folder / "a.jpg";
  const std::string who = "lrcnn: image '" + path.string() + "' ";
  write_jpeg(path, 40, 40, {.channels = 4});
  const std::string rule = "; JPEG files are read that have one channel (grey) or three (red, green and blue); convert it to RGB";
  CHECK(testing::error_of<DataError>([&] { open_jpeg(path); }) == who + "has 4 channels (CMYK)" + rule);
  write_jpeg(path, 40, 40, {.channels = 2});
  CHECK(testing::error_of<DataError>([&] { open_jpeg(path); }) == who + "has 2 channels" + rule);
  folder.write("a.jpg", bytes_of("\x89PNG, not a JPEG file"));
  CHECK(testing::error_of<DataError>([&] { open_jpeg(path); }) ==
        who + "cannot be decoded: Not a JPEG file: starts with 0x89 0x50" + std::string(change));
  write_jpeg(path, 40, 40, {});
  Bytes deep = of_file(path);
  for (std::size_t i = 0; i + 4 < deep.size(); ++i)
    if (deep[i] == 0xff && deep[i + 1] == 0xc0) deep[i + 4] = 12;   // bits a sample
  folder.write("a.jpg", deep);
  CHECK(testing::error_of<DataError>([&] {
          open_jpeg(path)->decoder()->decode(0, 0, {});
        }).find("Unsupported JPEG data precision 12" + std::string(change)) != std::string::npos);
  write_jpeg(path, 400, 600, {.progressive = true});
  // Luma of 400x600 and two chroma planes of half the extents, in blocks of 8x8 coefficients of two bytes.
  CHECK(testing::error_of<DataError>([&] { open_jpeg(path, {.most_bytes = 700000}); }) ==
        who +
            "has several scans (progressive JPEG), which take 729600 bytes; at most 700000 are taken; store it as baseline JPEG or tiled TIFF, or "
            "raise "
            "JpegOptions::most_bytes");
  std::vector<std::byte> band(64 * 600 * 3);
  const auto whole = open_jpeg(path, {.most_bytes = 729600})->decoder();
  CHECK(whole->kept_bytes() == 0);
  whole->decode(0, 0, band);
  CHECK(whole->kept_bytes() > 729600);
  write_jpeg(path, 400, 600, {});
  const auto by_rows = open_jpeg(path)->decoder();
  by_rows->decode(0, 0, band);
  CHECK(by_rows->kept_bytes() > 64 * 1024);
  CHECK(by_rows->kept_bytes() < 150000);
  CHECK(testing::error_of<DataError>([&] { open_jpeg(folder.path()); }).find(" is a folder; an image is one file") != std::string::npos);
}
TEST_CASE("jpeg: a small file that says it has thousands of scans is given up") {
  const TemporaryFolder folder;
  const auto path = folder / "a.jpg";
  write_jpeg(path, 64, 64, {.channels = 1, .progressive = true});
  Bytes file = of_file(path);
  // The last scan, from its marker to the end of the image, again and again.
  std::size_t scan = 0;
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == 0xff && file[i + 1] == 0xda) scan = i;
  const Bytes again(file.begin() + static_cast<std::ptrdiff_t>(scan), file.end() - 2);
  file.resize(file.size() - 2);
  for (int i = 0; i < 600; ++i) file = join(std::move(file), again);
  folder.write("a.jpg", join(std::move(file), {0xff, 0xd9}));
  std::vector<std::byte> band(64 * 64);
  const std::string text = testing::error_of<DataError>([&] { open_jpeg(path)->decoder()->decode(0, 0, band); });
  CHECK((text.find("More than 500 scans") != std::string::npos || text.find("orrupt JPEG data") != std::string::npos ||
         text.find("Invalid progressive parameters") != std::string::npos || text.find("Inconsistent progression sequence") != std::string::npos));
}
TEST_CASE("jpeg: a file that changes while it is read") {
  const TemporaryFolder folder;
  const auto path = folder / "a.jpg";
  write_jpeg(path, 256, 320, {});
  const auto file = open_jpeg(path);
  const auto decoder = file->decoder();
  std::vector<std::byte> band(64 * 960);
  decoder->decode(0, 0, band);
  std::filesystem::resize_file(path, 1000);
  const std::string changed = "lrcnn: file '" + path.string() +
                              "' has changed since it was opened; a file stays as it is while it is read; open it again, and let "
                              "nothing write to it meanwhile";
  CHECK(testing::error_of<DataError>([&] { decoder->decode(3, 0, band); }) == changed);
  CHECK(testing::error_of<DataError>([&] { file->decoder(); }) == changed);
}
TEST_CASE("jpeg: real photographs") {
  const char* const root = std::getenv("LRCNN_DATA");
  const auto path = std::filesystem::path(root ? root : "") / "large" / "plant-2454x2056.jpg";
  if (!root || !std::filesystem::exists(path)) {
    MESSAGE("skipped: set LRCNN_DATA to a folder that has large/plant-2454x2056.jpg");
    return;
  }
  const auto file = open_jpeg(path);
  CHECK(file->info().height == 2056);
  CHECK(file->info().width == 2454);
  CHECK(pixels_of(*file) == decode_jpeg(path));
}
