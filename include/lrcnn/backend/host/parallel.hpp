#pragma once
// Loops over independent pieces of work, on several threads.
//
// Every piece writes memory of its own and is computed in the same way whoever computes it, so results do not depend
// on the number of threads, nor on which thread takes which piece. Threads are those of host/thread_pool.hpp.
#include <lrcnn/backend/host/thread_pool.hpp>
#include <lrcnn/core/view.hpp>
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <type_traits>
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
namespace lrcnn::host {
/// How many of OpenMP's threads are awake, because a vendor's library has just used them: then loops use no others. 1: only the caller's, as in a
/// child after fork(), which has no others.
inline std::atomic<int>& threads_awake() {
  static std::atomic<int> count = 1;
#if defined(__unix__) || defined(__APPLE__)
  [[maybe_unused]] static const int handler = pthread_atfork(nullptr, nullptr, [] { count.store(1, std::memory_order_relaxed); });
#endif
  return count;
}
/// Starts the threads for loops on so many; otherwise the first loop does.
inline void start_threads(int threads) {
  if (threads > 1)
    if (ThreadPool* const pool = ThreadPool::get()) pool->start(threads);
}
namespace detail {
/// Calls body(closure, begin, end) for ranges that cover [0, count). Compiled where LRCNN_PRECOMPILED says (precompiled/host.hpp).
template <class = void>
void run_loop(Index count, int threads, ThreadPool::Body body, void* closure) {
  if (threads <= 1 || count <= 1) {
    body(closure, 0, count);
    return;
  }
#ifdef _OPENMP
  if (const int awake = threads_awake().load(std::memory_order_relaxed); awake > 1) {
#pragma omp parallel num_threads(std::min(threads, awake))
    {
      const Index team = omp_get_num_threads(), mine = omp_get_thread_num();
      body(closure, count * mine / team, count * (mine + 1) / team);
    }
    return;
  }
#endif
  if (ThreadPool* const pool = ThreadPool::get(); pool != nullptr && pool->run(count, threads, body, closure)) return;
  body(closure, 0, count);
}
}   // namespace detail
/// Calls f(0) ... f(count - 1), in any order if threads > 1. f does not throw.
template <class F>
void parallel_for(Index count, int threads, F&& f) {   // f is compiled once for all ways of sharing the work, which takes half of the time
  using Body = std::remove_reference_t<F>;
  detail::run_loop<>(
      count, threads,
      [](void* closure, Index begin, Index end) {
        Body& each = *static_cast<Body*>(closure);
        for (Index i = begin; i < end; ++i) each(i);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}
/// The same for an f that may throw, as a user's code may. Pieces that have begun are finished, others are left out after the first error;
/// that one is thrown again.
template <class F>
void parallel_for_any(Index count, int threads, F&& f) {
  std::atomic<bool> failed = false;
  std::exception_ptr error;
  parallel_for(count, threads, [&](Index i) {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      f(i);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}
/// Threads that are worth waking for this much work, in elements of a memory-bound loop.
/// Source:  two threads overtake one between 8192 and 16384 elements of a ReLU with mask bits in float (3 us; two
///          cores of an AMD EPYC, AVX2, libgomp)
constexpr int useful_threads(Index elements, int threads) { return static_cast<int>(std::clamp<Index>(elements / 8192, 1, std::max(threads, 1))); }
/// Calls f(image, channel block, rows) for groups of rows that cover a view; rows are absolute, and those of a group
/// lie one after the other in memory. `weight`: work per stored element.
template <class V, class F>
void for_row_groups(const V& view, int threads, F&& f, Index weight = 1) {
  if (view.rows <= 0) return;
  const Index row_work = std::max<Index>(1, view.stride_row() * weight);
  const Index group = std::clamp<Index>(4096 / row_work, 1, view.rows), groups = ceil_div(view.rows, group);
  const Index blocks = view.blocks(), end = view.range().end;
  parallel_for(view.n * blocks * groups, useful_threads(view.n * blocks * view.rows * row_work, threads), [&](Index piece) {
    const Index first = view.row0 + piece % groups * group;
    f(piece / (blocks * groups), piece / groups % blocks, Range{first, std::min(first + group, end)});
  });
}
/// Calls f(image, channel block, row) for each stored row of a view.
template <class V, class F>
void for_rows(const V& view, int threads, F&& f, Index weight = 1) {
  for_row_groups(
      view, threads,
      [&](Index i, Index b, Range rows) {
        for (Index row = rows.begin; row < rows.end; ++row) f(i, b, row);
      },
      weight);
}
}   // namespace lrcnn::host
