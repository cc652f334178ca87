#pragma once
// How much a sweep over random cases does: a part of them every day, all with scripts/test --thorough.
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <string_view>
namespace lrcnn::testing {
inline bool thorough() {
  const char* const value = std::getenv("LRCNN_THOROUGH");   // set by tests/CMakeLists.txt
  return value && std::string_view(value) == "1";
}
/// How many cases of a sweep to do: `all`, or `some` every day.
template <class Number>
Number cases_to_do(Number all, Number some) {
  return thorough() ? all : some;
}
/// The number of the day, from which a sweep that does a part draws which.
inline std::size_t day() { return static_cast<std::size_t>(std::time(nullptr)) / 86400; }
/// Whether case `number` of a list is done: one in `of` every day, another one on the next.
inline bool has_turn(std::size_t number, std::size_t of) { return thorough() || number % of == day() % of; }
}   // namespace lrcnn::testing
