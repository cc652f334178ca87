#pragma once
// The end of a sum that blocks of threads add up in parts: the block that is done last adds up the parts, within the same kernel.
//
// A block writes its part and then counts itself in a tally. The one that finds all others counted adds up the parts with all its threads, in an
// order that does not depend on which block it is, so bits repeat.
//
// Tallies are memory of the device that is 0 when a loop begins, and 0 again when it is done. Loops that may run at the same time have tallies of
// their own.
#include <lrcnn/backend/cudnn/loops/tiles.hpp>
#include <atomic>
#ifdef __CUDACC__
#include <cuda/atomic>
#endif
namespace lrcnn::loops {
/// Tallies that a loop uses at most: one for each column and set that has two parts or more, and one for all columns.
inline constexpr Index most_tallies = most_sum_blocks / 2 + 1;
namespace detail {
/// Counts an arrival. True for the last of `all`, and the tally is 0 again. What blocks have written before a barrier and their arrival is
/// seen by the last one's threads behind the next barrier.
LRCNN_HOST_DEVICE inline bool arrives_last(std::uint32_t* tally, std::uint32_t all) {
#ifdef __CUDA_ARCH__
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device> arrived(*tally);
  const bool last = arrived.fetch_add(1, cuda::std::memory_order_acq_rel) + 1 == all;
  if (last) arrived.store(0, cuda::std::memory_order_relaxed);
#else
  const std::atomic_ref<std::uint32_t> arrived(*tally);
  const bool last = arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == all;
  if (last) arrived.store(0, std::memory_order_relaxed);
#endif
  return last;
}
/// A loop over tiles that adds up its parts at its end, and hands on then(set, channel, sum).
///
/// Sum has what parts are: Value, get(set, part, channel), put(set, part, channel, value); about(set, channel), what is the same for all parts of
/// a channel; add(sum, part, positions of the part, about), add(sum, other sum), result(sum, about).
/// then.close(set), if there is one, is called once, behind all of then(set, ...).
template <class T, class Sum, class Then>
struct SummedTiles : TileLoop<T> {
  using TileLoop<T>::V, TileLoop<T>::tiles;
  using Value = typename Sum::Value;
  static constexpr bool closes = requires(const Then& f) { f.close(Index{}); };
  static constexpr int end_phases = closes ? 4 : 3;
  /// What the threads of the last block tell each other.
  struct Turn {
    int last;   ///< whether this block is the last of its column
    Value sum[block_threads];
  };
  Sum of_parts;
  Then then;
  std::uint32_t* tallies;
  SummedTiles(const View<const T>& view, const Tiles& t, const Sum& s, const Then& f, std::uint32_t* counts)
      : TileLoop<T>(view, t), of_parts(s), then(f), tallies(counts) {
    assert(!closes || t.sets == 1);   // which have one tally
  }
  /// The phases behind the one in which parts are put.
  template <int k>
  LRCNN_HOST_DEVICE void end_phase(Index block, int thread, Turn& turn) const {
    Index column = block, part = this->columns.split(column);
    const Index set = this->parts.split(part), first = column * tiles.width * V;
    const int beside = tiles.width * V;   // channels of a column; block_threads / beside threads add up the parts of each
    if constexpr (k == 0) {
      if (thread == 0)
        turn.last = part_count() == 1 || arrives_last(tallies + set * tiles.columns + column, static_cast<std::uint32_t>(part_count()));
    } else if constexpr (k == 1) {
      const Index c = first + thread % beside;
      if (turn.last && c < this->channels) turn.sum[thread] = sum_of(set, thread / beside, block_threads / beside, c);
    } else if constexpr (k == 2) {
      const Index c = first + thread;
      if (!turn.last || thread >= beside || c >= this->channels) return;
      Value all = turn.sum[thread];
      for (int other = thread + beside; other < block_threads; other += beside) of_parts.add(all, turn.sum[other]);
      then(set, c, of_parts.result(all, of_parts.about(set, c)));
    } else {
      if (thread == 0 && turn.last && (tiles.columns == 1 || arrives_last(tallies + most_tallies - 1, static_cast<std::uint32_t>(tiles.columns))))
        then.close(set);
    }
  }

 private:
  LRCNN_HOST_DEVICE Index part_count() const { return this->parts.value(); }
  /// The sum of the parts first, first + step ... of a channel, one after the other; some are on their way at once.
  LRCNN_HOST_DEVICE Value sum_of(Index set, Index first, Index step, Index c) const {
    constexpr int at_once = 8;
    const double about = of_parts.about(set, c);
    Value all{};
    LRCNN_ROLLED
    for (; first < part_count(); first += at_once * step) {
      Value some[at_once];
      for (int i = 0; i < at_once; ++i) some[i] = first + i * step < part_count() ? of_parts.get(set, first + i * step, c) : Value{};
      for (int i = 0; i < at_once; ++i)
        if (first + i * step < part_count()) of_parts.add(all, some[i], tiles.size(first + i * step), about);
    }
    return all;
  }
};
}   // namespace detail
}   // namespace lrcnn::loops
