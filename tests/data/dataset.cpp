// data/dataset.hpp and data/shapes.hpp.
#include <lrcnn/core/checksum.hpp>
#include <lrcnn/data/shapes.hpp>
#include "support.hpp"
#include <doctest/doctest.h>
#include <limits>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
Dataset small() { return {.description = "d", .shape = {2, 1, 2, 2}, .images = Bytes(8), .labels = {0, 2}, .classes = 3}; }
std::string check_error(void (*change)(Dataset&)) {
  Dataset data = small();
  change(data);
  return error_of([&] { check(data); });
}
std::uint32_t sum(const Dataset& data) { return crc32c(std::as_bytes(std::span(data.images))); }
}   // namespace
TEST_CASE("dataset: check names what is wrong") {
  CHECK(check_error([](Dataset&) {}) == "no error");
  CHECK(check_error([](Dataset& d) { d.shape.n = 0; }) ==
        "lrcnn: data set 'd' has no images; a data set has at least one; check where it comes from");
  CHECK(check_error([](Dataset& d) { d.shape.w = 0; }) ==
        "lrcnn: data set 'd' has images of 1x2x0; channels, rows and columns are at least 1; check its shape");
  CHECK(check_error([](Dataset& d) { d.images.pop_back(); }) ==
        "lrcnn: data set 'd' has 7 bytes of images; its shape 2x1x2x2 takes 8; make images and shape agree");
  CHECK(check_error([](Dataset& d) {
          d.shape = {Index{1} << 40, 1, Index{1} << 20, Index{1} << 20};
        }).starts_with("lrcnn: data set 'd' has 8 bytes of images; "));
  CHECK(check_error([](Dataset& d) { d.labels.push_back(1); }) ==
        "lrcnn: data set 'd' has 2 images and 3 labels; each image has one label; check that both come from the same "
        "part");
  CHECK(check_error([](Dataset& d) { d.classes = 0; }) == "lrcnn: data set 'd' has 0 classes; there is at least one; set the number of classes");
  for (const bool negative : {true, false}) {
    Dataset data = small();
    data.labels[1] = negative ? -1 : 3;
    CHECK(error_of([&] { check(data); }) == "lrcnn: data set 'd' has label " + std::to_string(data.labels[1]) +
                                                " at image 1; labels of 3 classes are "
                                                "0 to 2; check the file, or raise the number of classes");
  }
  CHECK(check_error([](Dataset& d) {
          d.class_names = {"a", "b"};
        }) == "lrcnn: data set 'd' has 2 class names; there are 3 classes; name all of them or none");
}
TEST_CASE("dataset: a subset is the images of its range") {
  const Dataset data = make_shapes({.count = 12, .channels = 3, .h = 9, .w = 8});
  for (Index begin = 0; begin < 12; ++begin)
    for (Index end = begin + 1; end <= 12; ++end) {
      const Dataset part = subset(data, {begin, end});
      check(part);
      CHECK(part.size() == end - begin);
      for (Index i = begin; i < end; ++i) {
        CHECK(std::ranges::equal(part.image(i - begin), data.image(i)));
        CHECK(part.labels[static_cast<std::size_t>(i - begin)] == data.labels[static_cast<std::size_t>(i)]);
      }
    }
  CHECK(error_of([&] {
          subset(data, {5, 13});
        }) == "lrcnn: images 5 to 12 of data set '" + data.description +
                  "'; it has 12, and a part of it has at least one; "
                  "choose a range within them");
  CHECK(error_of([&] { subset(data, {5, 5}); }).starts_with("lrcnn: no images of data set '"));
  CHECK(to_string(subset(data, {2, 5})) ==
        "generated shapes (drawn by a program, not real data), training, seed 1 (images 2 to 4): 3 images 3x9x8, 10 "
        "classes");
}
TEST_CASE("shapes: say that they are generated, hold together, have each class equally often") {
  const Dataset data = make_shapes({.count = 100});
  check(data);
  CHECK(data.description == "generated shapes (drawn by a program, not real data), training, seed 1");
  CHECK(data.class_name(8) == "diagonal");
  for (std::int32_t c = 0; c < 10; ++c) CHECK(std::ranges::count(data.labels, c) == 10);
}
TEST_CASE("shapes: a function of seed, part, extents and index") {
  const ShapesOptions options{.count = 40, .channels = 3, .h = 20, .w = 33, .seed = 7};
  const Dataset data = make_shapes(options);
  CHECK(data == make_shapes(options));
  ShapesOptions other = options;
  other.count = 11;
  CHECK(std::ranges::equal(make_shapes(other).images, subset(data, {0, 11}).images));
  other = options;
  other.seed = 8;
  CHECK(make_shapes(other).images != data.images);
  other = options;
  other.split = Split::test;
  CHECK(make_shapes(other).images != data.images);
}
TEST_CASE("shapes: the bytes are the same on every machine") {
  CHECK(sum(make_shapes({.count = 50})) == 818269687u);
  CHECK(sum(make_shapes({.count = 50, .channels = 3, .h = 32, .w = 32, .split = Split::test})) == 3126014082u);
  CHECK(sum(make_shapes({.count = 50, .h = 8, .w = 100})) == 2792312138u);
}
TEST_CASE("shapes: a nearest class mean is far from enough") {
  const Dataset train = make_shapes({.count = 2000}), test = make_shapes({.count = 500, .split = Split::test});
  const std::size_t pixels = 784;
  std::vector<double> mean(10 * pixels);
  for (Index i = 0; i < train.size(); ++i)
    for (std::size_t p = 0; p < pixels; ++p)
      mean[static_cast<std::size_t>(train.labels[static_cast<std::size_t>(i)]) * pixels + p] += train.image(i)[p] / 200.0;
  int right = 0;
  for (Index i = 0; i < test.size(); ++i) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::max();
    for (std::size_t c = 0; c < 10; ++c) {
      double distance = 0;
      for (std::size_t p = 0; p < pixels; ++p) {
        const double d = test.image(i)[p] - mean[c * pixels + p];
        distance += d * d;
      }
      if (distance < least) least = distance, best = c;
    }
    right += static_cast<std::int32_t>(best) == test.labels[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  CHECK(right < 200);
}
TEST_CASE("shapes: numbers that cannot be drawn") {
  for (const ShapesOptions& options : {ShapesOptions{.count = 0}, ShapesOptions{.channels = 2}, ShapesOptions{.h = 7}, ShapesOptions{.w = 7}})
    CHECK(error_of([&] { make_shapes(options); })
              .find("; there are at least 1 image, 1 or 3 channels, 8 rows and 8 "
                    "columns; choose such numbers") != std::string::npos);
  CHECK(error_of([&] { make_shapes({.count = 5, .channels = 2}); }).starts_with("lrcnn: generated shapes of 5x2x28x28; "));
}
