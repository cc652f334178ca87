#pragma once
// How a 3x3 convolution by Winograd's algorithm is cut, so that its scratch fits into the memory that a plan gives it.
//
// Tiles are taken in chunks and output channels in groups: a chunk's inputs, a group's filters and their products are in
// memory at a time. Nothing here depends on the kind of vectors but the number of lanes, to which channels are rounded up.
#include <lrcnn/core/machine.hpp>
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <limits>
#include <optional>
namespace lrcnn::host::winograd {
/// A tile of outputs is `tile` wide and high and needs a patch of inputs; both become numbers at 36 positions.
/// Matrices are cut into panels of 64 columns, of which the last one may be narrower.
inline constexpr Index positions = 36, panel = 64, tile = 4, patch = 6;
/// Columns of a panel of a matrix.
constexpr Index panel_width(Index columns, Index p) { return std::min(panel, columns - panel * p); }
/// out(y, x) = sum over taps r, s of in(y + r - top, x + s - left) w(r, s), rows and columns counted from the slab's first.
/// A data gradient is the same with the filter turned round, from dy to dx.
struct SlabPass {
  Index n = 0, in_c = 0, out_c = 0;   ///< channels with their padding: multiples of the lanes
  Index in_rows = 0, in_w = 0, out_rows = 0, out_w = 0;
  Index top = 0, left = 0;
  constexpr Index across() const { return ceil_div(out_w, tile); }
  constexpr Index down() const { return ceil_div(out_rows, tile); }
  constexpr Index tiles() const { return n * across() * down(); }
};
/// By what threads divide a pass among them. What one thread writes and another one reads is slow where their caches are far apart.
enum class Division {
  by_positions,   ///< inputs, filters and products are all threads', which take positions and panels of the products
  by_channels,    ///< each has a group of output channels to itself, with its filters and products; inputs are all threads'
  by_tiles,       ///< each has a chunk of tiles to itself, with its inputs and products; filters are all threads', sums of gradients are each one's
};
/// What is in memory at a time.
struct Blocking {
  Index tiles = 0;      ///< in a chunk
  Index channels = 0;   ///< output channels in a group
  Division division = Division::by_positions;
  Index bytes = 0;   ///< of scratch
};
namespace detail {
inline constexpr Index float_bytes = positions * 4;   ///< of an element in all positions
/// Elements from a matrix of one position to that of the next. An odd number of cache lines, so that what is written to all
/// positions in turn does not fall into the same few sets of a cache.
constexpr Index apart(Index rows, Index columns) {
  constexpr Index line = 16;   // floats
  return (ceil_div(rows * columns, line) | 1) * line;
}
inline constexpr Index fewest_tiles = 24, most_tiles = 1536;   ///< in a chunk that all threads share
/// Floats in whose place the sums of so many channels' gradients lie, which are doubles.
constexpr Index sums_floats(Index channels) { return 2 * round_up(channels, 16); }
}   // namespace detail
/// Scratch of a chunk of so many tiles and a group of so many output channels, where all threads share them.
constexpr Index pass_bytes(const SlabPass& p, Index tiles, Index channels) {
  using detail::apart;
  return detail::float_bytes * (apart(tiles, p.in_c) + apart(tiles, channels) + apart(p.in_c, channels)) + 8 * channels;
}
/// Scratch of a pass that is cut so. `gradient`: of the filters.
constexpr Index blocking_bytes(const SlabPass& p, Index tiles, Index channels, Division division, bool gradient, int threads) {
  using detail::apart, detail::float_bytes, detail::sums_floats;
  if (division == Division::by_positions) return pass_bytes(p, tiles, channels);
  const Index inputs = apart(tiles, p.in_c), products = apart(tiles, channels), filters = apart(p.in_c, channels);
  const Index sums = gradient ? 4 * sums_floats(channels) : 0;
  if (division == Division::by_tiles) {
    return gradient ? threads * (float_bytes * (filters + inputs + products) + sums) : float_bytes * (filters + threads * (inputs + products));
  }
  const Index owners = std::min<Index>(threads, ceil_div(p.out_c, channels));
  return float_bytes * inputs + owners * (float_bytes * (filters + products) + sums);
}
/// The smallest scratch that a pass can do with.
constexpr Index least_bytes(const SlabPass& p) { return pass_bytes(p, std::min(p.tiles(), detail::fewest_tiles), std::min(p.out_c, panel)); }
/// The scratch of a pass on so many tiles at a time, with output channels in the smallest groups: what a planner counts with.
constexpr Index scratch_bytes(Index in_c, Index out_c, Index tiles) {
  constexpr Index most_lanes = 16;
  const Index in = round_up(in_c, most_lanes), out = round_up(out_c, most_lanes);
  return pass_bytes({.in_c = in, .out_c = out}, tiles, std::min(out, panel));
}
namespace detail {
/// What a way to cut a pass writes to memory, in numbers at all positions, and what of it one thread writes and another one reads.
struct Traffic {
  Index written = 0, passed = 0;
  /// In place of time.
  /// Source:  VGG-16's and ResNet-18's layers, two cores of an AMD EPYC that have one L3 or one each, as the host puts them from minute to minute. A
  ///          number that passes from core to core takes 30 ns with two L3s and hardly any time with one; one that is written takes 2.5 ns. With
  ///          this weight no layer takes more than 3 % longer with one L3 than by positions, and most of what can be gained with two is.
  constexpr Index work() const { return written + 2 * passed; }
};
/// What a pass may hold at a time, in bytes, with the caches of a machine.
/// Source:  choose_blocking()
struct CacheLimits {
  Index filters;               ///< transforms for which threads take tiles of their own, with all channels
  Index shared;                ///< inputs and products of a chunk that all threads share
  Index by_positions;          ///< the same where threads divide positions, but in passes for filter gradients
  Index fewest_tiles, tiles;   ///< in a chunk of one thread, whatever its cache holds
  bool splits;                 ///< whether channels may be put into groups although filters fit all at once
};
constexpr CacheLimits limits_of(const Caches& caches) {
  // Filters come from the third cache anyway, so many tiles at a time have to meet them.
  if (caches.level2 < 1_MiB) return {2560 * 1024, caches.level3 / 4, caches.level3 / 4, 48, 48, true};
  const Index tiles = std::clamp<Index>(24 * caches.level2 / 1_MiB / 6 * 6, 12, 48);
  // gradients of 256 channels on the Xeon: 904 GFLOP/s with 28 MB of transforms, 673 with 57
  return {10_MiB, 32_MiB, std::numeric_limits<Index>::max(), tiles > 36 ? 36 : 12, tiles, false};
}
/// Looks for the best way to cut a pass. `gradient`: of the filters.
struct BlockingChoice {
  const SlabPass& p;
  bool gradient;
  int threads;
  Index room;
  const Caches& caches;
  CacheLimits limits = limits_of(caches);
  std::optional<Blocking> best{};
  Index work = std::numeric_limits<Index>::max();   ///< what stands for the best one's time

  static constexpr Index waiting = 4096;                 ///< work in which the threads wait for each other
  static constexpr Index most_gradients = 2560 * 1024;   ///< transforms of gradients that each thread has to itself

  Index filters() const { return p.in_c * p.out_c; }
  Index inputs() const { return p.tiles() * p.in_c; }
  Index bytes(Index tiles, Index channels, Division division) const { return blocking_bytes(p, tiles, channels, division, gradient, threads); }
  void consider(Index tiles, Index channels, Division division, const Traffic& traffic, Index more) {
    if (traffic.work() + more >= work) return;
    work = traffic.work() + more;
    best = Blocking{tiles, channels, division, bytes(tiles, channels, division)};
  }
  /// Tiles of a chunk that all threads share, at `each` bytes a tile; 0: too few fit beside the rest.
  Index shared_tiles(Index channels, Division division, Index each, Index most_bytes) const {
    const Index all = p.tiles(), left = std::min(room - bytes(0, channels, division), most_bytes);
    const Index few = std::min(all, fewest_tiles);   // these are asked for by themselves: matrices are rounded up to lines
    Index tiles = left <= 0 ? 0 : std::min({all, left / each, most_tiles});
    if (tiles < few && bytes(few, channels, division) <= room) return few;
    if (tiles >= few && tiles < all)   // chunks about as large as each other
      tiles = std::max(few, round_up(ceil_div(all, ceil_div(all, tiles / 6 * 6)), 6));
    while (tiles > 0 && bytes(tiles, channels, division) > room) tiles = (tiles - 1) / 6 * 6;
    return tiles < few ? 0 : tiles;
  }
  void by_positions() {
    for (Index panels = ceil_div(p.out_c, panel); panels > 0; panels = panels == 1 ? 0 : ceil_div(panels, 2)) {
      const Index channels = std::min(panels * panel, p.out_c), groups = ceil_div(p.out_c, channels);
      const Index tiles =
          shared_tiles(channels, Division::by_positions, float_bytes * (p.in_c + channels), gradient ? limits.shared : limits.by_positions);
      if (tiles == 0) continue;
      const Index chunks = ceil_div(p.tiles(), tiles);
      Index more = chunks * groups * waiting;
      if (float_bytes * p.in_c * channels > 8_MiB) more += chunks * filters();           // filters have left the cache when products want them
      if (float_bytes * tiles * p.in_c > caches.level3 / 2) more += groups * inputs();   // likewise inputs, for each group
      const Index made = gradient ? (chunks > 1 ? groups : 1) * inputs() : (groups > 1 ? chunks : 1) * filters();
      const Index outputs = p.tiles() * p.out_c;
      const Traffic traffic =
          gradient ? Traffic{filters() + made + chunks * filters(), made + outputs + filters()} : Traffic{inputs() + made, inputs() + made + outputs};
      consider(tiles, channels, Division::by_positions, traffic, more);
    }
  }
  void by_channels() {
    for (Index channels = gradient ? panel : panel / 2; channels <= p.out_c; channels *= 2) {
      const Index groups = ceil_div(p.out_c, channels), rounds = ceil_div(groups, threads);
      if (groups < threads) return;
      const Index tiles = shared_tiles(channels, Division::by_channels, float_bytes * (p.in_c + threads * channels), limits.shared);
      if (tiles == 0) continue;
      const Index chunks = ceil_div(p.tiles(), tiles), filters_of_most = filters() * rounds * threads / groups;
      const Index times = gradient || groups > threads ? chunks : 1;   // a thread with one group transforms its filters once
      Index more = chunks * 2 * waiting;
      if (float_bytes * tiles * p.in_c > caches.level3 / 2) more += rounds * inputs();
      const Index made = gradient && chunks > 1 ? rounds * inputs() : inputs();
      consider(tiles, channels, Division::by_channels, {(gradient ? filters() : 0) + made + times * filters_of_most, made}, more);
    }
  }
  /// Tiles of a chunk that a thread has to itself, so that its core's cache holds it; 0: they do not fit.
  Index tiles_of_thread(Index channels) const {
    const Index tile_bytes = float_bytes * (p.in_c + channels);
    for (Index tiles = std::clamp<Index>(caches.level2 * 7 / 16 / tile_bytes / 6 * 6, limits.fewest_tiles, limits.tiles); tiles >= 12; tiles -= 6)
      if (bytes(tiles, channels, Division::by_tiles) <= room) return tiles;
    return 0;
  }
  /// With all channels, if filters stay in the processor's cache.
  void by_tiles_alone() {
    if (float_bytes * apart(p.in_c, p.out_c) > (gradient ? most_gradients : limits.filters)) return;
    if (const Index tiles = tiles_of_thread(p.out_c); tiles > 0) consider(tiles, p.out_c, Division::by_tiles, {}, 0);
  }
  /// With groups of channels, each of which has the inputs transformed again.
  void by_tiles_in_groups() {
    for (Index channels = panel / 2; channels < p.out_c && !gradient; channels *= 2) {
      const Index tiles = tiles_of_thread(channels), chunks = tiles == 0 ? 0 : ceil_div(p.tiles(), tiles), groups = ceil_div(p.out_c, channels);
      if (chunks < threads || float_bytes * apart(p.in_c, channels) > limits.filters) continue;
      const Index of_most = ceil_div(chunks, threads) * threads;   // chunks, if all threads had as many as the one that has most
      consider(tiles, channels, Division::by_tiles, {filters() + groups * inputs() * of_most / chunks, filters()}, groups * 2 * waiting);
    }
  }
};
}   // namespace detail
/// How a pass is cut so that its scratch fits into `room` bytes; nothing if that is less than least_bytes().
/// `gradient`: of the filters. Cost: microseconds.
/// Source:  VGG-16's layers, batch 8, two cores of an AMD EPYC with 1 MiB of L2 each and 32 MiB of L3: with 12 to 24 tiles to each
///          thread, layers of up to 256 x 256 channels reach 550 to 700 GFLOP/s of a direct convolution's; larger filters do not
///          fit into the L3 and reach 490 so, 650 to 720 with 192 tiles and more in a chunk shared by the threads.
///          Two cores of an Intel Xeon with 2 MiB of L2 each: 36 to 48 tiles to each thread are 5 to 24 % faster than 12 (256 channels
///          forward: 884 against 711 GFLOP/s with AVX-512); 512 channels reach 714 to 1024 in groups of 64, whose filters take 5 MB,
///          and 528 to 825 all at once, where they take 38 MB. AVX2 on the same cores has the same order, and some 0.58 of it.
///          Where the two cores of an EPYC have an L3 each, milliseconds by positions, by channels, and by tiles with groups of channels:
///          512 channels, 32 tiles 8.4, 5.2, 9.3; 512 channels, 256 tiles 41, 33, 35; 256 channels, 1024 tiles 45, 36, 29. Where they
///          share one: 4.1, 3.9, 5.7; 27, 28, 27; 27, 27, 26
///          Two cores of an EPYC 7003, AVX2, with 512 KiB of L2 each and 32 MiB of L3, milliseconds with limits for large and for small second
///          caches (medians of alternating runs): filter gradients of 64 channels, 8 x 56 x 56, 6.5, 5.3; 128, 8 x 28 x 28, 7.0, 5.8; 256,
///          8 x 56 x 56, 66, 60; forward of 256, 8 x 14 x 14, 8.2, 5.8; 512, 8 x 28 x 28, 66 to 68, 58 to 70; others -11 to +8 %
inline std::optional<Blocking> choose_blocking(const SlabPass& p, bool gradient, int threads, Index room, const Caches& caches = processor_caches()) {
  if (room < least_bytes(p)) return {};
  detail::BlockingChoice choice{p, gradient, threads, room, caches};
  choice.by_tiles_alone();
  if (choice.best) return choice.best;
  choice.by_positions();
  // With one thread nothing passes to another one; filters of more than a panel that are there all at once say that there is room enough.
  const bool at_once = choice.best && choice.best->channels == p.out_c && p.out_c > panel && !choice.limits.splits;
  if (threads == 1 || at_once) return choice.best;
  choice.by_tiles_in_groups();
  choice.by_channels();
  return choice.best;
}
/// The same with one division, to compare; nothing if it does not fit, or if it is not for that pass.
inline std::optional<Blocking> choose_blocking(const SlabPass& p, Division division, bool gradient, int threads, Index room,
                                               const Caches& caches = processor_caches()) {
  detail::BlockingChoice choice{p, gradient, threads, room, caches};
  switch (division) {
    case Division::by_positions: choice.by_positions(); break;
    case Division::by_channels: choice.by_channels(); break;
    case Division::by_tiles:
      choice.by_tiles_alone();
      if (!choice.best) choice.by_tiles_in_groups();
      break;
  }
  return choice.best;
}
/// Whether a pass is likely to be faster than direct arithmetic: tiles at the borders do work that is thrown away.
constexpr bool pays(Index out_rows, Index out_w) {
  return positions * ceil_div(out_rows, tile) * ceil_div(out_w, tile) * 5 <= 9 * out_rows * out_w * 2;
}
}   // namespace lrcnn::host::winograd
