// core/text.hpp: letters.
#include <lrcnn/core/text.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
TEST_CASE("lower_case changes A to Z and nothing else") {
  CHECK(lower_case(".TIFf") == ".tiff");
  CHECK(lower_case("@[\xc4 9z") == "@[\xc4 9z");
  CHECK(lower_case("").empty());
}
