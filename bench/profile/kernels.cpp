// Notes what a program starts on a GPU, from the first kernel on that belongs to a CUDA graph, and writes it to a file when the program ends.
//
// The CUDA driver loads this library into a program that is started with CUDA_INJECTION64_PATH set to its path; LRCNN_PROFILE names the file. A line
// for each kernel, copy or fill, in the order in which they began: when it began and how long it took, in nanoseconds, the number of its graph or 0,
// its name. table.py reads it; `scripts/gpu profile` does both.
#include <cupti.h>
#include <cxxabi.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
namespace {
struct Launch {
  std::uint64_t begin, end;
  std::uint32_t graph;
  std::string name;
};
constexpr std::size_t buffer_bytes = std::size_t{8} << 20, most_launches = 100'000;   // those at the end are kept
std::mutex guard;
std::vector<Launch> launches;
void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
  *bytes = *buffer ? buffer_bytes : 0;
  *records = 0;
}
template <class Record>
void note(const CUpti_Activity* activity, const char* name) {
  const auto* record = reinterpret_cast<const Record*>(activity);
  launches.push_back({record->start, record->end, record->graphId, name});
}
void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t bytes) {
  const std::lock_guard lock(guard);
  for (CUpti_Activity* next = nullptr; cuptiActivityGetNextRecord(buffer, bytes, &next) == CUPTI_SUCCESS;) {
    if (next->kind == CUPTI_ACTIVITY_KIND_MEMCPY) note<CUpti_ActivityMemcpy5>(next, "copy");
    else if (next->kind == CUPTI_ACTIVITY_KIND_MEMSET) note<CUpti_ActivityMemset4>(next, "fill");
    else if (next->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const char* name = reinterpret_cast<const CUpti_ActivityKernel9*>(next)->name;
      note<CUpti_ActivityKernel9>(next, name ? name : "?");
    }
  }
  std::free(buffer);
}
std::string readable(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  return text ? text.get() : mangled;
}
void write_all() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard lock(guard);
  const char* path = std::getenv("LRCNN_PROFILE");
  std::FILE* file = path ? std::fopen(path, "w") : nullptr;
  if (!file) {
    std::fprintf(stderr, "lrcnn: the profile is not written: LRCNN_PROFILE names no file that can be\n");
    return;
  }
  std::sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) { return a.begin < b.begin; });
  auto first = std::find_if(launches.begin(), launches.end(), [](const Launch& l) { return l.graph != 0; });
  if (launches.end() - first > static_cast<std::ptrdiff_t>(most_launches)) first = launches.end() - most_launches;
  for (; first != launches.end(); ++first)
    std::fprintf(file, "%llu %llu %u %s\n", static_cast<unsigned long long>(first->begin), static_cast<unsigned long long>(first->end - first->begin),
                 first->graph, readable(first->name).c_str());
  std::fclose(file);
}
}   // namespace
/// What the driver calls. 1: all is well.
extern "C" int InitializeInjection() {
  bool good = cuptiActivityRegisterCallbacks(give_buffer, take_buffer) == CUPTI_SUCCESS;
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    good = good && cuptiActivityEnable(kind) == CUPTI_SUCCESS;
  if (good) std::atexit(write_all);
  else std::fprintf(stderr, "lrcnn: no profile: CUPTI cannot be used here\n");
  return 1;
}
