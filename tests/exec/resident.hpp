#pragma once
// How much of the process lies in memory, as the system counts it.
#include <lrcnn/core/types.hpp>
#include <fstream>
#include <string>
namespace lrcnn::testing {
inline Index status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  return 0;
}
/// The most by which the resident set grows while f runs, what is freed within included; 0 where no one says.
template <class F>
Index resident_growth(F f) {
  std::ofstream("/proc/self/clear_refs") << "5";   // forgets the highest value so far; without permission it stays
  const Index before = status_bytes("VmRSS");
  f();
  return std::max<Index>(0, status_bytes("VmHWM") - before);
}
}   // namespace lrcnn::testing
