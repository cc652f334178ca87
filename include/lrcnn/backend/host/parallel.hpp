#pragma once
// Loops over independent pieces of work, on several threads where OpenMP is switched on.
//
// Every piece writes memory of its own and is computed in the same way whoever computes it, so results do not depend
// on the number of threads. The schedule is static: the same thread gets the same rows in every call.
#include <lrcnn/core/view.hpp>
#include <algorithm>
namespace lrcnn::host {
/// Calls f(0) ... f(count - 1), in any order if threads > 1. f does not throw.
template <class F>
void parallel_for(Index count, int threads, F&& f) {
#if defined(_OPENMP)
  if (threads > 1 && count > 1) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (Index i = 0; i < count; ++i) f(i);
    return;
  }
#endif
  static_cast<void>(threads);
  for (Index i = 0; i < count; ++i) f(i);
}
/// Threads that are worth waking for this many elements of a memory-bound loop.
constexpr int useful_threads(Index elements, int threads) {
  return static_cast<int>(std::clamp<Index>(elements / 16384, 1, std::max(threads, 1)));
}
/// Calls f(image, channel block, row) for each stored row of a view; rows are absolute.
template <class V, class F>
void for_rows(const V& view, int threads, F&& f) {
  const Index rows = view.rows, blocks = view.blocks();
  if (rows <= 0) return;
  const Index count = view.n * blocks * rows;
  parallel_for(count, useful_threads(count * view.stride_row(), threads), [&](Index piece) {
    f(piece / (blocks * rows), piece / rows % blocks, view.row0 + piece % rows);
  });
}
/// Calls f(image, channel block) for each plane of a view.
template <class V, class F>
void for_planes(const V& view, int threads, F&& f) {
  const Index blocks = view.blocks(), count = view.n * blocks;
  parallel_for(count, useful_threads(count * view.rows * view.stride_row(), threads), [&](Index piece) {
    f(piece / blocks, piece % blocks);
  });
}
}  // namespace lrcnn::host
