#include <lrcnn/core/on_exit.hpp>
#include <doctest/doctest.h>
#include <stdexcept>
#include <string>
using namespace lrcnn;
TEST_CASE("what is to happen on exit happens once, the last first, also after an error") {
  std::string order;
  {
    const OnExit first([&] { order += 'a'; });
    const OnExit second([&, letter = 'b'] { order += letter; });
    order += '-';
  }
  CHECK(order == "-ba");
  const auto fails = [&] {
    const OnExit last([&] { order += 'c'; });
    throw std::runtime_error("an error");
  };
  CHECK_THROWS_AS(fails(), std::runtime_error);
  CHECK(order == "-bac");
}
