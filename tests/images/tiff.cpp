// data/tiff.hpp: what libtiff has stored comes back, whatever the layout, the samples and the compression.
#include "images/tiff_files.hpp"
#include "support/error_of.hpp"
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/tiff.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
namespace {
std::shared_ptr<TileCache> cache() { return std::make_shared<TileCache>(TileCacheOptions{.bytes = 8_MiB, .threads = 1}); }
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
  std::uint64_t seed = 1;
  int done = 0;
  for (int type = 0; type < 10; ++type)
    for (const std::uint16_t compression :
         {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_ZSTD, COMPRESSION_LZMA}) {
      if (TIFFIsCODECConfigured(compression) != 1) continue;
      for (const bool tiled : {true, false})
        for (const bool planar : {false, true})
          for (const char* mode : {"w", "w8", "wb"}) {
            const auto sample = static_cast<SampleType>(type);
            const Index channels = 1 + static_cast<Index>(seed % 4);
            const auto drawn = draw_image(75, 101, channels, 32, 48, sample);
            TiffKind kind{.tiled = tiled, .planar = planar, .compression = compression, .mode = mode};
            if (!tiled) kind.tile_height = 1 + static_cast<Index>(seed % 30);
            const bool predicts = compression != COMPRESSION_NONE && compression != COMPRESSION_PACKBITS && sample_bytes(sample) <= 4 && seed % 2;
            const bool is_float = sample == SampleType::f16 || sample == SampleType::f32;
            // libtiff 4.5 writes floating point with a predictor and in the other byte order with its bytes swapped, but reads it as specified.
            if (predicts && !(is_float && std::string(mode) == "wb")) kind.predictor = is_float ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL;
            const std::string what = std::string(sample_name(sample)) + ", compression " + std::to_string(compression) +
                                     (tiled ? ", tiles" : ", strips") + (planar ? ", planar, " : ", ") + mode + ", predictor " +
                                     std::to_string(kind.predictor) + ", case " + std::to_string(seed);
            INFO(what);
            write_tiff(folder / "image.tif", *drawn, kind);
            check_same(folder / "image.tif", *drawn, {}, seed);
            if (!tiled) check_same(folder / "image.tif", *drawn, {.strip_bytes = 1}, seed);   // row by row
            ++seed, ++done;
          }
    }
  CHECK(done >= 10 * 5 * 12);
}
