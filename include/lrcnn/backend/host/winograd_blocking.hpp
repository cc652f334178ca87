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
}   // namespace detail
/// Scratch of a chunk of so many tiles and a group of so many output channels, where all threads share them.
constexpr Index pass_bytes(const SlabPass& p, Index tiles, Index channels) {
  using detail::apart;
  return detail::float_bytes * (apart(tiles, p.in_c) + apart(tiles, channels) + apart(p.in_c, channels)) + 4 * channels;
}
/// Scratch of a pass that is cut so. `gradient`: of the filters.
constexpr Index blocking_bytes(const SlabPass& p, Index tiles, Index channels, Division division, bool gradient, int threads) {
  using detail::apart, detail::float_bytes;
  if (division == Division::by_positions) return pass_bytes(p, tiles, channels);
  const Index inputs = apart(tiles, p.in_c), products = apart(tiles, channels), filters = apart(p.in_c, channels);
  const Index sums = gradient ? 4 * round_up(channels, 16) : 0;
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
  /// In place of time. Source: VGG-16's and ResNet-18's layers, two cores of an AMD EPYC that have one L3 or one each, as the host puts them
  ///          from minute to minute. A number that passes from core to core takes 30 ns with two L3s, hardly any time with one; one that is
  ///          written takes 2.5 ns.
  constexpr Index work() const { return written + 2 * passed; }
};
/// Of a way that divides by positions or by channels. `gradient`: of the filters. Pre: tiles >= 1
constexpr Traffic traffic_of(const SlabPass& p, Index tiles, Index channels, Division division, bool gradient, int threads) {
  const Index all = p.tiles(), groups = ceil_div(p.out_c, channels), chunks = ceil_div(all, tiles);
  const Index filters = p.in_c * p.out_c, inputs = all * p.in_c, outputs = all * p.out_c;
  if (division == Division::by_tiles) {
    const Index each = ceil_div(chunks, threads) * threads;   // chunks, if all threads had as many as the one that has most
    return gradient ? Traffic{groups * inputs * each / chunks + each * filters, filters}
                    : Traffic{filters + groups * inputs * each / chunks, filters};
  }
  const bool again = chunks > 1;   // filters are transformed for each chunk, or, for their gradients, inputs for each group
  if (division == Division::by_channels) {
    const Index rounds = ceil_div(groups, threads), made = again ? rounds * inputs : inputs;
    const Index filters_of_most = filters * rounds * threads / groups;
    return gradient ? Traffic{filters + made + chunks * filters_of_most, made} : Traffic{inputs + chunks * filters_of_most, inputs};
  }
  if (gradient) {
    const Index made = again ? groups * inputs : inputs;
    return {filters + made + chunks * filters, made + outputs + filters};
  }
  const Index made = groups > 1 ? chunks * filters : filters;
  return {inputs + made, inputs + made + outputs};
}
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
inline std::optional<Blocking> choose_blocking(const SlabPass& p, bool gradient, int threads, Index room, const Caches& caches = processor_caches()) {
  using detail::float_bytes;
  constexpr Index most_filters = 10_MiB;   // bytes that a cache holds for all chunks
  const Index all = p.tiles();
  if (room < least_bytes(p)) return {};
  // Tiles of a chunk that a thread has to itself, so that its core's cache holds it.
  const auto tiles_of_thread = [&](Index channels) -> Index {
    const Index tile_bytes = float_bytes * (p.in_c + channels);
    const Index most = std::clamp<Index>(24 * caches.level2 / 1_MiB / 6 * 6, 12, 48), fewest = most > 36 ? 36 : 12;
    for (Index tiles = std::clamp<Index>(caches.level2 * 7 / 16 / tile_bytes / 6 * 6, fewest, most); tiles >= 12; tiles -= 6)
      if (blocking_bytes(p, tiles, channels, Division::by_tiles, gradient, threads) <= room) return tiles;
    return 0;
  };
  const auto blocking = [&](Index tiles, Index channels, Division division) {
    return Blocking{tiles, channels, division, blocking_bytes(p, tiles, channels, division, gradient, threads)};
  };
  // Filters whose transform stays in the processor's cache.
  if (float_bytes * detail::apart(p.in_c, p.out_c) <= (gradient ? 2560 * 1024 : most_filters))
    if (const Index tiles = tiles_of_thread(p.out_c); tiles > 0) return blocking(tiles, p.out_c, Division::by_tiles);
  std::optional<Blocking> best;
  Index least = std::numeric_limits<Index>::max();
  const auto consider = [&](Index tiles, Index channels, Division division, Index more) {
    const Index work = detail::traffic_of(p, tiles, channels, division, gradient, threads).work() + more;
    if (work < least) least = work, best = blocking(tiles, channels, division);
  };
  constexpr Index waiting = 4096;   // the threads wait for each other
  for (Index panels = ceil_div(p.out_c, panel); panels > 0; panels = panels == 1 ? 0 : ceil_div(panels, 2)) {
    const Index channels = std::min(panels * panel, p.out_c), groups = ceil_div(p.out_c, channels);
    Index left = room - pass_bytes(p, 0, channels);
    if (left <= 0) continue;
    if (gradient) left = std::min(left, 32_MiB);   // 256 channels on the Xeon: 904 GFLOP/s with 28 MB of transforms, 673 with 57
    Index tiles = std::min({all, left / (float_bytes * (p.in_c + channels)), detail::most_tiles});
    if (tiles < all) tiles = tiles / 6 * 6;
    while (tiles > 0 && pass_bytes(p, tiles, channels) > room) tiles = (tiles - 1) / 6 * 6;
    if (tiles < std::min(all, detail::fewest_tiles)) continue;
    const Index chunks = ceil_div(all, tiles), filters = p.in_c * p.out_c, inputs = all * p.in_c;
    Index more = chunks * groups * waiting;
    if (float_bytes * p.in_c * channels > 8_MiB) more += chunks * filters;           // filters have left the cache when products want them
    if (float_bytes * tiles * p.in_c > caches.level3 / 2) more += groups * inputs;   // likewise inputs, for each group
    consider(tiles, channels, Division::by_positions, more);
  }
  if (threads == 1 || (best && best->channels == p.out_c)) return best;   // nothing passes from thread to thread, or room makes up for it
  for (Index channels = gradient ? panel : panel / 2; channels <= p.out_c; channels *= 2) {
    const Index groups = ceil_div(p.out_c, channels);
    if (const Index tiles = gradient ? 0 : tiles_of_thread(channels);
        tiles > 0 && ceil_div(all, tiles) >= threads && float_bytes * detail::apart(p.in_c, channels) <= most_filters)
      consider(tiles, channels, Division::by_tiles, groups * 2 * waiting);
    if (groups < threads) continue;
    const Index least_room = blocking_bytes(p, 0, channels, Division::by_channels, gradient, threads), left = std::min(room - least_room, 32_MiB);
    Index tiles = left <= 0 ? 0 : std::min({all, left / (float_bytes * (p.in_c + threads * channels)), detail::most_tiles});
    if (tiles < all) tiles = tiles / 6 * 6;
    while (tiles > 0 && blocking_bytes(p, tiles, channels, Division::by_channels, gradient, threads) > room) tiles = (tiles - 1) / 6 * 6;
    if (tiles < std::min(all, detail::fewest_tiles)) continue;
    Index more = ceil_div(all, tiles) * 2 * waiting;
    if (float_bytes * tiles * p.in_c > caches.level3 / 2) more += ceil_div(groups, threads) * all * p.in_c;
    consider(tiles, channels, Division::by_channels, more);
  }
  return best;
}
/// Whether a pass is likely to be faster than direct arithmetic: tiles at the borders do work that is thrown away.
constexpr bool pays(Index out_rows, Index out_w) {
  return positions * ceil_div(out_rows, tile) * ceil_div(out_w, tile) * 5 <= 9 * out_rows * out_w * 2;
}
}   // namespace lrcnn::host::winograd
