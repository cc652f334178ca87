#pragma once
// How maps are cut for blocks of threads that add up channels over positions.
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
namespace lrcnn::loops {
/// How positions and channels of sets are dealt out to blocks: a thread takes a few channels of every height-th position of a part.
struct Tiles {
  Index sets = 1, positions = 0, part = 1, columns = 1;   ///< part: positions of one; columns: blocks beside each other
  int width = 1, height = 1;                              ///< threads beside and below each other
  constexpr Index parts() const { return positions > part ? ceil_div(positions, part) : 1; }
  constexpr Index blocks() const { return sets * parts() * columns; }
  /// Positions of part k.
  LRCNN_HOST_DEVICE Index size(Index k) const {
    const Index left = positions - k * part;
    return left < part ? left : part;
  }
};
inline constexpr int least_positions = 8;   ///< of a thread, where there are enough
/// `groups`: of channels that one thread takes; `least`: positions of a thread, where there are enough; `blocks`: at most; `widest`: threads beside
/// each other at most.
constexpr Tiles tiles_of_groups(Index sets, Index positions, Index groups, int least, Index blocks = most_blocks, Index widest = 32) {
  const int width = power_above(std::min(groups, widest)), height = block_threads / width;
  const Index columns = ceil_div(groups, Index{width}), most = std::max<Index>(1, blocks / (columns * sets));
  return {sets, positions, std::max<Index>(height * least, ceil_div(positions, most)), columns, width, height};
}
/// Threads beside each other in a sum over positions, each of which takes a group of channels. A narrow column is cut into fewer parts, and more
/// blocks share the adding up at the end; a wide one reads longer pieces of memory. The columns of all sets are few enough to have four parts each.
constexpr Index sum_width(Index sets, Index groups) {
  Index width = std::clamp<Index>(power_above(groups) / 4, 2, 8);
  while (width < 32 && ceil_div(groups, width) * sets > most_sum_blocks / 4) width *= 2;
  return width;
}
/// Of a sum over positions.
template <class T>
constexpr Tiles tiles_of(Index sets, Index positions, Index channels) {
  const Index groups = ceil_div(channels, Index{lanes<T>});
  return tiles_of_groups(sets, positions, groups, least_positions, most_sum_blocks, sum_width(sets, groups));
}
/// What a few numbers are added up in before they are added to others, in double: of 16 bits, a few have no more digits than a float holds, or lose
/// what is far below their own last ones.
template <class T>
using few_t = std::conditional_t<sizeof(T) == 2, float, double>;
/// What loops over tiles have in common.
template <class T>
struct TileLoop {
  static constexpr int V = lanes<T>;
  using Elements = Pack<T, V>;
  Tiles tiles;
  Divisor columns, parts, per_image;
  Index channels;
  struct Place {
    Index set, part, channel;
    int row, count;   ///< count: channels; none or less beside the last
  };
  TileLoop(const View<const T>& view, const Tiles& t)
      : tiles(t), columns(t.columns), parts(t.parts()), per_image(std::max<Index>(1, view.rows * view.w)), channels(view.c) {}
  LRCNN_HOST_DEVICE Place place(Index block, int thread) const {
    Index column = block, part = columns.split(column);
    const Index set = parts.split(part);
    const int row = thread / tiles.width;
    const Index channel = (column * tiles.width + thread - row * tiles.width) * V, left = channels - channel;
    return {set, part, channel, row, left < V ? static_cast<int>(left) : V};
  }
  /// Elements before a position of a set.
  LRCNN_HOST_DEVICE Index before(const Place& place, Index position, Index stride_n) const {
    const Index image = per_image.split(position) + place.set;
    return image * stride_n + position * channels + place.channel;
  }
  /// Some positions of a thread.
  template <int count>
  struct Some {
    Index first;
    int left, step;   ///< left: positions of the thread from the first on
    LRCNN_HOST_DEVICE bool has(int i) const { return i < left; }
    /// The i-th, or the first where there are fewer.
    LRCNN_HOST_DEVICE Index at(int i) const { return has(i) ? first + i * step : first; }
  };
  /// Calls f(Some<at_once>) until all positions of a thread have been.
  template <int at_once, class F>
  LRCNN_HOST_DEVICE void each(const Place& place, F f) const {
    const int below = static_cast<int>(tiles.size(place.part)) - place.row;   // a part of 2^31 positions would be of a map of 500 GB
    Index at = place.part * tiles.part + place.row;
    for (int left = (below + tiles.height - 1) / tiles.height; left > 0; left -= at_once, at += at_once * tiles.height)
      f(Some<at_once>{at, left, tiles.height});
  }
};
}   // namespace lrcnn::loops
