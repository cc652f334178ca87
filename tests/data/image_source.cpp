// data/image_source.hpp: numbers of large images, the same for every layout, tile and cut of rows; what a plan reads is expected.
#include "support/drawn_image.hpp"
#include "support/error_of.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/data/image_source.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
namespace {
std::shared_ptr<TileCache> cache_of(Index bytes, int threads = 0) {
  return std::make_shared<TileCache>(TileCacheOptions{.bytes = bytes, .threads = threads});
}
}   // namespace
TEST_CASE("samples of every type become (sample / full - mean) / deviation, in any layout and by any rows") {
  for (int type = 0; type < 10; ++type)
    for (const Index block : {Index{1}, Index{8}}) {
      const auto sample = static_cast<SampleType>(type);
      INFO(sample_name(sample) << ", blocks of " << block);
      const auto image = draw_image(50, 37, 4, 16, 12, sample);
      const ImageSourceOptions options{.region = {{3, 45}, {2, 33}}, .channels = {2, 0, 1}, .normalization = {{0.1, 0.2, 0.3}, {0.5, 2, 4}}};
      const ImageSource<double> source(std::vector{CachedImage(image, cache_of(16 * 12 * 4 * 8 * 2)), CachedImage(image, cache_of(100'000))},
                                       options);
      const Shape shape{2, 3, 42, 31};
      REQUIRE(source.shape() == shape);
      const double full = sample == SampleType::u8 ? 255 : sample == SampleType::u16 ? 65535 : 1;
      std::vector<double> values(static_cast<std::size_t>(2 * round_up(3, block) * 42 * 31), -1);
      for (Index y = 0; y < 42; y += 5) {
        const Range rows{y, std::min<Index>(42, y + 5)};
        std::vector<double> slab(static_cast<std::size_t>(2 * round_up(3, block) * rows.size() * 31), -1);
        const auto view = dense_view(slab.data(), 2, 3, rows, 31, block);
        source.read(0, view);
        for (Index i = 0; i < 2; ++i)
          for (Index c = 0; c < 3; ++c)
            for (Index row = rows.begin; row < rows.end; ++row)
              for (Index x = 0; x < 31; ++x) {
                const double stored = drawn_sample(row + 3, x + 2, item(options.channels, c));
                REQUIRE(
                    view(i, c, row, x) ==
                    doctest::Approx((stored / full - item(options.normalization.mean, c)) / item(options.normalization.deviation, c)).epsilon(1e-12));
              }
      }
    }
}
TEST_CASE("a network's run tells the source what it will read, in order, and reads just that") {
  using Net = Sequential<Conv<4>, ReLU, MaxPool<>, Conv<4>, ReLU, GlobalAvgPool, Linear<3>>;
  using Rows = Policy<Overlap<6>, CheckpointAtPools, RecomputeAll>;
  struct Watched final : RowSource<double> {
    explicit Watched(const RowSource<double>& source) : of(source) {}
    Shape shape() const override { return of.shape(); }
    void read(Index first, const View<double>& dst) const override {
      was_read.push_back({{first, first + dst.n}, dst.range()});
      of.read(first, dst);
    }
    void expect(std::span<const RowRequest> requests) const override {
      expected.assign(requests.begin(), requests.end());
      of.expect(requests);
    }
    const RowSource<double>& of;
    mutable std::vector<RowRequest> was_read{}, expected{};
  };
  const auto image = draw_image(48, 40, 3, 7, 9);
  const ImageSource<double> tiled(CachedImage(image, cache_of(6 * 7 * 9 * 3, 1)), {.normalization = {{0.2, 0.2, 0.2}, {0.1, 0.2, 0.3}}});
  const Watched watched(tiled);
  std::vector<double> pixels(static_cast<std::size_t>(3 * 48 * 40));
  tiled.read(0, dense_view(pixels.data(), 1, 3, {0, 48}, 40));
  const MemorySource<double> whole_image(pixels.data(), {1, 3, 48, 40});
  const std::vector<std::int32_t> labels{1};
  Trainer<Net, Rows, Reference<double>> by_tiles({1, 3, 48, 40}, Sgd{.lr = 0.1}), in_memory({1, 3, 48, 40}, Sgd{.lr = 0.1});
  for (int step = 0; step < 2; ++step) {
    watched.was_read.clear();
    CHECK(by_tiles.step(watched, labels).loss == in_memory.step(whole_image, labels).loss);
    CHECK(watched.was_read.size() > 6);
    CHECK(watched.was_read == watched.expected);
  }
}
TEST_CASE("errors of image sources name the image and what differs") {
  const auto large = CachedImage(draw_image(40, 30, 3, 10, 10), cache_of(10000)), small = CachedImage(draw_image(20, 30, 3, 10, 10), cache_of(10000));
  const auto other = CachedImage(draw_image(40, 30, 3, 10, 10, SampleType::u16), cache_of(10000));
  CHECK(error_of([] { ImageSource<float>(std::vector<CachedImage>{}); }) ==
        "lrcnn: a batch of no images is to be read; it has at least one; give the images");
  CHECK(error_of([&] {
          ImageSource<float>(std::vector{small, large});
        }) ==
        "lrcnn: image 'drawn.img' has 40 rows and 30 columns, and 'drawn.img' has 20 rows and 30 columns; images of a batch have one size; give a "
        "region that lies within all of them, or batches of one image");
  CHECK(
      error_of([&] {
        ImageSource<float>(std::vector{large, small});
      }) ==
      "lrcnn: image 'drawn.img' has 20 rows and 30 columns, and rows 0 to 39, columns 0 to 29 of it are to be read; what is read of each image of a "
      "batch is the same region, and lies within it; choose another region, or images of one size");
  CHECK(error_of([&] {
          CHECK(ImageSource<float>(std::vector{small, large}, {.region = {{0, 20}, {0, 30}}}).shape() == Shape{2, 3, 20, 30});   // all of the first
          ImageSource<float>(std::vector{large, other});
        }) ==
        "lrcnn: image 'drawn.img' has 3 channels of u16, and 'drawn.img' has 3 channels of u8; images of a batch have the same channels and samples; "
        "convert one of them, or use batches of one image");
  CHECK(error_of([&] {
          ImageSource<float>(large, {.channels = {0, 3}});
        }) == "lrcnn: channel 3 of image 'drawn.img' is to be read; it has channels 0 to 2; choose channels that are there");
  CHECK(error_of([&] {
          ImageSource<float>(large, {.normalization = {{0.5}, {0.5}}});
        }) == "lrcnn: normalisation with 1 means and 1 deviations; the images have 3 channels; give one of each per channel, or none");
  const ImageSource<float> source(large);
  std::vector<float> values(30 * 3);
  CHECK(error_of([&] {
          source.read(0, dense_view(values.data(), 1, 3, {40, 41}, 30));
        }) ==
        "lrcnn: batch of 1x3x40x30 from image files is asked for images 0 to 0, rows 40 to 40 of 3 channels and 30 columns; what is read lies within "
        "the batch; give the network the batch's shape");
}
