#pragma once
// A primitive of the library cut into parts, which the threads of our own loops carry out.
//
// The library starts OpenMP's threads for each primitive and waits at a barrier for all of them; beside a busy neighbour
// it waits for threads that are not running. So, where a problem can be cut, we make primitives for one thread and hand
// them to host::parallel_for. Which thread takes a part does not matter; how many parts there are depends on the problem
// and the number of threads alone, so results are the same bit by bit for a given number of threads.
//
// What cannot be cut (fewer images than threads, too little workspace) goes to OpenMP's threads as before. They spin for a
// while after it, so the loops that follow use them too, until a primitive in parts comes: host::threads_awake() says so.
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/onednn/api.hpp>
#include <atomic>
#include <exception>
#include <vector>
#ifdef _OPENMP
#include <omp.h>
#endif
namespace lrcnn::onednn {
/// Whether the library can be told how many threads to use.
#ifdef _OPENMP
inline constexpr bool has_openmp = true;
#else
inline constexpr bool has_openmp = false;
#endif
/// The number of threads that the library uses for what this thread asks of it.
inline int library_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}
/// While it lives, the library uses so many threads for what this thread asks of it.
class [[maybe_unused]] LibraryThreads {
 public:
#ifdef _OPENMP
  explicit LibraryThreads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~LibraryThreads() { omp_set_num_threads(before_); }
#else
  explicit LibraryThreads(int) {}
#endif
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;
#ifdef _OPENMP
 private:
  int before_;
#endif
};
/// A copy with a stream of its own: a stream serves one thread at a time.
inline Library with_own_stream(const Library& library) {
  Library own = library;
  own.stream = dnnl::stream(own.engine);
  return own;
}
/// Calls f(part) for all parts, on threads. What parts throw is thrown when all are done, once.
template <class F>
void for_parts(Index parts, int threads, F f) {
  std::atomic<bool> failed = false;
  std::exception_ptr error;
  host::parallel_for(parts, threads, [&](Index part) {
    const LibraryThreads one(1);
    try {
      f(part);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  });
  if (failed) std::rethrow_exception(error);
}
}   // namespace lrcnn::onednn
