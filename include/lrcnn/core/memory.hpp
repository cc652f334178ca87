#pragma once
// The arena's memory: one allocation, refused before anything starts if the machine has no room for it.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/machine.hpp>
#include <lrcnn/core/scratch_memory.hpp>
#include <lrcnn/core/types.hpp>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__unix__)
#include <sys/resource.h>
#include <unistd.h>
#endif
namespace lrcnn {
/// Bytes that this process can still take: the least of free memory (swap not counted), what its control groups leave and what RLIMIT_AS
/// leaves. Unlimited where the system does not say. `root`: what stands for /.
inline Index available_memory(const std::string& root = {}) {
  Index available = std::numeric_limits<Index>::max();
  std::ifstream info(root + "/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:")) available = std::strtoll(line.c_str() + 13, nullptr, 10) * 1024;
  if (const auto group = group_memory(root); group && *group < static_cast<double>(available)) available = static_cast<Index>(*group);
#if defined(__unix__)
  if (rlimit limit{}; getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    std::ifstream status(root + "/proc/self/statm");
    Index pages = 0;
    status >> pages;
    available = std::min(available, std::max<Index>(0, static_cast<Index>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE)));
  }
#endif
  return available;
}
namespace detail {
/// Memory in pages of 2 MiB where the system has such and `bytes` fill them, of 4 kB otherwise; null if there is none. Large pages are read
/// and written up to half again as fast, since what a processor fetches ahead ends with a page. std::free() frees it.
inline void* allocate_pages(Index bytes) {
  const Index small = 4096, large = 2_MiB;
  const auto allocate = [&](Index page) {
    return std::aligned_alloc(static_cast<std::size_t>(page), static_cast<std::size_t>(round_up(bytes, page)));
  };
  void* memory = bytes < large ? nullptr : allocate(large);
  if (memory == nullptr) return allocate(small);
#if defined(__linux__)
  // What is behind the last whole page stays in small ones, so that no more is resident than was asked for.
  madvise(memory, static_cast<std::size_t>(bytes / large * large), MADV_HUGEPAGE);
#endif
  return memory;
}
}   // namespace detail
/// Memory of a plan's arena. Owned, aligned to 4 kB, not touched before the plan touches it.
class Arena {
 public:
  Arena() = default;
  /// Errors: MemoryError naming `who`, the bytes asked for and those available.
  Arena(Index bytes, const std::string& who, Index available = available_memory()) : bytes_(bytes) {
    if (bytes == 0) return;
    if (bytes <= available) memory_.reset(detail::allocate_pages(bytes));
    if (!memory_)
      throw MemoryError(error_text(who + " needs an arena of " + format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes), and " +
                                       format_bytes(available) + " are available",
                                   "a plan's memory is taken at once, before the first step",
                                   "use more slabs, more checkpoints, RecomputeAll, fewer images, or a smaller input"));
  }
  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  Index bytes() const { return bytes_; }
  /// The larger memory of the same plan, in which offloaded tensors lie; nothing unless it is set.
  const ScratchMemory& offloaded() const { return offloaded_; }
  void set_offloaded(ScratchMemory memory) { offloaded_ = std::move(memory); }
 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  Index bytes_ = 0;
  std::unique_ptr<void, Free> memory_{};
  ScratchMemory offloaded_{};
};
}   // namespace lrcnn
