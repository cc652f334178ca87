#pragma once
// Updating parameters, and finding out beforehand whether there is anything sound to update them with.
//
// The arithmetic of one element is that of backend/update.hpp, the loop is here. A flag in the device's memory carries
// the verdict from all_finite() to the update, so nobody has to wait for it.
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/backend/cudnn/loops/lines.hpp>
namespace lrcnn::loops {
namespace detail {
template <class Update, class A>
struct UpdateLoop {
  Update update;
  A* w;
  const A* g;
  A *s0, *s1;
  const int* apply;
  LRCNN_HOST_DEVICE void operator()(Index i) const {
    if (apply != nullptr && *apply == 0) return;
    if constexpr (Update::states == 0) update(w[i], g[i]);
    else if constexpr (Update::states == 1) update(w[i], g[i], s0[i]);
    else update(w[i], g[i], s0[i], s1[i]);
  }
};
/// Clears the flag where an element minus itself is not 0.
template <class T>
struct FiniteLoop {
  Lines lines;
  Line<const T> x;
  int* flag;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    master_t<T> value[Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    bool finite = true;
    for (int v = 0; v < Lines::width; ++v) finite = finite && value[v] - value[v] == master_t<T>(0);
    if (!finite) *flag = 0;   // whoever writes writes the same
  }
};
/// The sum of squares of a block's elements, dealt out to its threads four at a time.
struct SquaresLoop {
  static constexpr int phases = 1 + tree_phases, V = 4, at_once = 4;
  struct Shared {
    double sum[block_threads];
  };
  const float* x;
  Index count, blocks;
  bool packs;
  double* sums;
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    if constexpr (k == 0) {
      double sum[V] = {};
      const Index step = blocks * block_threads * V;
      Index at = (block * block_threads + thread) * V;
      for (; at + (at_once - 1) * step + V <= count; at += at_once * step) add<at_once>(at, step, V, sum);
      for (; at < count; at += step) add<1>(at, step, count - at < V ? static_cast<int>(count - at) : V, sum);
      shared.sum[thread] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    } else {
      tree_step<k - 1>(thread, block_threads / 2, 1, [&](int own, int other) { shared.sum[own] += shared.sum[other]; });
      if constexpr (k == phases - 1)
        if (thread == 0) sums[block] = shared.sum[0];
    }
  }

 private:
  template <int n>
  LRCNN_HOST_DEVICE void add(Index at, Index step, int many, double (&sum)[V]) const {
    Pack<float, V> element[n];
    load_all([&](int i) { return x + at + i * step; }, many, packs, element);
    for (int i = 0; i < n; ++i)
      for (int v = 0; v < V; ++v) sum[v] += static_cast<double>(element[i].element[v]) * static_cast<double>(element[i].element[v]);
  }
};
/// Adds up the sums of blocks. One block.
struct AddLoop {
  static constexpr int phases = 1 + tree_phases;
  using Shared = SquaresLoop::Shared;
  double* sums;
  Index count;
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index, int thread, Shared& shared) const {
    if constexpr (k == 0) {
      double sum = 0;
      for (Index i = thread; i < count; i += block_threads) sum += sums[i];
      shared.sum[thread] = sum;
    } else {
      tree_step<k - 1>(thread, block_threads / 2, 1, [&](int own, int other) { shared.sum[own] += shared.sum[other]; });
      if constexpr (k == phases - 1)
        if (thread == 0) sums[0] = shared.sum[0];
    }
  }
};
}   // namespace detail
/// Bytes of workspace that sum_of_squares() needs.
inline constexpr Index squares_bytes = most_blocks * static_cast<Index>(sizeof(double));
/// sums[0] = the sum of the squares of `count` elements, in double. Pre: sums: squares_bytes of the device's memory.
template <class Exec>
void sum_of_squares(const Exec& exec, const float* x, Index count, double* sums) {
  using Loop = detail::SquaresLoop;
  const Index blocks = std::clamp<Index>(ceil_div(count, Index{block_threads * Loop::V * Loop::at_once}), 1, most_blocks);
  for_blocks(exec, blocks, Loop{x, count, blocks, takes_packs<Loop::V>(x), sums});
  for_blocks(exec, 1, detail::AddLoop{sums, blocks});
}
/// Applies an element's update to `count` elements of contiguous buffers that do not overlap, as host::update_elements
/// does; s0 and s1 are the first two states, null where the update has none.
/// Post:    nothing is touched if `apply` is given and *apply, in the device's memory, is 0 when the loop runs
template <class Exec, class Update, class A>
void update_elements(const Exec& exec, const Update& update, A* w, const A* g, A* s0, A* s1, Index count, const int* apply = nullptr) {
  for_units(exec, count, detail::UpdateLoop<Update, A>{update, w, g, s0, s1, apply});
}
/// Clears *flag, in the device's memory, if an element is infinite or not a number; otherwise leaves it alone. So one
/// flag that was set to 1 beforehand can gather the verdict on several tensors.
template <class Exec, class T>
void all_finite(const Exec& exec, const View<T>& x, int* flag) {
  if (empty(x)) return;
  assert(channels_last(x));
  using Element = std::remove_const_t<T>;
  const Lines lines({}, x);
  for_units(exec, lines.count(), detail::FiniteLoop<Element>{lines, View<const Element>(x), flag});
}
/// Likewise for `count` elements in a row.
template <class Exec, class T>
void all_finite(const Exec& exec, const T* x, Index count, int* flag) {
  all_finite(exec, dense_view(x, 1, 1, {0, 1}, count), flag);
}
}   // namespace lrcnn::loops
