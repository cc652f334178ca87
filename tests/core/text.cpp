// core/text.hpp: letters, ranges.
#include <lrcnn/core/text.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
TEST_CASE("lower_case changes A to Z and nothing else") {
  CHECK(lower_case(".TIFf") == ".tiff");
  CHECK(lower_case("@[\xc4 9z") == "@[\xc4 9z");
  CHECK(lower_case("").empty());
}
TEST_CASE("ranges are told by their first and their last") {
  CHECK(first_to_last("rows", {2, 10}) == "rows 2 to 9");
  CHECK(first_to_last("rows", {3, 4}) == "rows 3 to 3");
  CHECK(first_to_last("rows", {-2, 0}) == "rows -2 to -1");
  CHECK(first_to_last("images", {4, 4}) == "no images");
  CHECK(first_to_last("images", {4, 1}) == "no images");
}
