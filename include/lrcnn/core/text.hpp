#pragma once
// Numbers as text and back, and letters, the same in every locale.
#include <lrcnn/core/language.hpp>
#include <lrcnn/core/types.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
namespace lrcnn {
/// The shortest text that reads back as the same value: "0.1", "1e-08", "nan".
/// Post:    parse_number<double>(number_text(v)) == v
inline std::string number_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}
/// A value rounded to `decimals` digits behind the point: fixed_text(84.2, 2) is "84.20". Pre: 0 <= decimals <= 80.
inline std::string fixed_text(double value, int decimals) {
  char buffer[400];   // the largest double has 309 digits
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, decimals).ptr;
  return {buffer, end};
}
/// The first and the last of a range: "rows 2 to 9" of {2, 10}, "no rows" of an empty one.
inline std::string first_to_last(std::string_view things, Range r) {
  return r.empty() ? "no " + std::string(things) : std::string(things) + " " + std::to_string(r.begin) + " to " + std::to_string(r.end - 1);
}
/// The same text, with small letters instead of A to Z.
inline std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}
/// The number that the whole of the text says: parse_number<Index>("512") is 512. Nothing if the text is anything else or the number does
/// not fit into the type.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}
}   // namespace lrcnn
