// data/mask_source.hpp: masks in files as labels by rows, the same for every tile and cut of rows; class balance in one pass; errors.
#include "support/drawn_image.hpp"
#include "support/error_of.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/data/mask_source.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
namespace {
std::shared_ptr<TileCache> cache_of(Index bytes, int threads = 0) {
  return std::make_shared<TileCache>(TileCacheOptions{.bytes = bytes, .threads = threads});
}
/// A mask of 0, 100 and 119, as an integer of any type can store them.
int drawn_class(Index y, Index x, Index) {
  static constexpr std::array values{0, 100, 119};
  return values[static_cast<std::size_t>(y / 3 + x * y / 5) % 3];
}
std::shared_ptr<DrawnImage> draw_mask(Index height, Index width, SampleType sample = SampleType::u8, const char* name = "mask.png") {
  ImageInfo info;
  info.path = name;
  info.height = height, info.width = width, info.channels = 1, info.tile_height = 7, info.tile_width = 9, info.sample = sample;
  const auto mask = std::make_shared<DrawnImage>(info);
  mask->value = drawn_class;
  return mask;
}
/// One pixel, whose value no class can have.
struct LargeNumber final : ImageFile {
  struct Decoder final : TileDecoder {
    void decode(Index, Index, std::span<std::byte> out) override {
      const std::int64_t value = std::int64_t{1} << 32;
      std::memcpy(out.data(), &value, sizeof(value));
    }
  };
  ImageInfo pixel{};
  LargeNumber() {
    pixel.path = "large.npy";
    pixel.height = pixel.width = pixel.channels = pixel.tile_height = pixel.tile_width = 1, pixel.sample = SampleType::i64;
  }
  const ImageInfo& info() const override { return pixel; }
  std::unique_ptr<TileDecoder> decoder() const override { return std::make_unique<Decoder>(); }
};
const MaskOptions three{.classes = {.table = {{0, 0}, {100, 1}, {119, 2}}}};
}   // namespace
TEST_CASE("classes of every type of integer, of a region of several masks, by any rows") {
  for (const auto sample : {SampleType::u8, SampleType::i8, SampleType::u16, SampleType::i16, SampleType::u32, SampleType::i32, SampleType::i64}) {
    INFO(sample_name(sample));
    const auto first = draw_mask(40, 30, sample), second = draw_mask(50, 30, sample);
    MaskOptions options = three;
    options.region = {{4, 39}, {2, 29}};
    const MaskSource masks({CachedImage(first, cache_of(7 * 9 * 8 * 5)), CachedImage(second, cache_of(10'000))}, options);
    REQUIRE(masks.shape() == Shape{2, 1, 35, 27});
    CHECK(masks.kind() == LabelKind::pixels);
    for (const Index height : {1, 6, 35})
      for (Index image = 0; image < 2; ++image)
        for (Index row = 0; row < 35; row += height) {
          const Range rows{row, std::min<Index>(row + height, 35)};
          std::vector<std::int32_t> out(static_cast<std::size_t>(rows.size() * 27), -9), want;
          masks.classes(image, rows, out);
          for (Index y = rows.begin; y < rows.end; ++y)
            for (Index x = 0; x < 27; ++x) want.push_back(three.classes.table.at(drawn_class(y + 4, x + 2, 0)));
          REQUIRE(out == want);
        }
  }
}
TEST_CASE("without a table values are classes; values that it does not have are errors or get a class of their own") {
  const CachedImage mask(draw_mask(20, 12), cache_of(1000));
  std::vector<std::int32_t> out(20 * 12), want;
  for (Index y = 0; y < 20; ++y)
    for (Index x = 0; x < 12; ++x) want.push_back(drawn_class(y, x, 0));
  MaskSource(mask).classes(0, {0, 20}, out);
  CHECK(out == want);
  MaskSource(mask, {.classes = {.table = {{100, 1}}, .others = -1}}).classes(0, {0, 20}, out);
  for (std::int32_t& label : want) label = label == 100 ? 1 : -1;
  CHECK(out == want);
  for (const auto sample : {SampleType::u8, SampleType::i32}) {
    const MaskSource strict(CachedImage(draw_mask(20, 12, sample), cache_of(1000)),
                            {.region = {{2, 20}, {1, 12}}, .classes = {.table = {{0, 0}, {100, 1}}}});
    Index row = 0, column = 0;
    for (row = 2; row < 20; ++row) {
      for (column = 1; column < 12 && drawn_class(row, column, 0) != 119;) ++column;
      if (column < 12) break;
    }
    std::vector<std::int32_t> line(11);
    CHECK(error_of<DataError>([&] {
            strict.classes(0, {row - 2, row - 1}, line);
          }) ==
          "lrcnn: mask 'mask.png' has the value 119 in row " + std::to_string(row) + ", column " + std::to_string(column) +
              "; the table of classes has 0, 100; correct the mask, add the value to the table, or give MaskClasses::others a class that the loss "
              "ignores");
  }
  const MaskSource large(CachedImage(std::make_shared<LargeNumber>(), cache_of(1000)));
  std::vector<std::int32_t> one(1);
  CHECK(error_of<DataError>([&] {
          large.classes(0, {0, 1}, one);
        }) ==
        "lrcnn: mask 'large.npy' has the value 4294967296 in row 0, column 0; classes are numbers of 32 bits; correct the mask, add the value to the "
        "table, or give MaskClasses::others a class that the loss ignores");
}
TEST_CASE("a table comes before a function, which comes before what others are") {
  const MaskClasses thousands{.table = {{7000, 1}}, .others = 255, .function = [](std::int64_t v) -> std::optional<std::int32_t> {
                                if (v < 0) return std::nullopt;
                                return static_cast<std::int32_t>(v / 1000);
                              }};
  CHECK(thousands.of(7000) == 1);
  CHECK(thousands.of(7001) == 7);
  CHECK(thousands.of(-1) == 255);
  CHECK(MaskClasses{}.of(-5) == -5);
  CHECK(!MaskClasses{}.of(std::int64_t{1} << 31));
  CHECK(MaskClasses{.others = 9}.of(std::int64_t{1} << 31) == 9);
  CHECK(!MaskClasses{.table = {{0, 0}}}.of(1));
  // A threshold, and the first value that has no class.
  const CachedImage mask(draw_mask(20, 12), cache_of(1000));
  std::vector<std::int32_t> out(20 * 12);
  MaskSource(mask, {.classes = {.function = [](std::int64_t v) { return v >= 110; }}}).classes(0, {0, 20}, out);
  for (Index i = 0; i < 20 * 12; ++i) REQUIRE(item(out, i) == (drawn_class(i / 12, i % 12, 0) == 119));
  const auto half = [](std::int64_t v) { return v == 0 ? std::optional<std::int32_t>(0) : std::nullopt; };
  CHECK(
      error_of<DataError>([&] {
        MaskSource(mask, {.classes = {.function = half}}).classes(0, {0, 20}, out);
      }) ==
      "lrcnn: mask 'mask.png' has the value 100 in row 1, column 5; MaskClasses::function gives it no class; correct the mask, add the value to the "
      "table, or give MaskClasses::others a class that the loss ignores");
}
TEST_CASE("floating-point numbers are targets of chosen channels") {
  for (const auto sample : {SampleType::f16, SampleType::f32, SampleType::f64}) {
    const auto file = draw_image(23, 17, 3, 7, 5, sample);
    const MaskSource targets(CachedImage(file, cache_of(7 * 5 * 3 * 8 * 2)), {.region = {{1, 20}, {3, 17}}, .channels = {2, 0}});
    REQUIRE(targets.shape() == Shape{1, 2, 19, 14});
    std::vector<float> out(2 * 4 * 14);
    for (Index row = 0; row + 4 <= 19; ++row) {
      targets.values(0, {row, row + 4}, out);
      std::size_t at = 0;
      for (const Index channel : {2, 0})
        for (Index y = row; y < row + 4; ++y)
          for (Index x = 0; x < 14; ++x) REQUIRE(out[at++] == static_cast<float>(drawn_sample(y + 1, x + 3, channel)));
    }
  }
}
TEST_CASE("class balance counts each pixel once, by rows, and gives weights that sum to the pixels") {
  const auto file = draw_mask(60, 31);
  const auto cache = cache_of(31 * 7 * 2, 1);
  const MaskSource masks({CachedImage(file, cache), CachedImage(file, cache)}, three);
  std::vector<std::int32_t> out(60 * 31);
  masks.classes(0, {0, 60}, out);
  std::vector<Index> counts(4);
  for (const std::int32_t label : out) counts[static_cast<std::size_t>(label)] += 2;
  const Index decoded = file->decoded;
  const ClassBalance balance = class_balance(masks, 4);
  CHECK(balance.counts == counts);
  CHECK(balance.pixels() == 2 * 60 * 31);
  CHECK(file->decoded - decoded <= 2 * 9 * 4);   // tiles of two masks
  std::vector<std::int32_t> twice(out);
  twice.insert(twice.end(), out.begin(), out.end());
  const Labels in_memory = Labels::of_pixels(twice, 60, 31);
  CHECK(class_balance(in_memory, 4).counts == counts);
  const auto weights = balance.weights();
  double sum = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    sum += weights[k] * static_cast<double>(counts[k]);
    CHECK(weights[k] * static_cast<double>(counts[k]) == doctest::Approx(static_cast<double>(balance.pixels()) / 3));
  }
  CHECK(weights[3] == 0);
  CHECK(PixelCrossEntropy{.weights = weights}.total(in_memory, {2, 4, 60, 31}) == doctest::Approx(sum));
  const ClassBalance fewer = class_balance(masks, 2, 2);
  CHECK(fewer.ignored == counts[2]);
  CHECK(fewer.counts == std::vector<Index>{counts[0], counts[1]});
  CHECK(error_of<DataError>([&] {
          class_balance(masks, 2);
        }).find(" is outside the 2 classes; labels are 0 .. classes - 1, or the one to ignore; ") != std::string::npos);
  CHECK(error_of<DataError>([&] { class_balance(Labels::of_targets(std::vector<float>(4), 1, 2, 2), 2); }) ==
        "lrcnn: 2 classes are to be counted in targets; masks of classes are counted, at least one class; give masks, and the classes of the "
        "network's output");
  CHECK(error_of<DataError>([&] { class_balance(std::vector<std::int32_t>(4), 2); }).find("in one label for each image; ") != std::string::npos);
  CHECK(error_of<DataError>([&] { class_balance(masks, 0); }).find("lrcnn: 0 classes are to be counted in masks; ") == 0);
}
TEST_CASE("a training on images and masks in files is the training in memory; a damaged tile leaves it as it was") {
  using Net = Sequential<Conv<4>, ReLU, Conv<3>>;
  using Rows = Policy<Overlap<5>, RecomputeAll>;
  const auto image = draw_image(56, 30, 2, 16, 30), mask = draw_mask(56, 30);
  bool damaged = false;
  mask->before = [&](Index row, Index) {
    if (damaged && row == 4) throw DataError("lrcnn: tile 4 of mask.png is damaged");
  };
  const auto cache = cache_of(16 * 30 * 2 * 2), small = cache_of(7 * 9 * 4);
  const MaskedImages<double> batch(CachedImage(image, cache), CachedImage(mask, small), {}, three);
  const Shape shape{1, 2, 56, 30};
  std::vector<double> pixels(static_cast<std::size_t>(shape.count()));
  batch.read(0, dense_view(pixels.data(), 1, 2, {0, 56}, 30));
  std::vector<std::int32_t> labels(56 * 30);
  batch.masks().classes(0, {0, 56}, labels);
  const MemorySource<double> in_memory(pixels.data(), shape);
  const PixelCrossEntropy loss{.weights = class_balance(batch.masks(), 3).weights()};
  Trainer<Net, Rows, Reference<double>, PixelCrossEntropy> from_files(shape, Sgd{.lr = 0.1}, {}, loss), plain(shape, Sgd{.lr = 0.1}, {}, loss);
  for (int step = 0; step < 3; ++step) {
    damaged = step == 1;
    const auto before = from_files.read_parameters();
    if (damaged) CHECK(error_of<DataError>([&] { from_files.step(batch); }) == "lrcnn: tile 4 of mask.png is damaged");
    damaged = false;
    CHECK(from_files.read_parameters() == before);
    const Index decoded = mask->decoded;
    CHECK(from_files.step(batch).loss == plain.step(in_memory, Labels::of_pixels(labels, 56, 30)).loss);
    CHECK(from_files.read_parameters() == plain.read_parameters());
    const Index tiles = mask->info().tile_rows() * mask->info().tile_columns();
    CHECK(mask->decoded - decoded <= 2 * tiles);   // a tile may lie in two slabs; the total is known from the class balance
  }
}
TEST_CASE("errors of masks name the files and what differs") {
  const auto image = [](Index height, Index width) { return CachedImage(draw_image(height, width, 3, 10, 10), cache_of(10'000)); };
  const auto mask = [](Index height, Index width) { return CachedImage(draw_mask(height, width), cache_of(10'000)); };
  using Batch = MaskedImages<float>;
  CHECK(
      error_of<DataError>([&] { Batch(image(40, 30), mask(41, 30)); }) ==
      "lrcnn: mask 'mask.png' has 41 rows and 30 columns, and its image 'drawn.img' has 40 rows and 30 columns; a mask has a label for each pixel of "
      "its image; give the image's own mask, or scale it to the image's size without blending labels");
  CHECK(error_of<DataError>([&] {
          Batch(std::vector{image(40, 30), image(40, 30)}, std::vector{mask(40, 30)});
        }) == "lrcnn: 1 masks are given for 2 images; every image has its own; give as many masks as images");
  CHECK(error_of<DataError>([] { MaskSource(std::vector<CachedImage>{}); }) ==
        "lrcnn: a batch of no masks is to be read; it has at least one; give the masks");
  CHECK(error_of<DataError>([&] {
          MaskSource(std::vector{mask(40, 30), mask(41, 30)});
        }) ==
        "lrcnn: mask 'mask.png' has 41 rows and 30 columns, and 'mask.png' has 40 rows and 30 columns; masks of a batch have one size; give a region "
        "that lies within all of them, or batches of one mask");
  CHECK(
      error_of<DataError>([&] { MaskSource(image(40, 30)); }) ==
      "lrcnn: mask 'drawn.img' has 3 channels of u8 (drawn), and 3 of them are to be read; a class is one number for each pixel; choose one channel "
      "(MaskOptions::channels), open a PNG with a palette as indices (PngOptions::palette), or store the classes in a file of one channel");
  CHECK(MaskSource(image(40, 30), {.channels = {1}}).shape() == Shape{1, 1, 40, 30});
  CHECK(error_of<DataError>([&] { MaskSource(CachedImage(draw_mask(9, 9, SampleType::f32), cache_of(1000)), three); }) ==
        "lrcnn: mask 'mask.png' has samples of f32, and classes are given for them; floating-point numbers are targets, which nothing turns into "
        "classes; "
        "leave MaskOptions::classes out, or store integers");
  const MaskSource classes(mask(40, 30));
  std::vector<float> values(40 * 30);
  CHECK(error_of<DataError>([&] {
          classes.values(0, {0, 40}, values);
        }).starts_with("lrcnn: labels by rows of 1x1x40x30 have no function values(); "));
}
