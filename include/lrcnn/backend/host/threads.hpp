#pragma once
// How many threads a backend on the host starts, and how many of them a library may use that runs on OpenMP's.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/machine.hpp>
#include <algorithm>
#include <string>
#ifdef _OPENMP
#include <omp.h>
#endif
namespace lrcnn::host {
/// The number of threads for a number that a user has given: 0 means as many as the process has processors for, and no more than OpenMP would
/// use, where the program is compiled with it.
/// Errors:  BackendError if it is negative, or so large that it must be a mistake
inline int thread_count(int wanted) {
  const int processors = processor_count(), most = std::max(64, 8 * processors);
  if (wanted < 0 || wanted > most)
    throw BackendError(error_text("a backend is to use " + std::to_string(wanted) + " threads",
                                  "a number of threads is 0 to " + std::to_string(most) + " where a process has " + std::to_string(processors) +
                                      (processors == 1 ? " processor" : " processors"),
                                  "give 0 for as many threads as there are processors, or a number within these limits"));
#ifdef _OPENMP
  return wanted > 0 ? wanted : std::max(1, std::min(omp_get_max_threads(), processors));
#else
  return wanted > 0 ? wanted : processors;
#endif
}
/// How many of a backend's `threads` a library may use that runs on OpenMP's: no more than the process has processors for. These threads
/// wait for each other without giving way, so that 18 on 2 processors train a hundred times as slowly as 16 (oneDNN 2.6, the demo's network).
inline int openmp_threads(int threads) { return std::min(threads, processor_count()); }
}   // namespace lrcnn::host
