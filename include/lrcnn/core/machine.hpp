#pragma once
// What is known of the machine that a program runs on.
#include <lrcnn/core/affinity.hpp>
#include <lrcnn/core/language.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <optional>
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
/// Bytes that one group leaves: its limit without what it holds. Pages of files do not count as held, since they make room.
inline std::optional<double> memory_left(const std::string& folder, const char* limit, const char* held, const std::string& stem) {
  const auto most = number_in(folder + limit), now = number_in(folder + held);
  if (!most || !now) return std::nullopt;   // "max" is no number
  double files = 0, value = 0;
  std::ifstream statistics(folder + "/memory.stat");
  for (std::string name; statistics >> name >> value;)
    if (name == stem + "inactive_file" || name == stem + "active_file") files += value;
  return std::max(0.0, *most - std::max(0.0, *now - files));
}
inline std::optional<double> memory_left_v2(const std::string& folder) { return memory_left(folder, "/memory.max", "/memory.current", ""); }
inline std::optional<double> memory_left_v1(const std::string& folder) {
  return memory_left(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_");
}
/// The least of what the control groups of this process say, and all groups above them; nothing if none says anything.
/// `controller`: what version 1 calls it, and where it is mounted; `version_2`, `version_1`: read what a group's folder says.
/// `root`: what stands for /. Files that are not there or not understood say nothing.
/// Source:  Linux, /proc/self/cgroup: lines "id:controllers:path", version 2's without controllers. In a container that path may be the
///          host's; the mount is the container's own then, and found on the way up
template <class Version2, class Version1>
std::optional<double> least_of_groups(const std::string& root, const std::string& controller, std::initializer_list<const char*> mounts_1,
                                      Version2 version_2, Version1 version_1) {
  std::optional<double> least;
  const auto take = [&](const std::string& mount, std::string group, auto read) {
    for (;;) {
      while (group.ends_with('/')) group.pop_back();
      if (const auto own = read(root + mount + group)) least = least ? std::min(*least, *own) : *own;
      if (group.empty()) return;
      group.erase(std::min(group.rfind('/'), group.size()));
    }
  };
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',', group = line.substr(second + 1);
    if (controllers == ",,")
      for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) take(mount, group, version_2);
    else if (controllers.find(',' + controller + ',') != controllers.npos)
      for (const char* mount : mounts_1) take(mount, group, version_1);
  }
  return least;
}
}   // namespace detail
/// Processors' time for each second of the clock that the control groups of this process leave it; nothing if they set no limit.
/// `root`: what stands for /.
inline std::optional<double> processor_quota(const std::string& root = {}) {
  return detail::least_of_groups(root, "cpu", {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}, detail::quota_v2, detail::quota_v1);
}
/// Bytes that the control groups of this process leave it (Docker, Slurm, systemd); nothing if they set no limit. `root`: what stands for /.
inline std::optional<double> group_memory(const std::string& root = {}) {
  return detail::least_of_groups(root, "memory", {"/sys/fs/cgroup/memory"}, detail::memory_left_v2, detail::memory_left_v1);
}
/// Processors that this thread and those that it starts may run on, by its affinity or, where OpenMP has tied it to one of its places, by all
/// places (core/affinity.hpp); all where the system does not tell. At least 1.
inline int processors_allowed() {
  if (const auto all = openmp_processors(); !all.empty()) return static_cast<int>(all.size());
  if (const auto own = thread_processors(); !own.empty()) return static_cast<int>(own.size());
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
/// Asks for what a processor's caches are. What the kernel does not say is asked from the C library, which on processors of several chips multiplies
/// the third cache with their number. `root`: what stands for /.
/// Source: Linux, /sys/devices/system/cpu/cpu0/cache; glibc, sysconf
inline Caches find_caches(const std::string& root = {}) {
  Caches caches;
#if defined(_SC_LEVEL2_CACHE_SIZE) && defined(_SC_LEVEL3_CACHE_SIZE)
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) caches.level2 = bytes;
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) caches.level3 = bytes;
#endif
  for (int index = 0; index < 16; ++index) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    const auto level = detail::number_in(folder + "/level");
    std::int64_t kib = 0;
    char unit = 0;
    if (std::ifstream size(folder + "/size"); !level || !(size >> kib >> unit) || unit != 'K' || kib < 1 || kib > (std::int64_t{1} << 40)) continue;
    if (*level == 2) caches.level2 = kib * 1024;
    if (*level == 3) caches.level3 = kib * 1024;
  }
  return caches;
}
/// The caches of the machine; those of a common one where the system does not say.
inline Caches processor_caches() {
  static const Caches found = find_caches();   // asked once: a virtual machine answers slowly
  return found;
}
}   // namespace lrcnn
