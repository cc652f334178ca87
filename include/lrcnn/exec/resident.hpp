#pragma once
// How much memory a step really takes, as the operating system sees it.
//
// The resident set is what of a process's memory is in main memory; it grows when a page is touched for the first time.
// So the pages of the arena are given back first, and what comes during the step is what the step has touched: the
// arena's pages, and whatever else was allocated meanwhile.
#include <lrcnn/core/memory.hpp>
#include <fstream>
#include <string>
#include <string_view>
#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif
namespace lrcnn {
namespace detail {
/// A line of /proc/self/status in bytes; -1 if there is none.
inline Index status_bytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::strtoll(line.c_str() + key.size(), nullptr, 10) * 1024;
  return -1;
}
/// Lets the greatest resident set so far be the present one. False if the system does not.
inline bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << '5' << std::flush;
  return file.good();
}
}   // namespace detail
/// Bytes of this process that are in main memory; -1 where the system does not say.
inline Index resident_bytes() { return detail::status_bytes("VmRSS:"); }
/// Greatest growth of the resident set while f runs, pages of `arena` that f touches included; -1 where the system does
/// not say. What the arena held is lost.
/// Cost:    the pages are new afterwards, so this run of f is slower than others
template <class F>
Index resident_growth(const Arena& arena, F f) {
#if defined(__linux__)
  malloc_trim(0);   // what other allocations left behind would be used again without being seen
  if (arena.bytes() > 0) madvise(arena.data(), static_cast<std::size_t>(round_up(arena.bytes(), 4096)), MADV_DONTNEED);
#endif
  const bool reset = detail::reset_peak();
  const Index before = resident_bytes();
  f();
  const Index after = resident_bytes(), most = reset ? detail::status_bytes("VmHWM:") : after;
  return before < 0 ? -1 : std::max(after, most) - before;
}
}   // namespace lrcnn
