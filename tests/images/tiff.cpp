// data/tiff.hpp: what libtiff has stored comes back, whatever the layout, the samples and the compression.
#include "images/tiff_files.hpp"
#include "support/error_of.hpp"
#include "support/thorough.hpp"
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/tiff.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
namespace {
std::shared_ptr<TileCache> cache() { return std::make_shared<TileCache>(TileCacheOptions{.bytes = 8_MiB, .threads = 0}); }
/// A file is what was drawn: whole, and in regions drawn at random.
void check_same(const std::filesystem::path& path, const DrawnImage& drawn, const TiffOptions& options, std::uint64_t seed) {
  const auto file = open_tiff(path, options);
  const ImageInfo& info = file->info();
  REQUIRE(info.height == drawn.info().height);
  REQUIRE(info.width == drawn.info().width);
  REQUIRE(info.channels == drawn.info().channels);
  REQUIRE(info.sample == drawn.info().sample);
  REQUIRE(decode_all(*file) == drawn.pixels(whole(info)));
  const CachedImage image(file, cache());
  const Random random(seed, 0);
  std::uint64_t drawn_numbers = 0;
  const auto range = [&](Index size) {
    const auto draw = [&] { return static_cast<Index>(random.below(drawn_numbers++, static_cast<std::uint64_t>(size))); };
    const Index a = draw(), b = draw();
    return Range{std::min(a, b), std::max(a, b) + 1};
  };
  for (int i = 0; i < 3; ++i) {
    const ImageRegion region{range(info.height), range(info.width)};
    std::vector<std::byte> pixels(static_cast<std::size_t>(region.rows.size() * region.columns.size() * info.pixel_bytes()));
    image.read(region, pixels);
    INFO("seed " << seed << ", " << to_string(region));
    REQUIRE(pixels == drawn.pixels(region));
  }
}
}   // namespace
TEST_CASE("tiles and strips, interleaved and planar, of every type of samples, with every lossless compression") {
  const TestFolder folder;
  const std::array<std::string, 3> modes{"w", "w8", "wb"};   // every day, one of them for each case
  std::uint64_t seed = lrcnn::testing::day();                // and a number for each case
  MESSAGE("seed " << seed);
  const Random random(seed);
  int done = 0;
  for (int type = 0; type < 10; ++type)
    for (const std::uint16_t compression :
         {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_ZSTD, COMPRESSION_LZMA}) {
      if (TIFFIsCODECConfigured(compression) != 1) continue;
      for (const bool tiled : {true, false})
        for (const bool planar : {false, true}) {
          for (std::size_t m = 0; m < modes.size(); ++m) {
            if (!lrcnn::testing::thorough() && m != random.below(seed, 3)) continue;
            const std::string mode = modes[m];
            const auto sample = static_cast<SampleType>(type);
            const Index channels = 1 + static_cast<Index>(seed % 4);
            const auto drawn = draw_image(75, 101, channels, 32, 48, sample);
            TiffKind kind{.tiled = tiled, .planar = planar, .compression = compression, .mode = mode};
            if (!tiled) kind.tile_height = 1 + static_cast<Index>(seed % 30);
            const bool predicts = compression != COMPRESSION_NONE && compression != COMPRESSION_PACKBITS && sample_bytes(sample) <= 4 && seed % 2;
            const bool is_float = sample == SampleType::f16 || sample == SampleType::f32;
            // libtiff 4.5 writes floating point with a predictor and in the other byte order with its bytes swapped, but reads it as specified.
            if (predicts && !(is_float && mode == "wb")) kind.predictor = is_float ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL;
            const std::string what = std::string(sample_name(sample)) + ", compression " + std::to_string(compression) +
                                     (tiled ? ", tiles" : ", strips") + (planar ? ", planar, " : ", ") + mode + ", predictor " +
                                     std::to_string(kind.predictor) + ", case " + std::to_string(seed);
            INFO(what);
            write_tiff(folder / "image.tif", *drawn, kind);
            check_same(folder / "image.tif", *drawn, {}, seed);
            if (!tiled) check_same(folder / "image.tif", *drawn, {.strip_bytes = 1}, seed);   // row by row
            ++done;
          }
          ++seed;
        }
    }
  CHECK(done >= 10 * 4 * 4);
}
TEST_CASE("compressions with samples of their own kind: WebP, LERC, and JPEG in tiles, strips and planes") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  if (TIFFIsCODECConfigured(COMPRESSION_WEBP) == 1)
    for (const Index channels : {3, 4}) {
      const auto drawn = draw_image(70, 90, channels, 32, 48);
      drawn->value = [](Index y, Index x, Index c) { return 1 + drawn_sample(y, x, c); };   // where alpha is 0, WebP changes colours
      CAPTURE(channels);
      write_tiff(path, *drawn, {.compression = COMPRESSION_WEBP, .photometric = PHOTOMETRIC_RGB});
      check_same(path, *drawn, {}, 5);
    }
  if (TIFFIsCODECConfigured(COMPRESSION_LERC) == 1)
    for (const SampleType sample : {SampleType::u8, SampleType::i16, SampleType::u32, SampleType::f32, SampleType::f64}) {
      const auto drawn = draw_image(70, 90, 1, 32, 48, sample);
      const std::string what(sample_name(sample));
      INFO(what);
      write_tiff(path, *drawn, {.compression = COMPRESSION_LERC});
      check_same(path, *drawn, {}, 6);
    }
  // JPEG: what libtiff's own way to colours has.
  for (const bool tiled : {true, false})
    for (const bool planar : {false, true})
      for (const std::uint16_t photometric : {PHOTOMETRIC_RGB, PHOTOMETRIC_YCBCR}) {
        if (planar && photometric == PHOTOMETRIC_YCBCR) continue;
        const auto drawn = draw_image(75, 101, 3, 32, 48);
        write_tiff(path, *drawn, {.tiled = tiled, .planar = planar, .compression = COMPRESSION_JPEG, .photometric = photometric});
        TIFF* const tiff = TIFFOpen(path.c_str(), "r");
        std::vector<std::uint32_t> colours(75 * 101);
        REQUIRE(TIFFReadRGBAImageOriented(tiff, 101, 75, colours.data(), ORIENTATION_TOPLEFT, 1) == 1);
        TIFFClose(tiff);
        std::vector<std::byte> expected;
        for (const std::uint32_t c : colours)
          for (const auto part : {TIFFGetR(c), TIFFGetG(c), TIFFGetB(c)}) expected.push_back(static_cast<std::byte>(part));
        CHECK(decode_all(*open_tiff(path)) == expected);
        CHECK(decode_all(*open_tiff(path, {.strip_bytes = 1})) == expected);
      }
}
TEST_CASE("grey of 1, 2 and 4 bits becomes 0 to 255, and where 0 is white, samples are inverted") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  for (const Index bits : {1, 2, 4, 8, 16, 32})
    for (const std::uint16_t photometric : {PHOTOMETRIC_MINISBLACK, PHOTOMETRIC_MINISWHITE})
      for (const std::uint16_t compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4, COMPRESSION_JBIG}) {
        const bool fax = compression != COMPRESSION_NONE && compression != COMPRESSION_LZW;
        if ((fax && bits != 1) || TIFFIsCODECConfigured(compression) != 1) continue;
        const std::string what =
            std::to_string(bits) + " bits, compression " + std::to_string(compression) + ", colours " + std::to_string(photometric);
        INFO(what);
        const SampleType sample = bits == 16 ? SampleType::u16 : bits == 32 ? SampleType::u32 : SampleType::u8;
        const auto stored = draw_image(40, 53, 1, 16, 53, sample);
        if (bits < 8) stored->value = [&](Index y, Index x, Index) { return drawn_sample(y, x, 0) % (1 << bits); };
        TiffKind kind{
            .tiled = false, .compression = compression, .photometric = photometric, .tile_height = compression == COMPRESSION_JBIG ? 40 : 16};
        if (bits < 8) kind.bits = bits;
        TIFF* const tiff = TIFFOpen(path.c_str(), "w");
        set_tiff_kind(tiff, stored->info(), kind);
        write_tiff_pixels(tiff, stored->info(), kind, [&](const ImageRegion& r) {
          const auto samples = stored->pixels(r);
          if (bits >= 8) return samples;
          const Index line = ceil_div(53 * bits, 8);
          std::vector<std::byte> packed(static_cast<std::size_t>(r.rows.size() * line));
          for (Index y = 0; y < r.rows.size(); ++y)
            for (Index x = 0; x < 53; ++x)
              packed[static_cast<std::size_t>(y * line + x * bits / 8)] |= samples[static_cast<std::size_t>(y * 53 + x)]
                                                                           << static_cast<int>(8 - bits - x * bits % 8);
          return packed;
        });
        TIFFClose(tiff);
        const auto seen = draw_image(40, 53, 1, 16, 53, sample);
        auto expected = stored->pixels(whole(stored->info()));
        if (bits < 8)
          for (std::byte& b : expected) b = static_cast<std::byte>(std::to_integer<int>(b) * 255 / ((1 << bits) - 1));
        if (photometric == PHOTOMETRIC_MINISWHITE)
          for (std::byte& b : expected) b = ~b;
        CHECK(decode_all(*open_tiff(path)) == expected);
        CHECK(decode_all(*open_tiff(path, {.strip_bytes = 1})) == expected);
      }
}
TEST_CASE("where 0 is white, alpha is as it is stored") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  for (const SampleType sample : {SampleType::u8, SampleType::u16})
    for (const bool tiled : {true, false})
      for (const bool planar : {true, false}) {
        const auto drawn = draw_image(40, 53, 2, 16, 16, sample);
        write_tiff(path, *drawn, {.tiled = tiled, .planar = planar, .photometric = PHOTOMETRIC_MINISWHITE, .tile_height = 16, .tile_width = 16});
        const int white = sample == SampleType::u8 ? 255 : 65535;
        drawn->value = [&](Index y, Index x, Index c) { return c == 0 ? white - drawn_sample(y, x, c) : drawn_sample(y, x, c); };
        CHECK(decode_all(*open_tiff(path)) == drawn->pixels(whole(drawn->info())));
        CHECK(decode_all(*open_tiff(path, {.strip_bytes = 1})) == drawn->pixels(whole(drawn->info())));
      }
}
TEST_CASE("directories and those below them, each with its own layout") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const std::array images{draw_image(60, 70, 3, 16, 16), draw_image(30, 35, 3, 16, 16), draw_image(15, 18, 1, 16, 16, SampleType::f32),
                          draw_image(9, 5, 2, 16, 16, SampleType::u16)};
  // The first has the second and third below it; the last is a page of its own.
  TIFF* const tiff = TIFFOpen(path.c_str(), "w8");
  for (int i = 0; i < 4; ++i) {
    const ImageInfo& info = images[static_cast<std::size_t>(i)]->info();
    const TiffKind kind{.tiled = i != 2, .tile_height = 16, .tile_width = 16};
    set_tiff_kind(tiff, info, kind);
    if (i == 0) {
      const std::array<std::uint64_t, 2> below{};
      TIFFSetField(tiff, TIFFTAG_SUBIFD, 2, below.data());
      TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, "the first");
    }
    if (i == 1 || i == 2) TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
    write_tiff_pixels(tiff, info, kind, [&](const ImageRegion& r) { return images[static_cast<std::size_t>(i)]->pixels(r); });
    REQUIRE(TIFFWriteDirectory(tiff) == 1);
  }
  TIFFClose(tiff);
  const auto directories = tiff_directories(path);
  REQUIRE(directories.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const TiffDirectory& d = directories[i];
    CHECK(d.directory == (i == 3));
    CHECK(d.sub_directory == (i == 1 ? 0 : i == 2 ? 1 : -1));
    CHECK(d.height == images[i]->info().height);
    CHECK(d.width == images[i]->info().width);
    CHECK(d.channels == images[i]->info().channels);
    CHECK(d.bits == 8 * sample_bytes(images[i]->info().sample));
    CHECK(d.reduced == (i == 1 || i == 2));
    CHECK(d.compression == "uncompressed");
    CHECK(d.description == (i == 0 ? "the first" : ""));
    check_same(path, *images[i], {.directory = d.directory, .sub_directory = d.sub_directory}, i);
  }
}
TEST_CASE("tiles that a sparse file leaves out are 0") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const auto drawn = draw_image(64, 64, 2, 32, 32, SampleType::u16);
  TIFF* const tiff = TIFFOpen(path.c_str(), "w8");
  set_tiff_kind(tiff, drawn->info(), {.compression = COMPRESSION_LZW, .tile_height = 32, .tile_width = 32});
  auto tile = drawn->pixels({{0, 32}, {32, 64}});
  TIFFWriteEncodedTile(tiff, 1, tile.data(), static_cast<tmsize_t>(tile.size()));
  TIFFClose(tiff);
  drawn->value = [](Index y, Index x, Index c) { return y < 32 && x >= 32 ? drawn_sample(y, x, c) : 0; };
  check_same(path, *drawn, {}, 1);
}
TEST_CASE("strips that a sparse file leaves out are 0, whether they are decoded whole or by rows") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  for (const bool planar : {false, true}) {
    const auto drawn = draw_image(60, 40, 2, 16, 40);
    const TiffKind kind{.tiled = false, .planar = planar, .compression = COMPRESSION_LZW, .tile_height = 16};
    TIFF* const tiff = TIFFOpen(path.c_str(), "w8");
    set_tiff_kind(tiff, drawn->info(), kind);
    for (const Index strip : {1, 3}) {   // of each plane; the last has 12 rows
      const ImageRegion rows{{16 * strip, std::min<Index>(60, 16 * strip + 16)}, {0, 40}};
      const auto both = drawn->pixels(rows);
      for (Index plane = 0; plane < (planar ? 2 : 1); ++plane) {
        std::vector<std::byte> one;
        for (std::size_t i = 0; i < both.size(); ++i)
          if (!planar || static_cast<Index>(i % 2) == plane) one.push_back(both[i]);
        TIFFWriteEncodedStrip(tiff, static_cast<std::uint32_t>(4 * plane + strip), one.data(), static_cast<tmsize_t>(one.size()));
      }
    }
    TIFFClose(tiff);
    drawn->value = [](Index y, Index x, Index c) { return y / 16 % 2 == 1 ? drawn_sample(y, x, c) : 0; };
    check_same(path, *drawn, {}, 1);
    check_same(path, *drawn, {.strip_bytes = 1}, 2);
  }
}
TEST_CASE("several decoders of a file work at once, each with its errors") {
  const TestFolder folder;
  const auto path = folder / "image.tif";
  const auto drawn = draw_image(400, 400, 3, 32, 32);
  write_tiff(path, *drawn, {.compression = COMPRESSION_ADOBE_DEFLATE, .tile_height = 32, .tile_width = 32});
  const auto file = open_tiff(path);
  std::vector<std::thread> threads;
  std::array<int, 4> same{};
  for (std::size_t i = 0; i < same.size(); ++i)
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 5; ++turn) {
        same[i] += decode_all(*file) == drawn->pixels(whole(drawn->info()));
        error_of([&] { open_tiff(path, {.directory = 7}); });
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int s : same) CHECK(s == 5);
}
TEST_CASE("a decoder says what it keeps: a tile as it is stored, and one decoded where it is put together from planes") {
  const TestFolder folder;
  for (const bool planar : {false, true}) {
    const auto drawn = draw_image(64, 64, 3, 32, 32);
    write_tiff(folder / "image", *drawn, {.planar = planar, .tile_height = 32, .tile_width = 32});
    const auto decoder = open_tiff(folder / "image")->decoder();
    std::vector<std::byte> tile(32 * 32 * 3);
    decoder->decode(0, 0, tile);
    CHECK(decoder->kept_bytes() == (planar ? 2 * 1024 + 16 * 12 : 3072 + 16 * 4));
  }
}
TEST_CASE("many planes are read strip by strip, not as many open files") {
  const TestFolder folder;
  for (const Index channels : {16, 17}) {
    const auto drawn = draw_image(20, 30, channels, 8, 30);
    write_tiff(folder / "image", *drawn, {.tiled = false, .planar = true, .tile_height = 8});
    CHECK(open_tiff(folder / "image", {.strip_bytes = 1})->info().in_order == (channels == 16));
    check_same(folder / "image", *drawn, {.strip_bytes = 1}, 3);
  }
}
TEST_CASE("TIFF is known by its first bytes") {
  const TestFolder folder;
  const auto drawn = draw_image(20, 20, 1, 16, 16);
  for (const char* mode : {"wl", "wb", "wl8", "wb8"}) {
    write_tiff(folder / "image", *drawn, {.tile_height = 16, .tile_width = 16, .mode = mode});
    CHECK(decode_all(*open_image(folder / "image", std::array{tiff_format})) == drawn->pixels(whole(drawn->info())));
  }
  for (const std::string bytes : {"", "II", "II*", "II\0*", "MM*\0", "IM\0*", "\x89PNG"})
    CHECK_FALSE(tiff_format.recognizes({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
}
