#pragma once
// An answer as JSON: into a file, beside the text, or to the standard output in its place.
#include <lrcnn/core/atomic_file.hpp>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <string>
/// Where it goes: "" if it is not asked for, "-" for the standard output, or the name of a file.
struct JsonAnswer {
  std::string to{};
  bool asked() const { return !to.empty(); }
  /// Whether the answer is printed as text, too.
  bool leaves_text() const { return to != "-"; }
  /// Pre: asked(). Errors: lrcnn::DataError naming the file if it cannot be written: it is whole, or is as it was.
  void give(std::ostream& out, const nlohmann::ordered_json& object) const {
    const std::string text = object.dump(2) + "\n";
    if (to == "-") out << text;
    else lrcnn::write_file_atomically(to, std::as_bytes(std::span(text)));
  }
};
