// Batches that stay where their samples are: the values of Loader's, and what is refused.
#include "support/error_of.hpp"
#include "support/random_array.hpp"
#include <lrcnn/data/direct_loader.hpp>
#include <lrcnn/data/shapes.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// All of a batch as dense NCHW.
template <class Source>
std::vector<float> values(const Source& source) {
  const Shape s = source.shape();
  std::vector<float> all(static_cast<std::size_t>(s.count()));
  source.read(0, dense_view(all.data(), s.n, s.c, {0, s.h}, s.w));
  return all;
}
std::shared_ptr<const SampleArray> shared(const Dataset& data) { return std::make_shared<const SampleArray>(data); }
}   // namespace
TEST_CASE("a direct loader has the batches of a loader, bit for bit") {
  const Dataset data = make_shapes({.count = 40});
  for (const bool shuffle : {true, false})
    for (const bool drop_last : {true, false})
      for (const Augmentation& cut : {Augmentation{}, Augmentation{.flip = true, .pad = 3, .fill = 7}, Augmentation{.crop_h = 20, .crop_w = 17}}) {
        const LoaderOptions options{
            .batch = 12, .shuffle = shuffle, .drop_last = drop_last, .seed = 4, .normalization = normalization_of(data), .augmentation = cut};
        const Loader<float> loader(data, options);
        const DirectLoader<float> direct(shared(data), data.labels, options);
        CHECK(direct.batches() == loader.batches());
        CHECK(direct.input() == loader.input());
        CHECK(direct.order() == loader.order());
        Index position = 1;
        for (const auto& batch : direct.epoch(2, 1)) {
          const auto wanted = loader.batch(2, position);
          CHECK(batch.shape() == wanted.shape());
          CHECK(values(batch) == values(wanted));
          CHECK(std::ranges::equal(batch.labels(), wanted.labels()));
          CHECK(std::ranges::equal(batch.indices(), wanted.indices()));
          CHECK(values(direct.batch(2, position)) == values(batch));
          ++position;
        }
        CHECK(position == loader.batches());
      }
}
TEST_CASE("a value is the number at its place in the array, normalised; rows, layout and order of reads do not matter") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomArray drawn = random_array(seed);
    const DirectSource<double> source(std::make_shared<const SampleArray>(drawn.array()), drawn.samples, drawn.options);
    const Shape s = source.shape();
    const SampleLayout& l = drawn.layout;
    const auto& [mean, deviation] = drawn.options.normalization;
    std::vector<double> blocked(static_cast<std::size_t>(stored_elements(1, s.c, 1, s.w, 4)));
    bool good = true;
    for (Index i = s.n - 1; i >= 0; --i)
      for (Index y = s.h - 1; y >= 0; --y) {
        const auto row = dense_view(blocked.data(), 1, s.c, {y, y + 1}, s.w, 4);
        source.read(i, row);
        const Placement p = drawn.options.placements.empty() ? Placement{} : item(drawn.options.placements, i);
        for (Index c = 0; c < s.c; ++c)
          for (Index x = 0; x < s.w; ++x) {
            const Index from_x = p.x + x, from_y = p.y + y;
            double number = drawn.options.fill;
            double full = 1;
            with_array_type(drawn.type, [&]<class S>(const S*) {
              full = full_sample<S>;
              number = static_cast<double>(static_cast<S>(number));
              if (0 <= from_x && from_x < l.shape.w && 0 <= from_y && from_y < l.shape.h)
                number = static_cast<double>(
                    static_cast<const S*>(drawn.data)[item(drawn.samples, i) * l.image + from_y * l.row + from_x * l.column + c * l.channel]);
            });
            const double m = mean.empty() ? 0 : item(mean, c), d = deviation.empty() ? 1 : item(deviation, c);
            good = good && row(0, c, y, p.flip ? s.w - 1 - x : x) == (number / full - m) / d;
          }
      }
    INFO("seed ", seed);
    CHECK(good);
  }
}
TEST_CASE("arrays, batches and loaders that cannot be are refused") {
  const std::vector<std::uint8_t> bytes(1000, 3);
  const SampleLayout small = SampleLayout::planes({2, 3, 4, 5});
  CHECK(error_of([&] {
          SampleArray(bytes.data(), SampleLayout::planes({0, 3, 4, 5}));
        }) == "lrcnn: array of images 0x3x4x5 is empty; an array has at least one image, row, column and channel; check pointer and extents");
  CHECK(error_of([&] { SampleArray(static_cast<const std::uint8_t*>(nullptr), small); }) ==
        "lrcnn: array of images 2x3x4x5 without memory; an array has at least one image, row, column and channel; check pointer and extents");
  SampleLayout crossed = small;
  crossed.row = 4;
  CHECK(error_of([&] { SampleArray(bytes.data(), crossed); }) ==
        "lrcnn: array of images 2x3x4x5 with distances of 60 from image to image, 4 from row to row, 1 from column to column and 20 from channel to "
        "channel; columns lie one after the other in planes, or channels do in pixels, and rows do not overlap; copy the images to one of these "
        "layouts");
  CHECK(error_of([&] {
          SampleArray(bytes.data() + 1, ArrayType::f32, SampleLayout::planes({1, 1, 1, 4}));
        })
            .starts_with(
                "lrcnn: array of images 1x1x1x4 of f32 begins at an address that is no multiple of 4; numbers lie at multiples of their size; "));
  const auto array = std::make_shared<const SampleArray>(bytes.data(), small);
  const auto refused = [&](std::vector<Index> samples, const DirectOptions& options = {}) {
    return error_of([&] { DirectSource<float>(array, samples, options); });
  };
  CHECK(refused({0, 2}) ==
        "lrcnn: sample 2 is asked for at place 1 of a batch; the array has samples 0 to 1; draw indices below the number of samples");
  CHECK(refused({-1}) ==
        "lrcnn: sample -1 is asked for at place 0 of a batch; the array has samples 0 to 1; draw indices below the number of samples");
  CHECK(refused({}) ==
        "lrcnn: batch of 0x3x4x5 from an array; it has at least one image, row and column; give samples, and extents of the crop that are not "
        "negative");
  CHECK(refused({0, 1}, {.placements = {{}}}) == "lrcnn: 1 placements are given for 2 samples; each sample has one; give one for each, or none");
  CHECK(refused({0}, {.fill = 0.5}) ==
        "lrcnn: pixels outside the images are to be 0.500000, and the images are bytes; bytes are 0 to 255; give a fill that is a byte");
  CHECK(error_of([] { SampleTables<float>(ArrayType::u16, 1, {}, 70000); }) ==
        "lrcnn: pixels outside the images are to be 70000.000000, and the images are u16; u16 are 0 to 65535; give a fill that is a u16");
  CHECK(
      refused({0}, {.normalization = {{0.5}, {0.5}}}).starts_with("lrcnn: normalisation with 1 means and 1 deviations; the images have 3 channels"));
  const std::vector<Index> both{0, 1};
  const DirectSource<float> source(array, both);
  std::vector<float> room(1000);
  CHECK(error_of([&] {
          source.read(1, dense_view(room.data(), 2, 3, {0, 4}, 5));
        }) ==
        "lrcnn: batch of 2x3x4x5 from an array is asked for images 1 to 2, rows 0 to 3 of 3 channels and 5 columns; what is read lies within the "
        "batch; give the network the batch's shape");
  const auto loader = [&](std::vector<std::int32_t> labels, const LoaderOptions& options) {
    return error_of([&] { DirectLoader<float>(array, labels, options); });
  };
  CHECK(loader({0}, {}) ==
        "lrcnn: 1 labels are given for an array of 2 images 3x4x5 of u8; each image has one label; check that both come from the same part");
  CHECK(loader({0, 1}, {.batch = 3, .drop_last = true}) ==
        "lrcnn: loader with batches of 3 images of 2; a batch has at least one image, and with drop_last only full batches are made; choose another "
        "size");
  CHECK(
      loader({0, 1}, {.transform = [](std::span<std::uint8_t>, const Shape&, const Random&) {}}) ==
      "lrcnn: a loader whose samples stay where they are is given a transform; nothing changes the samples' numbers; use Loader, or change the array "
      "beforehand");
  CHECK(loader({0, 1}, {.augmentation = {.crop_h = 9}}).starts_with("lrcnn: crop of 9x5 from images of 4x5"));
  const DirectLoader<float> good(array, {0, 1}, {.batch = 1});
  CHECK(error_of([&] { static_cast<void>(good.batch(0, 2)); }) ==
        "lrcnn: batch 2 of epoch 0; an epoch has batches 0 to 1, and epochs count from 0; check where training is to continue");
  CHECK(error_of([&] { static_cast<void>(good.epoch(-1)); }) ==
        "lrcnn: batch 0 of epoch -1; an epoch has batches 0 to 1, and epochs count from 0; check where training is to continue");
}
