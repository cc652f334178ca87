// Masks in files of every format that has them: the classes that were stored, and the real mask of a plant.
#include "support/drawn_image.hpp"
#include <lrcnn/data/mask_source.hpp>
#include <lrcnn/data/npy.hpp>
#include <lrcnn/data/png.hpp>
#include <lrcnn/data/png_writer.hpp>
#include <lrcnn/data/tiff.hpp>
#include <lrcnn/data/tiff_writer.hpp>
#include <lrcnn/layer/class_balance.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
constexpr std::array formats{tiff_format, png_format, npy_format};
CachedImage cached(const std::filesystem::path& path) {
  return {open_image(path, formats), std::make_shared<TileCache>(TileCacheOptions{.bytes = 16_MiB, .threads = 0})};
}
void write(ImageWriter& writer, const DrawnImage& image) {
  writer.write(image.pixels(whole(image.info())));
  writer.finish();
}
}   // namespace
TEST_CASE("masks come back from PNG, TIFF and .npy, by rows and by region") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "lrcnn_mask_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto mask = draw_image(90, 70, 1, 90, 70);
  mask->value = [](Index y, Index x, Index) { return (y / 9 + x / 4) % 3 == 0 ? 255 : 0; };
  PngWriter png(folder / "mask.png", 90, 70, 1, SampleType::u8);
  TiffWriter tiff(folder / "mask.tif", 90, 70, 1, SampleType::u8, {.tile_height = 32, .tile_width = 16});
  NpyWriter npy(folder / "mask.npy", 90, 70, 1, SampleType::u8);
  for (ImageWriter* writer : std::initializer_list<ImageWriter*>{&png, &tiff, &npy}) write(*writer, *mask);
  const auto wide = draw_image(90, 70, 1, 90, 70, SampleType::i32), numbers = draw_image(90, 70, 2, 90, 70, SampleType::f32);
  wide->value = mask->value;
  NpyWriter integers(folder / "integers.npy", 90, 70, 1, SampleType::i32), targets(folder / "targets.npy", 90, 70, 2, SampleType::f32);
  write(integers, *wide), write(targets, *numbers);
  for (const char* name : {"mask.png", "mask.tif", "mask.npy", "integers.npy"}) {
    INFO(name);
    const MaskSource source(cached(folder / name), {.region = {{5, 85}, {3, 70}}, .classes = {.table = {{0, 0}, {255, 1}}}});
    REQUIRE(source.shape() == Shape{1, 1, 80, 67});
    ClassBalance want{.counts = {0, 0}};
    std::vector<std::int32_t> line(67), drawn(67);
    for (Index y = 0; y < 80; ++y) {
      source.classes(0, {y, y + 1}, line);
      for (Index x = 0; x < 67; ++x) ++item(want.counts, item(drawn, x) = mask->value(y + 5, x + 3, 0) / 255);
      REQUIRE(line == drawn);
    }
    CHECK(class_balance(source, 2).counts == want.counts);
  }
  const MaskSource source(cached(folder / "targets.npy"));
  REQUIRE(source.shape() == Shape{1, 2, 90, 70});
  std::vector<float> values(2 * 3 * 70);
  source.values(0, {41, 44}, values);
  for (Index c = 0; c < 2; ++c)
    for (Index y = 0; y < 3; ++y)
      for (Index x = 0; x < 70; ++x) REQUIRE(item(values, (c * 3 + y) * 70 + x) == static_cast<float>(drawn_sample(41 + y, x, c)));
  std::filesystem::remove_all(folder);
}
TEST_CASE("the mask of a plant has 63,632 pixels of it") {
  const char* const root = std::getenv("LRCNN_DATA");
  const std::filesystem::path path = std::filesystem::path(root ? root : "") / "large/plant-2454x2056-mask.png";
  if (!root || !std::filesystem::exists(path)) {
    MESSAGE("skipped: set LRCNN_DATA to a folder that has large/plant-2454x2056-mask.png");
    return;
  }
  const MaskSource mask(cached(path), {.classes = {.table = {{0, 0}, {255, 1}}}});
  const ClassBalance balance = class_balance(mask, 2);
  CHECK(balance.counts == std::vector<Index>{2454 * 2056 - 63632, 63632});
  CHECK(balance.weights()[1] == doctest::Approx(2454.0 * 2056 / 2 / 63632));
  LabelWindow window;
  CHECK(window.total(PixelCrossEntropy{}, window.over(Labels::from_rows(mask), 16), {1, 2, 2056, 2454}) == 2454 * 2056);
  CHECK(window.bytes() == 16 * 2454 * 4);
}
