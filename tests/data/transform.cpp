// data/transform.hpp: normalisation, crop, flip.
#include <lrcnn/data/transform.hpp>
#include "support.hpp"
#include <doctest/doctest.h>
#include <limits>
#include <set>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
Dataset counting(Shape shape) {
  Dataset data{.description = "d", .shape = shape, .classes = 1};
  for (Index i = 0; i < shape.count(); ++i) data.images.push_back(static_cast<std::uint8_t>(i * 37 + i / 100));
  data.labels.assign(static_cast<std::size_t>(shape.n), 0);
  return data;
}
}   // namespace
TEST_CASE("normalisation of a data set: each channel gets mean 0 and deviation 1") {
  const Dataset data = counting({5, 3, 6, 7});
  const auto table = normalization_table<double>(normalization_of(data), 3);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (Index i = 0; i < 5; ++i)
      for (std::size_t p = 0; p < 42; ++p) {
        const double v = table[256 * c + data.image(i)[42 * c + p]];
        sum += v, squares += v * v;
      }
    CHECK(sum / 210 == doctest::Approx(0).epsilon(1e-12));
    CHECK(squares / 210 == doctest::Approx(1).epsilon(1e-12));
  }
}
TEST_CASE("normalisation: given numbers, none, a constant channel") {
  const auto plain = normalization_table<double>({}, 2);
  const auto given = normalization_table<float>({.mean = {0.25, 0.5}, .deviation = {0.5, 2}}, 2);
  REQUIRE(plain.size() == 512);
  for (std::size_t b = 0; b < 256; ++b) {
    const double v = static_cast<double>(b) / 255;
    CHECK(plain[b] == v);
    CHECK(plain[256 + b] == v);
    CHECK(given[b] == static_cast<float>((v - 0.25) / 0.5));
    CHECK(given[256 + b] == static_cast<float>((v - 0.5) / 2));
  }
  Dataset constant = counting({2, 1, 3, 3});
  constant.images.assign(18, 51);
  CHECK(normalization_of(constant) == Normalization{{0.2}, {1}});
}
TEST_CASE("normalisation: numbers that do not fit") {
  CHECK(error_of([] { normalization_table<float>({.mean = {0}, .deviation = {1}}, 3); }) ==
        "lrcnn: normalisation with 1 means and 1 deviations; the images have 3 channels; give one of each per "
        "channel, or none");
  CHECK(error_of([] { normalization_table<float>({.mean = {0}, .deviation = {}}, 1); }) != "no error");
  CHECK(error_of([] {
          normalization_table<float>({.mean = {0, 0}, .deviation = {1, 0}}, 2);
        }) ==
        "lrcnn: normalisation of channel 1 with mean 0.000000 and deviation 0.000000; both are finite and the "
        "deviation is above 0; give other numbers");
  CHECK(error_of([] { normalization_table<float>({.mean = {std::numeric_limits<double>::quiet_NaN()}, .deviation = {1}}, 1); }) != "no error");
}
TEST_CASE("cut: every place, flipped and not, against the formula") {
  const Shape from{1, 2, 4, 5};
  const Dataset data = counting(from);
  for (const Shape to : {Shape{1, 2, 4, 5}, Shape{1, 2, 3, 2}, Shape{1, 2, 6, 9}, Shape{1, 2, 1, 1}})
    for (Index y = -7; y <= 7; ++y)
      for (Index x = -10; x <= 10; ++x)
        for (const bool flip : {false, true}) {
          Bytes out(static_cast<std::size_t>(to.count()), 1);
          cut_image(data.image(0), from, out, to, {y, x, flip}, 200);
          bool same = true;
          for (Index c = 0, i = 0; c < to.c; ++c)
            for (Index yy = 0; yy < to.h; ++yy)
              for (Index xx = 0; xx < to.w; ++xx, ++i) {
                const Index sy = yy + y, sx = (flip ? to.w - 1 - xx : xx) + x;
                const bool inside = 0 <= sy && sy < from.h && 0 <= sx && sx < from.w;
                const auto place = static_cast<std::size_t>((c * from.h + sy) * from.w + sx);
                const auto expected = inside ? data.images[place] : 200;
                same = same && out[static_cast<std::size_t>(i)] == expected;
              }
          CHECK_MESSAGE(same, "to ", to_string(to), " at ", y, ",", x, flip ? " flipped" : "");
        }
}
TEST_CASE("place: the default changes nothing, and without chance it is the middle") {
  const Shape s{1, 1, 9, 7};
  for (Index i = 0; i < 50; ++i) CHECK(place({}, s, s, 1, 2, i) == Placement{});
  const Augmentation middle{.flip = true, .pad = 1, .crop_h = 5, .crop_w = 9, .random = false};
  const Shape to = cropped_shape(middle, s);
  CHECK(to == Shape{1, 1, 5, 9});
  for (Index i = 0; i < 50; ++i) CHECK(place(middle, s, to, 1, 2, i) == Placement{2, -1, false});
}
TEST_CASE("place: all places occur, within the padded image, as a function of seed, epoch and sample") {
  const Augmentation a{.flip = true, .pad = 2, .crop_h = 8, .crop_w = 7};
  const Shape from{1, 3, 9, 7}, to = cropped_shape(a, from);
  std::set<std::array<Index, 3>> seen;
  int flips = 0, same_epoch = 0, same_seed = 0;
  const int count = 4000;
  for (Index i = 0; i < count; ++i) {
    const Placement p = place(a, from, to, 5, 3, i);
    CHECK(p == place(a, from, to, 5, 3, i));
    seen.insert({p.y, p.x, p.flip});
    flips += p.flip ? 1 : 0;
    same_epoch += p == place(a, from, to, 5, 4, i) ? 1 : 0;
    same_seed += p == place(a, from, to, 6, 3, i) ? 1 : 0;
    CHECK((-2 <= p.y && p.y + 8 <= 11 && -2 <= p.x && p.x + 7 <= 9));
  }
  CHECK(seen.size() == 6 * 5 * 2);
  CHECK(flips > count / 2 - 200);
  CHECK(flips < count / 2 + 200);
  CHECK(same_epoch < count / 30);   // one in sixty
  CHECK(same_seed < count / 30);
}
TEST_CASE("crop: what does not fit") {
  CHECK(error_of([] {
          cropped_shape({.pad = 1, .crop_h = 11}, {1, 1, 8, 8});
        }) ==
        "lrcnn: crop of 11x8 from images of 8x8 padded by 1; a crop lies within the padded image; crop less or pad "
        "more");
  CHECK(error_of([] { cropped_shape({.pad = -1}, {1, 1, 8, 8}); }) != "no error");
  CHECK(error_of([] { cropped_shape({.crop_w = -2}, {1, 1, 8, 8}); }) != "no error");
}
