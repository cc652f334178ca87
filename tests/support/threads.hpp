#pragma once
// How many threads backends on oneDNN have in tests of what they compute: two, or one where the test is held to less than the machine's vectors, so
// that two such tests run side by side.
#include <cstdlib>
#include <string_view>
namespace lrcnn::testing {
inline int threads_for_tests() {
  const char* const value = std::getenv("LRCNN_TEST_THREADS");   // set by tests/CMakeLists.txt
  return value && std::string_view(value) == "1" ? 1 : 2;
}
}   // namespace lrcnn::testing
