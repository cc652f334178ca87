#pragma once
// Processors that threads may run on, and how OpenMP ties threads to some of them.
//
// With OMP_PROC_BIND=true, or OMP_PLACES, the OpenMP runtime cuts the processors that a process may use into places and ties the program's first
// thread to one of them, libgomp before main() begins. What the kernel then says of that thread is the place, and threads that it starts inherit
// it. The places together are what the process may use: the runtime leaves out processors that the process was not allowed when it began.
// A program of clang++ that has libgomp besides, as Debian's oneDNN brings it, asks clang's runtime, which begins later and knows of that one
// place alone.
#include <lrcnn/core/language.hpp>
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>
#if defined(__linux__)
#include <sched.h>
#endif
namespace lrcnn {
#if defined(__linux__)
namespace detail {
// Functions of the OpenMP runtime; null in programs that have none. So they can be asked for by code that is compiled without -fopenmp, too.
// Source:  OpenMP 4.5, 3.2: omp_get_proc_bind() is 0 where threads are not tied
extern "C" {
int lrcnn_openmp_binding() __asm__("omp_get_proc_bind") __attribute__((weak));
int lrcnn_openmp_places() __asm__("omp_get_num_places") __attribute__((weak));
int lrcnn_openmp_place_size(int place) __asm__("omp_get_place_num_procs") __attribute__((weak));
void lrcnn_openmp_place(int place, int* processors) __asm__("omp_get_place_proc_ids") __attribute__((weak));
}
}   // namespace detail
#endif
/// Numbers of the processors that the system lets this thread run on, ascending; none where it does not tell.
inline std::vector<int> thread_processors() {
  std::vector<int> numbers;
#if defined(__linux__)
  for (std::size_t most = 1024; most <= 1024 * 1024 && numbers.empty(); most *= 4) {   // the call fails if the machine has more than the set holds
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) break;
    if (sched_getaffinity(0, CPU_ALLOC_SIZE(most), set) == 0)
      for (std::size_t p = 0; p < most; ++p)
        if (CPU_ISSET_S(p, CPU_ALLOC_SIZE(most), set)) numbers.push_back(static_cast<int>(p));
    CPU_FREE(set);
  }
#endif
  return numbers;
}
/// If OpenMP has tied this thread to one of its places: the processors of all places, ascending. Otherwise none. A thread that the program itself
/// has tied to the same processors cannot be told from it.
inline std::vector<int> openmp_processors() {
  std::vector<int> all;
#if defined(__linux__)
  using namespace detail;
  if (!lrcnn_openmp_binding || !lrcnn_openmp_places || !lrcnn_openmp_place_size || !lrcnn_openmp_place || lrcnn_openmp_binding() == 0) return all;
  const std::vector<int> own = thread_processors();
  bool tied = false;
  for (int place = 0; place < lrcnn_openmp_places(); ++place) {
    std::vector<int> numbers(static_cast<std::size_t>(std::max(0, lrcnn_openmp_place_size(place))));
    lrcnn_openmp_place(place, numbers.data());
    std::sort(numbers.begin(), numbers.end());
    tied = tied || numbers == own;
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (!tied) all.clear();
#endif
  return all;
}
/// Lets this thread run on these processors; none: leaves it as it is. A system that refuses leaves it so, too.
inline void run_on([[maybe_unused]] const std::vector<int>& processors) {
#if defined(__linux__)
  if (processors.empty()) return;
  const auto most = static_cast<std::size_t>(*std::max_element(processors.begin(), processors.end())) + 1;
  cpu_set_t* const set = CPU_ALLOC(most);
  if (set == nullptr) return;
  CPU_ZERO_S(CPU_ALLOC_SIZE(most), set);
  for (const int p : processors) CPU_SET_S(static_cast<std::size_t>(p), CPU_ALLOC_SIZE(most), set);
  static_cast<void>(sched_setaffinity(0, CPU_ALLOC_SIZE(most), set));
  CPU_FREE(set);
#endif
}
/// f for a thread that this one starts: where OpenMP has tied this one to a place, the new one first leaves it for all places.
template <class F>
auto on_all_places(F f) {
  return [f = std::move(f), processors = openmp_processors()] {
    run_on(processors);
    f();
  };
}
}   // namespace lrcnn
