#pragma once
// How many threads backends on oneDNN have in tests of what they compute: two; where the test is held to less than the machine's vectors, one on most
// days, so that two such tests run side by side, and two on every fourth.
#include "thorough.hpp"
#include <cstdlib>
#include <stdexcept>
#include <string>
namespace lrcnn::testing {
/// Errors: a value of LRCNN_TEST_THREADS other than 1 and 2
inline int threads_for_tests() {
  const char* const value = std::getenv("LRCNN_TEST_THREADS");   // set by tests/CMakeLists.txt
  if (value == nullptr || std::string(value) == "2") return 2;
  if (std::string(value) != "1") throw std::invalid_argument("LRCNN_TEST_THREADS is '" + std::string(value) + "'; it takes 1 or 2");
  return day() % 4 == 0 ? 2 : 1;
}
}   // namespace lrcnn::testing
