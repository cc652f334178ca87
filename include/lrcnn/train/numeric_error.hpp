#pragma once
// Errors of losses that are not finite say in which step.
#include <lrcnn/core/error.hpp>
#include <string>
namespace lrcnn {
namespace detail {
/// Says where a loss was not finite: `where` gives "step 5", say, and is asked for it then only.
template <class Where, class F>
void name_numeric_error(Where where, F f) {
  try {
    f();
  } catch (const NumericError& e) {
    const std::string text = e.what();
    throw NumericError("lrcnn: in " + where() + " " + text.substr(text.find(' ') + 1));
  }
}
}   // namespace detail
}   // namespace lrcnn
