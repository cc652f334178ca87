#pragma once
// What is known of the machine that a program runs on.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
namespace lrcnn {
/// The processor's name as the system gives it, "unknown" if it gives none. Source: Linux, /proc/cpuinfo
inline std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}
namespace detail {
/// The number that a file begins with; nothing if there is none. Files of the kernel are short.
inline std::optional<double> number_in(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}
/// Processors' time for each second of the clock that one group may have; nothing if it has no limit, or one we cannot read.
inline std::optional<double> quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;   // "max" is no number
}
inline std::optional<double> quota_v1(const std::string& folder) {
  const auto quota = number_in(folder + "/cpu.cfs_quota_us"), period = number_in(folder + "/cpu.cfs_period_us");
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;   // -1: no limit
}
/// The least limit of a group and all above it.
template <class Quota>
std::optional<double> least_quota(const std::string& mount, std::string group, Quota quota) {
  std::optional<double> least;
  for (;;) {
    while (group.ends_with('/')) group.pop_back();
    if (const auto own = quota(mount + group)) least = least ? std::min(*least, *own) : *own;
    if (group.empty()) return least;
    group.erase(std::min(group.rfind('/'), group.size()));
  }
}
}  // namespace detail
/// Processors' time for each second of the clock that the control groups of this process leave it; nothing if they set no limit.
/// `root`: what stands for /. Files that are not there or not understood set none.
/// Source:  Linux, /proc/self/cgroup: lines "id:controllers:path", version 2's without controllers
inline std::optional<double> processor_quota(const std::string& root = {}) {
  std::optional<double> least;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',', group = line.substr(second + 1);
    const auto take = [&](const char* mount, auto quota) {
      if (const auto own = detail::least_quota(root + mount, group, quota)) least = least ? std::min(*least, *own) : *own;
    };
    if (controllers == ",,") {
      take("/sys/fs/cgroup", detail::quota_v2);
      take("/sys/fs/cgroup/unified", detail::quota_v2);
    } else if (controllers.find(",cpu,") != controllers.npos) {
      take("/sys/fs/cgroup/cpu", detail::quota_v1);
      take("/sys/fs/cgroup/cpu,cpuacct", detail::quota_v1);
    }
  }
  return least;
}
/// Processors that this thread may run on, by its affinity; all where the system does not tell. At least 1.
inline int processors_allowed() {
#if defined(__linux__)
  for (std::size_t most = 1024; most <= 1024 * 1024; most *= 4) {   // the call fails if the machine has more than the set holds
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const bool told = sched_getaffinity(0, CPU_ALLOC_SIZE(most), set) == 0;
    const int count = told ? CPU_COUNT_S(CPU_ALLOC_SIZE(most), set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}
/// Processors that this process may use: those of its affinity, and no more than its control groups give time for, rounded up.
/// At least 1.
inline int processor_count(const std::string& root = {}) {
  const int allowed = processors_allowed();
  const auto quota = processor_quota(root);
  return quota && *quota < allowed ? std::max(1, static_cast<int>(std::ceil(*quota))) : allowed;
}
/// Bytes of a core's second cache, and of the third, which cores share.
struct Caches {
  std::int64_t level2 = 1 << 20;
  std::int64_t level3 = 32 << 20;
};
/// The caches of the machine; those of a common one where the system does not say. Source: glibc, sysconf
inline Caches processor_caches() {
  static const Caches found = [] {   // asked once: a virtual machine answers slowly
    Caches caches;
#if defined(_SC_LEVEL2_CACHE_SIZE) && defined(_SC_LEVEL3_CACHE_SIZE)
    if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) caches.level2 = bytes;
    if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) caches.level3 = bytes;
#endif
    return caches;
  }();
  return found;
}
}  // namespace lrcnn
