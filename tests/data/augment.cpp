// data/orientation.hpp and data/color_jitter.hpp.
#include <lrcnn/data/color_jitter.hpp>
#include <lrcnn/data/orientation.hpp>
#include "support.hpp"
#include <doctest/doctest.h>
#include <set>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
std::vector<Orientation> eight() {
  std::vector<Orientation> all;
  for (const bool mirrored : {false, true})
    for (int turns = 0; turns < 4; ++turns) all.push_back({mirrored, turns});
  return all;
}
std::vector<int> laid(Orientation o, Pair size, const std::vector<int>& picture) {
  std::vector<int> result(picture.size());
  orient(o, size, picture.data(), result.data());
  return result;
}
}   // namespace
TEST_CASE("orientations: what each does to a picture") {
  const std::vector<int> picture{1, 2, 3, 4, 5, 6};   // 1 2 3 above 4 5 6
  CHECK(laid({}, {2, 3}, picture) == picture);
  CHECK(laid({true, 0}, {2, 3}, picture) == std::vector{3, 2, 1, 6, 5, 4});
  CHECK(laid({false, 1}, {2, 3}, picture) == std::vector{3, 6, 2, 5, 1, 4});   // counter-clockwise
  CHECK(laid({false, 2}, {2, 3}, picture) == std::vector{6, 5, 4, 3, 2, 1});
  CHECK(laid({true, 2}, {2, 3}, picture) == std::vector{4, 5, 6, 1, 2, 3});   // top and bottom exchanged
  CHECK(extents({true, 3}, {2, 3}) == Pair{3, 2});
}
TEST_CASE("orientations: one after the other is one of them, and they form a group") {
  const Pair size{3, 5};
  std::vector<int> picture(15);
  std::iota(picture.begin(), picture.end(), 0);
  std::set<std::vector<int>> different;
  for (const Orientation a : eight()) {
    different.insert(laid(a, size, picture));
    int inverses = 0;
    for (const Orientation b : eight()) {
      CHECK(laid(then(a, b), size, picture) == laid(b, extents(a, size), laid(a, size, picture)));
      CHECK(extents(then(a, b), size) == extents(b, extents(a, size)));
      inverses += then(a, b) == Orientation{};
      for (const Orientation c : eight()) CHECK(then(then(a, b), c) == then(a, then(b, c)));
    }
    CHECK(inverses == 1);
  }
  CHECK(different.size() == 8);
}
TEST_CASE("colour jitter: factors, and what they do") {
  const ColorJitter jitter{.brightness = 0.2, .contrast = 3, .saturation = 0};
  double least = 9, most = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const ColorFactors f = draw_factors(jitter, Random(7, i), 0);
    CHECK((0.8 <= f.brightness && f.brightness <= 1.2));
    CHECK((0 <= f.contrast && f.contrast <= 4));
    CHECK(f.saturation == 1);
    CHECK(f == draw_factors(jitter, Random(7, i), 0));
    least = std::min(least, f.contrast), most = std::max(most, f.contrast);
  }
  CHECK(least < 0.1);
  CHECK(most > 3.9);
  const std::vector<double> picture{0.2, 0.4, 0.5, 0.5, 0.1, 0.9};   // two pixels of three channels
  const auto changed = [&](ColorFactors f, bool clamps = true) {
    std::vector<double> values = picture;
    adjust_colors(values, 3, f, clamps);
    return values;
  };
  CHECK(changed({}) == picture);
  const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]));
  };
  near(changed({2, 1, 1}), {0.4, 0.8, 1, 1, 0.2, 1});
  near(changed({2, 1, 1}, false), {0.4, 0.8, 1, 1, 0.2, 1.8});
  const auto grey = [](const std::vector<double>& v, std::size_t p) { return 0.299 * v[p] + 0.587 * v[2 + p] + 0.114 * v[4 + p]; };
  const double mean = (grey(picture, 0) + grey(picture, 1)) / 2;
  near(changed({1, 0, 1}), std::vector<double>(6, mean));
  const auto dull = changed({1, 1, 0});
  for (const std::size_t p : {0u, 1u})
    for (const std::size_t c : {0u, 1u, 2u}) CHECK(dull[2 * c + p] == doctest::Approx(grey(picture, p)));
  const auto strong = changed({1, 1.5, 1}, false);   // the mean grey stays
  CHECK((grey(strong, 0) + grey(strong, 1)) / 2 == doctest::Approx(mean));
  const auto vivid = changed({1, 1, 1.5}, false);   // each pixel's grey stays
  CHECK(grey(vivid, 0) == doctest::Approx(grey(picture, 0)));
  std::vector<double> one{0.2, 0.6};   // a single channel is its own grey
  adjust_colors(one, 1, {1, 0.5, 1}, true);
  near(one, {0.3, 0.5});
}
