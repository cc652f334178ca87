// data/tiff_writer.hpp: what is written comes back, pyramids are means or the most frequent pixels, and nothing is lost before a file is complete.
#include "images/tiff_files.hpp"
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
#include "support/thorough.hpp"
#include <lrcnn/data/image_sink.hpp>
#include <lrcnn/data/tiff.hpp>
#include <lrcnn/data/tiff_writer.hpp>
#include <doctest/doctest.h>
#include <csignal>
#include <openslide/openslide.h>
#include <sys/resource.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
using lrcnn::testing::file_bytes;
namespace {
/// Writes what is drawn, some rows at a time.
void write_drawn(TiffWriter& out, const DrawnImage& image, Index rows_at_once) {
  for (Index y = 0; y < image.info().height; y += rows_at_once)
    out.write(image.pixels({{y, std::min(image.info().height, y + rows_at_once)}, {0, image.info().width}}));
}
/// The means of 2x2 pixels as the definition says, pixel by pixel; in long double, which holds every sum of four samples exactly.
std::vector<std::byte> halved(const std::vector<std::byte>& from, const ImageInfo& info) {
  std::vector<std::byte> to(static_cast<std::size_t>(ceil_div(info.height, 2) * ceil_div(info.width, 2) * info.pixel_bytes()));
  with_sample_type(info.sample, [&]<class S>(const S*) {
    std::byte* out = to.data();
    for (Index y = 0; y < info.height; y += 2)
      for (Index x = 0; x < info.width; x += 2)
        for (Index c = 0; c < info.channels; ++c, out += sizeof(S)) {
          long double sum = 0, count = 0;
          for (Index v = y; v < std::min(y + 2, info.height); ++v)
            for (Index u = x; u < std::min(x + 2, info.width); ++u, ++count) {
              S sample;
              std::memcpy(&sample, &from[static_cast<std::size_t>(((v * info.width + u) * info.channels + c)) * sizeof(S)], sizeof(S));
              sum += static_cast<long double>(sample);
            }
          const auto mean = std::is_integral_v<S> ? static_cast<S>(std::floor(sum / count + 0.5L)) : static_cast<S>(static_cast<double>(sum / count));
          std::memcpy(out, &mean, sizeof(S));
        }
  });
  return to;
}
/// Of 2x2 pixels the most frequent one, of several the first; at the edges, of those that there are.
std::vector<std::byte> most_frequent(const std::vector<std::byte>& from, const ImageInfo& info) {
  std::vector<std::byte> to;
  for (Index y = 0; y < info.height; y += 2)
    for (Index x = 0; x < info.width; x += 2) {
      std::vector<std::vector<std::byte>> pixels;
      for (Index v = y; v < std::min(y + 2, info.height); ++v)
        for (Index u = x; u < std::min(x + 2, info.width); ++u) {
          const auto first = from.begin() + (v * info.width + u) * info.pixel_bytes();
          pixels.emplace_back(first, first + info.pixel_bytes());
        }
      const auto best = std::max_element(pixels.begin(), pixels.end(), [&](const auto& a, const auto& b) {
        return std::count(pixels.begin(), pixels.end(), a) < std::count(pixels.begin(), pixels.end(), b);
      });
      to.insert(to.end(), best->begin(), best->end());
    }
  return to;
}
}   // namespace
TEST_CASE("every type of samples and lossless compression comes back, whatever the extents and the number of rows at once") {
  const TestFolder folder;
  Index at_once = 1;
  for (int type = 0; type < 10; ++type)
    for (const TiffCompression compression : {TiffCompression::none, TiffCompression::deflate, TiffCompression::lzw, TiffCompression::zstd})
      for (const bool sparse : {false, true}) {
        if (compression == TiffCompression::zstd && TIFFIsCODECConfigured(COMPRESSION_ZSTD) != 1) continue;
        const auto sample = static_cast<SampleType>(type);
        const Index channels = 1 + at_once % 5;
        const auto drawn = draw_image(60 + at_once % 9, 81, channels, 32, 16, sample);
        if (sparse) drawn->value = [](Index y, Index x, Index) { return y > 40 && x < 20 ? 7 : 0; };
        INFO(drawn->info().format << " " << std::string(sample_name(sample)) << ", " << channels << " channels, " << at_once << " rows at once");
        const auto path = folder / "image.tif";
        TiffWriter out(path, drawn->info().height, 81, channels, sample,
                       {.compression = compression, .tile_height = 32, .tile_width = 16, .sparse = sparse});
        write_drawn(out, *drawn, at_once);
        CHECK_FALSE(std::filesystem::exists(path));
        out.finish();
        const auto file = open_tiff(path);
        CHECK(file->info().format == out.info().format);
        CHECK(file->info().channels == channels);
        CHECK(file->info().sample == sample);
        REQUIRE(decode_all(*file) == drawn->pixels(whole(drawn->info())));
        REQUIRE(folder.files() == 1);
        std::filesystem::remove(path);
        at_once = at_once % 70 + 1;
      }
}
TEST_CASE("each level of a pyramid is the means of the one before") {
  const TestFolder folder;
  for (int type = 0; type < 10; ++type)
    for (const bool sparse : {false, true}) {
      const auto sample = static_cast<SampleType>(type);
      INFO(std::string(sample_name(sample)) << (sparse ? ", sparse" : ""));
      const auto drawn = draw_image(131, 77, 2, 16, 16, sample);
      if (sparse) drawn->value = [](Index y, Index x, Index c) { return y < 20 && x < 20 ? static_cast<int>(x + c) : 0; };
      const auto path = folder / "image.tif";
      TiffWriter out(path, 131, 77, 2, sample, {.tile_height = 16, .tile_width = 16, .pyramid = true, .sparse = sparse});
      write_drawn(out, *drawn, 7);
      out.finish();
      REQUIRE(folder.files() == 1);
      const auto directories = tiff_directories(path);
      REQUIRE(directories.size() == 5);   // 131x77, 66x39, 33x20, 17x10, 9x5
      CHECK_FALSE(directories[0].reduced);
      std::vector<std::byte> expected = drawn->pixels(whole(drawn->info()));
      for (Index level = 0; level < 5; ++level) {
        const auto file = open_tiff(path, {.directory = level});
        REQUIRE(decode_all(*file) == expected);
        if (level > 0) CHECK(item(directories, level).reduced);
        expected = halved(expected, file->info());
      }
    }
}
TEST_CASE("where asked for, each level of a pyramid has the most frequent pixels of the one before") {
  const TestFolder folder;
  for (int type = 0; type < 10; ++type)
    for (const Index channels : {1, 2, 3}) {
      const auto sample = static_cast<SampleType>(type);
      INFO(std::string(sample_name(sample)) << ", " << channels << " channels");
      const auto drawn = draw_image(131, 77, channels, 16, 16, sample);
      drawn->value = [](Index y, Index x, Index c) { return static_cast<int>((y * 7 + x * x * 3 + x * y / 5) % (c == 0 ? 4 : 2) * 50); };
      const auto path = folder / "mask.tif";
      TiffWriter out(path, 131, 77, channels, sample,
                     {.tile_height = 16, .tile_width = 16, .pyramid = true, .reduction = TiffReduction::most_frequent});
      write_drawn(out, *drawn, 7);
      out.finish();
      REQUIRE(tiff_directories(path).size() == 5);
      std::vector<std::byte> expected = drawn->pixels(whole(drawn->info()));
      for (Index level = 0; level < 5; ++level) {
        const auto file = open_tiff(path, {.directory = level});
        REQUIRE(decode_all(*file) == expected);
        expected = most_frequent(expected, file->info());
      }
    }
}
TEST_CASE("numbers of classes stay such in a pyramid that an image sink writes") {
  const TestFolder folder;
  const auto path = folder / "mask.tif";
  const auto smaller = [&](TiffReduction reduction, const ImageSinkOptions& options) {
    constexpr Index width = 18;
    auto writer = std::make_unique<TiffWriter>(path, 2, width, 1, SampleType::u8,
                                               TiffWriterOptions{.tile_height = 16, .tile_width = 16, .pyramid = true, .reduction = reduction});
    ImageSink<float> sink(std::move(writer), {1, 4, 2, width}, options);
    std::vector<float> values(static_cast<std::size_t>(4 * 2 * width));
    const View<float> view = dense_view(values.data(), 1, 4, {0, 2}, width);
    for (Index y = 0; y < 2; ++y)
      for (Index x = 0; x < width; ++x) view(0, x < 2 ? 1 + 2 * y : 2, y, x) = x < 2 && options.argmax ? 1.f : 2.f;   // classes 1, 1, 3, 3; then 2
    sink.write(0, View<const float>(view));
    sink.finish();
    return std::to_integer<int>(decode_all(*open_tiff(path, {.directory = 1}))[0]);
  };
  CHECK(smaller(TiffReduction::automatic, {.argmax = true}) == 1);
  CHECK(smaller(TiffReduction::most_frequent, {.argmax = true}) == 1);
  CHECK(smaller(TiffReduction::mean, {.argmax = true}) == 2);
  CHECK(smaller(TiffReduction::automatic, {.channels = {1}}) == 1);   // 2, 2, 0, 0: other numbers have means
  CHECK(smaller(TiffReduction::most_frequent, {.channels = {1}}) == 2);
}
TEST_CASE("means of the largest integers do not overflow") {
  const TestFolder folder;
  TiffWriter out(folder / "image.tif", 2, 17, 1, SampleType::i64, {.tile_height = 16, .tile_width = 16, .pyramid = true});
  std::vector<Index> values(34, std::numeric_limits<Index>::max());
  values[0] = values[1] = std::numeric_limits<Index>::min();   // with two of the largest below: -0.5, which is rounded up
  values[2] = values[3] = values[19] = std::numeric_limits<Index>::min(), values[20] = std::numeric_limits<Index>::min() + 3;
  out.write(std::as_bytes(std::span(values)));
  out.finish();
  std::array<Index, 9> means{};
  open_tiff(folder / "image.tif", {.directory = 1})->decoder()->decode(0, 0, std::as_writable_bytes(std::span(means)));
  CHECK(means[0] == 0);
  CHECK(means[1] == std::numeric_limits<Index>::min() + 1);   // 0.75 above the least
  CHECK(means[8] == std::numeric_limits<Index>::max());
}
TEST_CASE("JPEG: near the original, in grey and in colour, in every level; OpenSlide reads the pyramid") {
  const TestFolder folder;
  for (const Index channels : {1, 3}) {
    const auto smooth = draw_image(200, 300, channels, 64, 64);
    smooth->value = [](Index y, Index x, Index c) { return static_cast<int>(40 + y / 2 + x / 4 + 5 * c); };
    const auto path = folder / "image.tif";
    TiffWriter out(path, 200, 300, channels, SampleType::u8,
                   {.compression = TiffCompression::jpeg, .tile_height = 64, .tile_width = 64, .quality = 95, .pyramid = true});
    write_drawn(out, *smooth, 33);
    out.finish();
    std::vector<std::byte> expected = smooth->pixels(whole(smooth->info()));
    for (Index level = 0; level < 4; ++level) {
      INFO("level " << level << ", " << channels << " channels");
      const auto file = open_tiff(path, {.directory = level});
      const auto pixels = decode_all(*file);
      REQUIRE(pixels.size() == expected.size());
      int worst = 0;
      for (std::size_t i = 0; i < pixels.size(); ++i)
        worst = std::max(worst, std::abs(std::to_integer<int>(pixels[i]) - std::to_integer<int>(expected[i])));
      CHECK(worst <= 8);
      expected = halved(expected, file->info());
    }
    CHECK(tiff_directories(path).size() == 4);
  }
  openslide_t* const slide = openslide_open((folder / "image.tif").c_str());
  REQUIRE(slide != nullptr);
  REQUIRE(openslide_get_error(slide) == nullptr);
  CHECK(openslide_get_level_count(slide) == 4);
  std::int64_t width = 0, height = 0;
  openslide_get_level_dimensions(slide, 2, &width, &height);
  CHECK(width == 75);
  CHECK(height == 50);
  openslide_close(slide);
}
TEST_CASE("a large sparse file takes the memory of a row of tiles, and what was drawn comes back") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const Index extent = 65536, height = lrcnn::testing::cases_to_do<Index>(extent, 2048);
  TiffWriter out(path, height, extent, 1, SampleType::u8, {.compression = TiffCompression::lzw, .pyramid = true, .sparse = true});
  const auto value = [](Index y, Index x) { return static_cast<std::byte>(y % 1000 < 3 && x % 5000 < 100 ? 1 + (x + y) % 255 : 0); };
  std::vector<std::byte> rows(static_cast<std::size_t>(64 * extent));
  for (Index y = 0; y < height; y += 64) {
    std::fill(rows.begin(), rows.end(), std::byte{0});
    for (Index r = y; r < y + 64; ++r)
      if (r % 1000 < 3)
        for (Index x = 0; x < extent; ++x) rows[static_cast<std::size_t>((r - y) * extent + x)] = value(r, x);
    out.write(rows);
  }
  out.finish();
  CHECK(std::filesystem::file_size(path) < 20'000'000);
  const auto file = open_tiff(path);
  const auto decoder = file->decoder();
  std::vector<std::byte> tile(256 * 256);
  for (Index row = 0; row < file->info().tile_rows(); row += 3)
    for (Index column = 0; column < file->info().tile_columns(); column += 7) {
      decoder->decode(row, column, tile);
      Index wrong = 0;
      for (Index y = 0; y < 256; ++y)
        for (Index x = 0; x < 256; ++x) wrong += tile[static_cast<std::size_t>(y * 256 + x)] != value(row * 256 + y, column * 256 + x);
      REQUIRE(wrong == 0);
    }
}
TEST_CASE("what was there stays until the new file is complete") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const auto drawn = draw_image(40, 40, 3, 16, 16);
  {
    TiffWriter out(path, 40, 40, 3, SampleType::u8);
    write_drawn(out, *drawn, 40);
    out.finish();
    CHECK(error_of([&] { out.write(std::vector<std::byte>(120)); }) ==
          "lrcnn: image '" + path.string() + "' is finished, or was given up after an error; a file is written once; begin a new one");
  }
  const auto before = file_bytes(path);
  {
    TiffWriter out(path, 40, 40, 3, SampleType::u8, {.pyramid = true});
    out.write(drawn->pixels({{0, 20}, {0, 40}}));
    CHECK(error_of([&] { out.finish(); }) == "lrcnn: image '" + path.string() +
                                                 "' is to be completed with 20 of its 40 rows; a file is written whole or not at all; "
                                                 "write all rows first");
    CHECK(file_bytes(path) == before);
  }
  CHECK(file_bytes(path) == before);
  CHECK(folder.files() == 1);
}
TEST_CASE("a full disk leaves the file as it was") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const auto drawn = draw_image(200, 200, 3, 16, 16);
  TiffWriter(path, 1, 1, 1, SampleType::u8).info();   // begins, and gives up
  CHECK(folder.files() == 0);
  for (const bool pyramid : {false, true}) {
    struct ::rlimit old {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    struct ::rlimit small = old;
    small.rlim_cur = 50'000;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::string again;
    const std::string error = error_of([&] {
      TiffWriter out(path, 200, 200, 3, SampleType::u8, {.compression = TiffCompression::none, .pyramid = pyramid});
      try {
        write_drawn(out, *drawn, 50);
        out.finish();
      } catch (...) {
        again = error_of([&] { out.finish(); });
        throw;
      }
    });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
    std::signal(SIGXFSZ, handler);
    CHECK(error == "lrcnn: file '" + path.string() +
                       "' cannot be written: File too large; a new file is written beside it and then takes its name; what was there is kept; "
                       "make room, or choose a path on another disk");
    CHECK(again == "lrcnn: image '" + path.string() + "' is finished, or was given up after an error; a file is written once; begin a new one");
    CHECK(folder.files() == 0);
  }
}
TEST_CASE("what no TIFF file can be is refused before a file is begun") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const auto error = [&](Index height, Index width, Index channels, SampleType sample, const TiffWriterOptions& options) {
    return error_of([&] { TiffWriter(path, height, width, channels, sample, options).info(); });
  };
  const std::string who = "lrcnn: image '" + path.string() + "' is to be written ";
  CHECK(error(0, 5, 1, SampleType::u8, {}) ==
        who + "with 0 x 5 pixels of 1 channels; TIFF has 1 to 2^32 - 1 rows and columns and 1 to 65535 channels; choose other extents");
  CHECK(error(5, 5, 70000, SampleType::u8, {}) ==
        who + "with 5 x 5 pixels of 70000 channels; TIFF has 1 to 2^32 - 1 rows and columns and 1 to 65535 channels; choose other extents");
  CHECK(error(5, 5, 1, SampleType::u8, {.tile_height = 100}) ==
        who + "in tiles of 100x256; a tile's extents are multiples of 16, and it has 1 GiB at most; choose tiles such as 256x256");
  CHECK(error(5, 5, 65535, SampleType::f64, {}) ==
        who + "in tiles of 256x256; a tile's extents are multiples of 16, and it has 1 GiB at most; choose tiles such as 256x256");
  CHECK(error(5, 5, 4, SampleType::u8, {.compression = TiffCompression::jpeg}) ==
        who +
            "as JPEG with 4 channels of type u8; JPEG has 1 or 3 channels of type u8; choose another compression, such as TiffCompression::deflate");
  CHECK(error(5, 5, 1, SampleType::f32, {.compression = TiffCompression::jpeg}) ==
        who +
            "as JPEG with 1 channels of type f32; JPEG has 1 or 3 channels of type u8; choose another compression, such as TiffCompression::deflate");
  CHECK(error(5, 5, 1, SampleType::u8, {.quality = 0}) == who + "with quality 0; JPEG's quality is 1 to 100; choose one such as 90");
  TiffWriter out(path, 5, 7, 2, SampleType::u16);
  CHECK(error_of([&] { out.write(std::vector<std::byte>(27)); }) ==
        "lrcnn: image '" + path.string() + "' is given 27 bytes; a row of it has 28; write whole rows");
  CHECK(error_of([&] { out.write(std::vector<std::byte>(6 * 28)); }) ==
        "lrcnn: image '" + path.string() +
            "' is given 6 rows behind its first 0; it has 5; write each row once, or create the image with its height");
  out.write(std::vector<std::byte>(5 * 28));   // such a mistake spoils nothing
  out.finish();
  CHECK(open_tiff(path)->info().sample == SampleType::u16);
  CHECK(error_of([&] { TiffWriter(folder / "nowhere/image.tif", 5, 5, 1, SampleType::u8).info(); }) ==
        "lrcnn: file '" + (folder / "nowhere/image.tif").string() +
            "' cannot be written: No such file or directory; a new file is written beside it and then takes its name; what was there is kept; create "
            "its "
            "folder, or choose another path");
}
