// data/resize.hpp: what resizing does, by its laws and in doubles.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/data/resize.hpp>
#include "support/error_of.hpp"
#include <doctest/doctest.h>
#include <vector>
using namespace lrcnn;
using lrcnn::testing::error_of;
namespace {
using Pixels = std::vector<std::uint8_t>;
Pixels resized(const Pixels& from, Pair size, Pair target, Index channels, ResizeFit fit = ResizeFit::cover) {
  Pixels to(static_cast<std::size_t>(target.h * target.w * channels), 77);
  resize_image(from, size, to, target, channels, fit);
  return to;
}
Pixels noise(Pair size, Index channels) {
  const Random random(5);
  Pixels pixels(static_cast<std::size_t>(size.h * size.w * channels));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(random.below(i, 256));
  return pixels;
}
/// Triangle of the width of an output pixel, in doubles, of a picture resized to `whole`; the part from (top, left) on.
Pixels expected(const Pixels& from, Pair size, Pair whole, Pair corner, Pair target, Index channels) {
  const auto weights = [](Index in, Index out, Index at) {
    const double scale = static_cast<double>(in) / static_cast<double>(out), support = std::max(scale, 1.0);
    const double centre = (static_cast<double>(at) + 0.5) * scale;
    std::vector<std::pair<Index, double>> w;
    double sum = 0;
    for (Index i = -in; i < 2 * in; ++i)   // beyond the picture its edge goes on
      if (const double x = 1 - std::abs((static_cast<double>(i) + 0.5 - centre) / support); x > 0)
        w.push_back({std::clamp<Index>(i, 0, in - 1), x}), sum += x;
    for (auto& [i, x] : w) x /= sum;
    return w;
  };
  Pixels to;
  for (Index y = 0; y < target.h; ++y)
    for (Index x = 0; x < target.w; ++x)
      for (Index c = 0; c < channels; ++c) {
        double value = 0;
        for (const auto& [v, a] : weights(size.h, whole.h, y + corner.h))
          for (const auto& [u, b] : weights(size.w, whole.w, x + corner.w)) value += a * b * item(from, (v * size.w + u) * channels + c);
        to.push_back(static_cast<std::uint8_t>(std::lround(value)));
      }
  return to;
}
int furthest(const Pixels& a, const Pixels& b) {
  REQUIRE(a.size() == b.size());
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}
}   // namespace
TEST_CASE("resize: a picture of its own size stays, a colour stays a colour") {
  const Pixels picture = noise({9, 13}, 3);
  CHECK(resized(picture, {9, 13}, {9, 13}, 3) == picture);
  CHECK(resized(picture, {9, 13}, {9, 13}, 3, ResizeFit::stretch) == picture);
  for (const Pair target : {Pair{3, 4}, Pair{40, 17}, Pair{1, 1}})
    for (const ResizeFit fit : {ResizeFit::cover, ResizeFit::stretch})
      CHECK(resized(Pixels(9 * 13 * 2, 200), {9, 13}, target, 2, fit) == Pixels(static_cast<std::size_t>(target.h * target.w * 2), 200));
}
TEST_CASE("resize: linear interpolation, antialiased; the middle of what covers") {
  struct Case {
    Pair size, target, whole, corner;
  };
  for (const Case& c :
       {Case{{50, 80}, {20, 20}, {20, 32}, {0, 6}}, Case{{80, 50}, {20, 20}, {32, 20}, {6, 0}}, Case{{30, 30}, {64, 64}, {64, 64}, {0, 0}},
        Case{{37, 53}, {16, 16}, {16, 22}, {0, 3}}, Case{{37, 51}, {10, 13}, {10, 13}, {0, 0}}, Case{{100, 20}, {8, 24}, {120, 24}, {56, 0}}}) {
    const Pixels picture = noise(c.size, 3);
    CHECK(furthest(resized(picture, c.size, c.target, 3), expected(picture, c.size, c.whole, c.corner, c.target, 3)) <= 1);
    CHECK(furthest(resized(picture, c.size, c.target, 3, ResizeFit::stretch), expected(picture, c.size, c.target, {0, 0}, c.target, 3)) <= 1);
  }
}
TEST_CASE("resize: a colour stays a colour whatever the extents") {
  for (Index h = 50; h <= 130; ++h) {
    const Pair size{h, 180 - h};
    const Pixels grey(static_cast<std::size_t>(size.h * size.w), 90);
    for (const ResizeFit fit : {ResizeFit::cover, ResizeFit::stretch}) REQUIRE(resized(grey, size, {64, 64}, 1, fit) == Pixels(64 * 64, 90));
  }
}
TEST_CASE("resize: extents and memory that do not fit") {
  Pixels to(12);
  const Pixels from(27);
  CHECK(error_of<DataError>([&] {
          resize_image(from, {3, 3}, to, {2, 3}, 3);
        }) ==
        "lrcnn: picture of 3x3 pixels, 3 channels and 27 bytes is to be resized to 2x3 in 12 bytes; each side is at least 1, there are 1 to 64 "
        "channels, and a picture has its bytes, fewer than 2^31; give other extents");
  CHECK(error_of<DataError>([&] { resize_image({}, {0, 3}, to, {2, 2}, 3); }).starts_with("lrcnn: picture of 0x3 pixels"));
  CHECK(error_of<DataError>([&] { resize_image(from, {1 << 20, 1 << 20}, to, {2, 2}, 3); }).starts_with("lrcnn: picture of 1048576x1048576 pixels"));
}
