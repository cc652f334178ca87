#pragma once
// What the library throws.
//
// Every error says who (layer, slab, file), where (shape, step, byte) and what to change, in one line:
//     lrcnn: <what>; <rule>; <what to change>
// A caller that can repair something catches the derived type; everybody else catches Error.
#include <lrcnn/core/language.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
namespace lrcnn {
/// Base of everything the library throws.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A network and the extents it is given do not fit each other.
struct ShapeError : Error {
  using Error::Error;
};
/// A policy cannot be carried out on a network, or its plan does not fit into memory.
struct PlanError : Error {
  using Error::Error;
};
/// A plan's memory is more than there is.
struct MemoryError : PlanError {
  using PlanError::PlanError;
};
/// A backend refuses an operation, or its device or library fails.
struct BackendError : Error {
  using Error::Error;
};
/// A file or an array of data or of training state cannot be used.
struct DataError : Error {
  using Error::Error;
};
/// The arithmetic left the finite numbers.
struct NumericError : Error {
  using Error::Error;
};
/// Joins the three parts that every message has.
inline std::string error_text(std::string_view what, std::string_view rule, std::string_view change) {
  std::string text = "lrcnn: ";
  text.append(what).append("; ").append(rule).append("; ").append(change);
  return text;
}
}   // namespace lrcnn
