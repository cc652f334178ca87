#pragma once
// Sizes for people.
#include <lrcnn/core/types.hpp>
#include <array>
#include <cstdio>
#include <string>
namespace lrcnn {
/// "12.3 MB" (decimal units, as everywhere in this library's output)
inline std::string format_bytes(Index bytes) {
  constexpr std::array<const char*, 5> units{"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text.data();
}
}   // namespace lrcnn
