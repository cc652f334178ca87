// A network over 65,536 x 65,536 pixels of a sparse BigTIFF, forward, in less than 2 GB: 4.3 gigapixels, which as floats would take 17 GB.
// The slide is empty but for drawn tiles; rows that come out are compared with what was drawn. Alone, because it measures the process's memory.
#include "data/support.hpp"
#include "support/thorough.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/data/image_source.hpp>
#include <lrcnn/data/tiff.hpp>
#include <lrcnn/exec/resident.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <tiffio.h>
#include <zlib.h>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
constexpr Index tile = 512, width = 65536;
/// What is drawn at a pixel: nothing in most tiles, a slope that is another one in each tile in the others.
bool is_drawn(Index row, Index column) { return (37 * row + 11 * column) % 97 == 0; }
std::uint8_t pixel(Index y, Index x) {
  const Index row = y / tile, column = x / tile;
  return is_drawn(row, column) ? static_cast<std::uint8_t>((y + 3 * x + 13 * row + 29 * column) % 251 + 1) : 0;
}
Bytes packed(const Bytes& pixels) {
  Bytes out(compressBound(pixels.size()));
  uLongf size = out.size();
  if (compress2(out.data(), &size, pixels.data(), pixels.size(), 1) != Z_OK) throw std::runtime_error("zlib cannot pack a tile");
  out.resize(size);
  return out;
}
/// Tiles are packed here, so that one empty tile serves for all of them.
void write_slide(const std::filesystem::path& path, Index height) {
  TIFF* file = TIFFOpen(path.c_str(), "w8");
  REQUIRE(file != nullptr);
  TIFFSetField(file, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(width));
  TIFFSetField(file, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(height));
  TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 1);
  TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(file, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
  TIFFSetField(file, TIFFTAG_TILEWIDTH, static_cast<std::uint32_t>(tile));
  TIFFSetField(file, TIFFTAG_TILELENGTH, static_cast<std::uint32_t>(tile));
  Bytes pixels(tile * tile, 0);
  const Bytes empty = packed(pixels);
  std::uint32_t number = 0;
  for (Index row = 0; row < height / tile; ++row)
    for (Index column = 0; column < width / tile; ++column, ++number) {
      Bytes drawn;
      if (is_drawn(row, column)) {
        for (Index y = 0; y < tile; ++y)
          for (Index x = 0; x < tile; ++x) pixels[static_cast<std::size_t>(y * tile + x)] = pixel(row * tile + y, column * tile + x);
        drawn = packed(pixels);
      }
      const Bytes& bytes = drawn.empty() ? empty : drawn;
      REQUIRE(TIFFWriteRawTile(file, number, const_cast<std::uint8_t*>(bytes.data()), static_cast<tmsize_t>(bytes.size())) ==
              static_cast<tmsize_t>(bytes.size()));
    }
  TIFFClose(file);
}
/// Compares each row of averages with what was drawn, as it comes.
class Compared final : public RowSink<float> {
 public:
  void write(Index, const View<const float>& src) override {
    for (Index y = src.row0; y < src.row0 + src.rows; ++y, ++rows)
      for (Index x = 0; x < src.w; ++x) {
        double sum = 0;
        if (is_drawn(8 * y / tile, 8 * x / tile))
          for (Index dy = 0; dy < 8; ++dy)
            for (Index dx = 0; dx < 8; ++dx) sum += pixel(8 * y + dy, 8 * x + dx);
        const double expected = std::max(0.0, 2 * sum / 64 / 255 - 0.25);
        if (std::abs(static_cast<double>(src(0, 0, y, x)) - expected) > 1e-5) ++wrong;
      }
  }
  Index rows = 0, wrong = 0;
};
}   // namespace
TEST_CASE("a network reads a slide of gigapixels in less than 2 GB, and each of its rows is what was drawn") {
  using Net = Sequential<AvgPool<Window{.kernel = 8, .stride = 8}>, Conv<1, Window{.kernel = 1, .pad = 0}>, ReLU>;
  const Index height = lrcnn::testing::thorough() ? 65536 : 4096;
  const TemporaryFolder folder;
  write_slide(folder / "slide.tif", height);
  const Index before = resident_bytes();
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 128_MiB, .threads = 1});
  const ImageSource<float> source(CachedImage(open_tiff(folder / "slide.tif"), cache));
  const Input input{1, 1, height, width};
  const std::vector<float> parameters{2, -0.25f};   // weight and bias
  PolicySpec policy = Policy<Workspace<0>>::value;
  policy.partitions[0] = {Cut::share, height / 128, height / 128, 0};
  BasicPredictor<Reference<float>> predictor(Net::layers, policy, input, parameters);
  Compared sink;
  Index most = 0;
  struct Watch {
    Index& most;
    void before(const Plan&, Index) {}
    void after(const Plan&, Index) { most = std::max(most, resident_bytes()); }
  };
  predictor.run(source, sink, Watch{most});
  CHECK(sink.rows == height / 8);
  CHECK(sink.wrong == 0);
  CHECK(most - before < 2'000'000'000);
  CHECK(cache->report().most_bytes <= 128_MiB);
  CHECK(cache->report().decoded_tiles == height / tile * width / tile);
  MESSAGE(height << " x " << width << " pixels: " << format_bytes(most - before) << " beyond what the process had, " << cache->report().seconds_waited
                 << " s spent waiting for tiles");
}
