#pragma once
// What is known of the machine that a program runs on.
#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
namespace lrcnn {
/// The processor's name as the system gives it, "unknown" if it gives none. Source: Linux, /proc/cpuinfo
inline std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}
/// Processors that the system lets a program's threads run on; at least 1.
inline int processor_count() {
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}
}  // namespace lrcnn
