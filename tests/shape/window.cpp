// Windows and shapes as values and as text.
#include <lrcnn/shape/shape.hpp>
#include <lrcnn/shape/window.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
namespace {
constexpr Window odd{.kernel = {5, 3}, .stride = {2, 1}, .pad = {1, 2, 3, 4}, .dilation = {3, 2}};
template <Window w>
struct Holder {
  static constexpr Window value = w;
};
}   // namespace
TEST_CASE("one number means both axes or all four borders, two mean height and width") {
  CHECK(Pair(3) == Pair(3, 3));
  CHECK(Pad(2) == Pad(2, 2, 2, 2));
  CHECK(Pad(1, 2) == Pad(1, 1, 2, 2));
  CHECK(Window{} == Window{.kernel = 3, .stride = 1, .pad = 0, .dilation = 1});
}
TEST_CASE("each axis takes its own half of a window") {
  CHECK(row_axis(odd) == Axis{.kernel = 5, .stride = 2, .pad_begin = 1, .pad_end = 2, .dilation = 3});
  CHECK(column_axis(odd) == Axis{.kernel = 3, .stride = 1, .pad_begin = 3, .pad_end = 4, .dilation = 2});
  CHECK(row_axis(odd).extent() == 13);
  CHECK(column_axis(odd).extent() == 5);
  CHECK(Axis{.kernel = 1, .dilation = 3}.extent() == 1);
}
TEST_CASE("a window can be a template argument") { CHECK(Holder<odd>::value == odd); }
TEST_CASE("windows and shapes are shown with all their numbers") {
  CHECK(to_string(odd) == "kernel 5x3 stride 2x1 pad 1,2,3,4 dilation 3x2");
  CHECK(to_string(Window{.pad = 1}) == "kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1");
  CHECK(to_string(Shape{8, 3, 224, 192}) == "8x3x224x192");
  CHECK(Shape{8, 3, 224, 192}.count() == 8 * 3 * 224 * 192);
}
