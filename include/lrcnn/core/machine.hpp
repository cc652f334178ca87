#pragma once
// What is known of the machine that a program runs on.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif
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
/// Bytes of a core's second cache, and of the third, which cores share.
struct Caches {
  std::int64_t level2 = 1 << 20;
  std::int64_t level3 = 32 << 20;
};
/// The caches of the machine; those of a common one where the system does not say. Source: glibc, sysconf
inline Caches processor_caches() {
  Caches caches;
#if defined(_SC_LEVEL2_CACHE_SIZE) && defined(_SC_LEVEL3_CACHE_SIZE)
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) caches.level2 = bytes;
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) caches.level3 = bytes;
#endif
  return caches;
}
}  // namespace lrcnn
