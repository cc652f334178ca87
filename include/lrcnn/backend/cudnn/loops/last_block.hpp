#pragma once
// The end of a sum that blocks of threads add up in parts: the block that is done last adds up the parts, within the same kernel.
//
// A block writes its part and then counts itself in a tally. The one that finds all others counted adds up the parts, in an order that does not
// depend on which block it is, so bits repeat. Of many parts, rows are added up first, each by the last of its blocks, so that no single block
// reads all parts; then the last of these blocks adds up the rows.
//
// Tallies are memory of the device that is 0 when a loop begins, and 0 again when it is done. Loops that may run at the same time have tallies of
// their own.
#include <lrcnn/backend/cudnn/loops/tiles.hpp>
#include <atomic>
#ifdef __CUDACC__
#include <cuda/atomic>
#endif
namespace lrcnn::loops {
/// Tallies that a loop uses at most, for columns and sets that have two parts or more: there are no more than most_sum_blocks / 2. Of those with more
/// than 64 parts, which take 33 each, there are four.
inline constexpr Index most_tallies = most_sum_blocks / 2 + 1;
namespace detail {
/// Parts k, k + 32, k + 64 ... of a channel are a row.
inline constexpr int part_rows = 32;
static_assert(most_sum_blocks / (2 * part_rows + 1) * (part_rows + 1) < most_tallies);
/// Counts `count` arrivals. True for the last of `all`, and the tally is 0 again. What blocks have written before a barrier and their arrival is
/// seen by the last one's threads behind the next barrier.
LRCNN_HOST_DEVICE inline bool arrives_last(std::uint32_t* tally, std::uint32_t all, std::uint32_t count = 1) {
#ifdef __CUDA_ARCH__
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device> arrived(*tally);
  const bool last = arrived.fetch_add(count, cuda::std::memory_order_acq_rel) + count == all;
  if (last) arrived.store(0, cuda::std::memory_order_relaxed);
#else
  const std::atomic_ref<std::uint32_t> arrived(*tally);
  const bool last = arrived.fetch_add(count, std::memory_order_acq_rel) + count == all;
  if (last) arrived.store(0, std::memory_order_relaxed);
#endif
  return last;
}
/// A loop over tiles that adds up its parts at its end, and hands on then(set, channel, sum).
///
/// Sum has what parts are: Value, get(set, part, channel), put(set, part, channel, value); about(set, channel), what is the same for all parts of
/// a channel; add(sum, part, positions of the part, about), add(sum, other sum), result(sum, about). Sum::about_first: about() reads part 0.
/// then.close(set), if there is one, is called once, behind all of then(set, ...).
template <class T, class Sum, class Then>
struct SummedTiles : TileLoop<T> {
  using TileLoop<T>::V, TileLoop<T>::tiles;
  using Value = typename Sum::Value;
  static constexpr bool closes = requires(const Then& f) { f.close(Index{}); };
  static constexpr int end_phases = closes ? 5 : 4;
  /// What blocks have come to.
  struct Turn {
    int complete[part_rows];   ///< whether this block is the last of a row; of those that wait for its part
    int last;                  ///< whether it is the last of all
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
    const Index set = this->parts.split(part), c = column * tiles.width * V + thread;
    const bool own = thread < tiles.width * V && c < this->channels;
    const Range waiting = rows_of(part);
    if constexpr (k == 0) {
      if (thread >= waiting.begin && thread < waiting.end) turn.complete[thread] = this->parts.value() == 1 || row_is_done(set, column, thread);
    } else if constexpr (k == 1) {
      if (rows() == 1 || !own) return;
      LRCNN_ROLLED
      for (Index row = waiting.begin; row < waiting.end; ++row)
        if (turn.complete[row]) of_parts.put(set, row_place(row), c, row_sum(set, row, c, of_parts.about(set, c)));
    } else if constexpr (k == 2) {
      if (thread == 0) turn.last = is_last(set, column, waiting, turn);
    } else if constexpr (k == 3) {
      if (!turn.last || !own) return;
      const double about = of_parts.about(set, c);
      then(set, c, of_parts.result(total(set, c, about), about));
    } else {
      if (thread == 0 && turn.last && (tiles.columns == 1 || arrives_last(tallies + most_tallies - 1, static_cast<std::uint32_t>(tiles.columns))))
        then.close(set);
    }
  }

 private:
  /// Rows that are added up by themselves: few parts are added up at once.
  LRCNN_HOST_DEVICE int rows() const { return this->parts.value() > 2 * part_rows ? part_rows : 1; }
  /// Where a row's sum lies: in the place of its second part.
  LRCNN_HOST_DEVICE static Index row_place(Index row) { return part_rows + row; }
  LRCNN_HOST_DEVICE std::uint32_t* tally(Index set, Index column, int row) const {
    return tallies + (set * tiles.columns + column) * (rows() > 1 ? part_rows + 1 : 1) + row;
  }
  /// Rows that wait for a part: its own, or all, of the part that all are added up about.
  LRCNN_HOST_DEVICE Range rows_of(Index part) const {
    if (Sum::about_first && part == 0) return {0, rows()};
    const Index row = part & (rows() - 1);
    return {row, row + 1};
  }
  LRCNN_HOST_DEVICE bool row_is_done(Index set, Index column, int row) const {
    Index waited_for = this->parts.value();
    if (rows() > 1) waited_for = (waited_for - row + part_rows - 1) / part_rows + (Sum::about_first && row > 0);
    return arrives_last(tally(set, column, row), static_cast<std::uint32_t>(waited_for));
  }
  LRCNN_HOST_DEVICE bool is_last(Index set, Index column, const Range& waiting, const Turn& turn) const {
    if (rows() == 1) return turn.complete[0] != 0;
    std::uint32_t complete = 0;
    LRCNN_ROLLED
    for (Index row = waiting.begin; row < waiting.end; ++row) complete += turn.complete[row] != 0;
    return complete > 0 && arrives_last(tally(set, column, part_rows), part_rows, complete);
  }
  /// The sum of get(first), get(first + step) ... get(below count), one after the other; some are on their way at once.
  template <int at_once, class Get, class Add>
  LRCNN_HOST_DEVICE static Value in_order(Index first, Index step, Index count, Get get, Add add) {
    Value all{};
    LRCNN_ROLLED
    for (; first < count; first += at_once * step) {
      Value some[at_once];
      for (int i = 0; i < at_once; ++i) some[i] = first + i * step < count ? get(first + i * step) : Value{};
      for (int i = 0; i < at_once; ++i)
        if (first + i * step < count) add(all, some[i], first + i * step);
    }
    return all;
  }
  /// Of the parts first, first + step ...
  template <int at_once>
  LRCNN_HOST_DEVICE Value sum_of(Index set, Index first, Index step, Index c, double about) const {
    return in_order<at_once>(
        first, step, this->parts.value(), [&](Index part) { return of_parts.get(set, part, c); },
        [&](Value& all, const Value& value, Index part) { of_parts.add(all, value, tiles.size(part), about); });
  }
  LRCNN_HOST_DEVICE Value row_sum(Index set, Index row, Index c, double about) const { return sum_of<8>(set, row, part_rows, c, about); }
  LRCNN_HOST_DEVICE Value total(Index set, Index c, double about) const {
    if (rows() == 1) return sum_of<8>(set, 0, 1, c, about);
    return in_order<8>(
        0, 1, part_rows, [&](Index row) { return of_parts.get(set, row_place(row), c); },
        [&](Value& all, const Value& value, Index) { of_parts.add(all, value); });
  }
};
}   // namespace detail
}   // namespace lrcnn::loops
