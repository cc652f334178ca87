#pragma once
// The text of the error that something throws.
#include <lrcnn/core/error.hpp>
#include <string>
namespace lrcnn::testing {
/// "no error" if it throws none. Others than E go on.
template <class E = Error, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}
}   // namespace lrcnn::testing
