#pragma once
// Limits of memory: how they are written, and how the system is made to enforce them.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/error.hpp>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
/// "800M", "1.5GB", "1GiB", "123456": a number, k, M, G or T (powers of 1000) or Ki, Mi, Gi, Ti (of 1024), and B if wanted.
/// Errors: lrcnn::Error if it is something else, below 1, or above 1000T.
inline lrcnn::Index parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.ends_with('B')) unit.remove_suffix(1);
  const double base = unit.ends_with('i') ? 1024 : 1000;
  if (unit.size() == 2 && unit.ends_with('i')) unit.remove_suffix(1);
  const std::size_t place = unit.empty() ? 0 : std::string_view("kMGT").find(unit == "K" ? 'k' : unit[0]);
  const std::size_t power = unit.empty() ? 0 : place + 1;
  const double bytes = number * std::pow(base, static_cast<double>(power));
  if (error != std::errc() || unit.size() > 1 || place > 3 || !(bytes >= 1) || bytes > 1e15)
    throw lrcnn::Error(lrcnn::error_text("no number of bytes: '" + std::string(text) + "'",
                                         "bytes are a number from 1 to 1000T and, if wanted, k, M, G, T or Ki, Mi, Gi, Ti",
                                         "write it as in 800M or 1GiB"));
  return static_cast<lrcnn::Index>(bytes);
}
/// Bytes of address space that this process has.
inline lrcnn::Index address_space() {
  lrcnn::Index pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}
/// From here on the process gets `more` bytes of address space than it has, and not one page beyond.
/// Errors: lrcnn::Error if the system does not allow it.
inline void limit_address_space(lrcnn::Index more) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min<rlim_t>(static_cast<rlim_t>(address_space() + more), limit.rlim_max);
  if (setrlimit(RLIMIT_AS, &limit) != 0)
    throw lrcnn::Error(lrcnn::error_text("the limit of memory cannot be set", "a process may lower its own limits", "run the program on Linux"));
}
