#pragma once
// 3x3 convolutions of slabs by Winograd's algorithm, in as much scratch memory as there is.
//
// The library's own Winograd keeps the transforms of a whole slab, and for filter gradients one of all filters for each
// thread: 38 to 240 MB for the layers of VGG-16. Here tiles are taken in chunks and output channels in groups, so that what is
// in memory at a time is chosen (choose_blocking): a chunk's inputs, a group's filters, their products. Some MB do, at little loss.
//
// Outputs depend neither on chunks and groups nor on the number of threads: the sums of a product run through the same numbers
// in the same order. So rows of a slab that begins on a multiple of 4 of the map's rows are bit-identical to the map's. Filter
// gradients depend on the number of threads where each thread adds up tiles of its own.
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/host/winograd_kernels.hpp>
#include <cstring>
#include <limits>
#include <optional>
namespace lrcnn::host::winograd {
/// out(y, x) = sum over taps r, s of in(y + r - top, x + s - left) w(r, s), rows and columns counted from the slab's first.
/// A data gradient is the same with the filter turned round, from dy to dx.
struct SlabPass {
  Index n = 0, in_c = 0, out_c = 0;   ///< channels with their padding: multiples of 16
  Index in_rows = 0, in_w = 0, out_rows = 0, out_w = 0;
  Index top = 0, left = 0;
  constexpr Index across() const { return ceil_div(out_w, tile); }
  constexpr Index down() const { return ceil_div(out_rows, tile); }
  constexpr Index tiles() const { return n * across() * down(); }
};
/// What is in memory at a time.
struct Blocking {
  Index tiles = 0;      ///< in a chunk
  Index channels = 0;   ///< output channels in a group
  bool by_thread = false;   ///< each thread has a chunk of its own
  Index bytes = 0;      ///< of scratch
};
namespace detail {
inline constexpr Index float_bytes = positions * 4;   ///< of an element in all positions
/// Elements from a matrix of one position to that of the next. An odd number of cache lines, so that what is written to all
/// positions in turn does not fall into the same few sets of a cache.
constexpr Index apart(Index rows, Index columns) { return (rows * columns / lanes | 1) * lanes; }
inline constexpr Index fewest_tiles = 24, most_tiles = 1536;   ///< in a chunk that all threads share
}  // namespace detail
/// Scratch of a chunk of so many tiles and a group of so many output channels, where all threads share them.
constexpr Index pass_bytes(const SlabPass& p, Index tiles, Index channels) {
  using detail::apart;
  return detail::float_bytes * (apart(tiles, p.in_c) + apart(tiles, channels) + apart(p.in_c, channels)) + 4 * channels;
}
/// The smallest scratch that a pass can do with.
constexpr Index least_bytes(const SlabPass& p) {
  return pass_bytes(p, std::min(p.tiles(), detail::fewest_tiles), std::min(p.out_c, panel));
}
/// How a pass is cut so that its scratch fits into `room` bytes; nothing if that is less than least_bytes().
/// `gradient`: of the filters. Cost: microseconds.
/// Source:  VGG-16's layers, batch 8, two cores of an AMD EPYC with 1 MiB of L2 each and 32 MiB of L3: with 12 to 24 tiles to each
///          thread, layers of up to 256 x 256 channels reach 550 to 700 GFLOP/s of a direct convolution's; larger filters do not
///          fit into the L3 and reach 490 so, 650 to 720 with 192 tiles and more in a chunk shared by the threads
inline std::optional<Blocking> choose_blocking(const SlabPass& p, bool gradient, int threads, Index room) {
  using detail::float_bytes;
  const Index all = p.tiles();
  if (room < least_bytes(p)) return {};
  // Filters whose transform stays in the processor's cache: each thread has a chunk of its own that its core's cache holds.
  const Index filter_bytes = float_bytes * detail::apart(p.in_c, p.out_c), tile_bytes = float_bytes * (p.in_c + p.out_c);
  if (filter_bytes <= (gradient ? 2560 * 1024 : 10_MiB)) {
    const Index tiles = std::clamp<Index>(448 * 1024 / tile_bytes / 6 * 6, 12, 24);
    const Index chunk_bytes = float_bytes * (detail::apart(tiles, p.in_c) + detail::apart(tiles, p.out_c)) + 4 * p.out_c;
    const Index bytes = (gradient ? threads : 1) * filter_bytes + threads * chunk_bytes;
    if (bytes <= room) return Blocking{tiles, p.out_c, true, bytes};
  }
  std::optional<Blocking> best;
  Index least = std::numeric_limits<Index>::max();
  for (Index panels = ceil_div(p.out_c, panel); panels > 0; panels = panels == 1 ? 0 : ceil_div(panels, 2)) {
    const Index channels = std::min(panels * panel, p.out_c), groups = ceil_div(p.out_c, channels);
    const Index left = room - pass_bytes(p, 0, channels);
    if (left <= 0) continue;
    Index tiles = std::min({all, left / (float_bytes * (p.in_c + channels)), detail::most_tiles});
    if (tiles < all) tiles = tiles / 6 * 6;
    while (tiles > 0 && pass_bytes(p, tiles, channels) > room) tiles = (tiles - 1) / 6 * 6;
    if (tiles < std::min(all, detail::fewest_tiles)) continue;
    const Index chunks = ceil_div(all, tiles);
    // Numbers that are written, in place of time: filters again for each chunk, or inputs for each group.
    const Index filters = p.in_c * p.out_c, inputs = all * p.in_c;
    Index work = gradient ? filters + (chunks > 1 ? groups : 1) * inputs + chunks * filters
                          : inputs + (groups > 1 ? chunks : 1) * filters;
    work += chunks * groups * 4096;   // the threads wait for each other
    if (work < least) least = work, best = Blocking{tiles, channels, false, pass_bytes(p, tiles, channels)};
  }
  return best;
}
/// Whether a pass is likely to be faster than direct arithmetic: tiles at the borders do work that is thrown away.
constexpr bool pays(const SlabPass& p) { return positions * p.tiles() * 5 <= 9 * p.n * p.out_rows * p.out_w * 2; }
#if LRCNN_WINOGRAD
/// Packed filters [k / 16][c / 16][9][16 c][16 k], in blocks of which either kind of channel may change first.
struct Filter {
  const float* data = nullptr;
  Index next_out = 0, next_in = 0;   ///< elements from block to block
  bool turned = false;
};
/// Where results go, and what is done with them on the way.
struct Output {
  View<float> y{};
  const float* bias = nullptr;        ///< out_c numbers; null: none are added
  bool relu = false;
  View<std::uint8_t> signs{};         ///< with ReLU: where a bit tells of each number whether it is positive (saved_view); empty: nowhere
};
namespace detail {
/// Where a tile lies.
struct Place {
  Index image = 0, y = 0, x = 0;
  Place(const SlabPass& p, Index t) : image(t / (p.across() * p.down())), y(t / p.across() % p.down()), x(t % p.across()) {}
  void next(const SlabPass& p) {
    if (++x < p.across()) return;
    x = 0;
    if (++y < p.down()) return;
    y = 0, ++image;
  }
};
/// Copies the rows and columns of a patch that exist; the rest are zeros.
inline const float* fill(const View<const float>& v, Index image, Index block, Index y, Index x, Index size, float* out) {
  std::fill_n(out, size * size * lanes, 0.f);
  const Index x0 = std::max<Index>(0, -x), x1 = std::min(size, v.w - x);
  if (x0 >= x1) return out;
  for (Index r = std::max<Index>(0, -y); r < std::min(size, v.rows - y); ++r)
    std::copy_n(v.row(image, block, v.row0 + y + r) + (x + x0) * lanes, (x1 - x0) * lanes, out + (r * size + x0) * lanes);
  return out;
}
/// Sixteen columns of a panel of a matrix with so many rows.
template <class T>
T* column(T* matrix, Index rows, Index block) {
  const Index p = block * lanes / panel;
  return matrix + rows * panel * p + block * lanes % panel;
}
constexpr Index row_of(Index columns, Index block) { return panel_width(columns, block * lanes / panel); }
/// B' d B of tiles [begin, begin + count) for one block of channels.
[[gnu::target("avx512f")]] inline void inputs(const SlabPass& p, const View<const float>& in, Index begin, Index count, Index block,
                                              float* v, Range tiles) {
  alignas(64) float border[36 * lanes];
  Place at(p, begin + tiles.begin);
  const Index width = row_of(p.in_c, block);
  float* out = column(v, count, block) + tiles.begin * width;
  for (Index t = tiles.begin; t < tiles.end; ++t, at.next(p), out += width) {
    const Index y = at.y * tile - p.top, x = at.x * tile - p.left;
    const bool inside = y >= 0 && x >= 0 && y + patch <= in.rows && x + patch <= in.w;
    if (inside) transform_input(in.row(at.image, block, in.row0 + y) + x * lanes, in.stride_row(), out, apart(count, p.in_c));
    else transform_input(fill(in, at.image, block, y, x, patch, border), patch * lanes, out, apart(count, p.in_c));
  }
}
/// A dy A' likewise, for one block of the channels from `first` on.
[[gnu::target("avx512f")]] inline void gradients(const SlabPass& p, const View<const float>& dy, Index begin, Index count, Index first,
                                                 Index channels, Index block, float* m, Range tiles) {
  alignas(64) float border[16 * lanes];
  Place at(p, begin + tiles.begin);
  const Index width = row_of(channels, block), source = first / lanes + block;
  float* out = column(m, count, block) + tiles.begin * width;
  for (Index t = tiles.begin; t < tiles.end; ++t, at.next(p), out += width) {
    const Index y = at.y * tile, x = at.x * tile;
    if (y + tile <= dy.rows && x + tile <= dy.w)
      transform_gradient(dy.row(at.image, source, dy.row0 + y) + x * lanes, dy.stride_row(), out, apart(count, channels));
    else transform_gradient(fill(dy, at.image, source, y, x, tile, border), tile * lanes, out, apart(count, channels));
  }
}
/// A' m A and what follows it, of tiles, to one block of the channels from `first` on.
template <bool relu>
[[gnu::target("avx512f")]] void outputs(const SlabPass& p, const float* m, Index begin, Index count, Index first, Index channels, Index block,
                                        const Output& out, Range tiles) {
  Place place(p, begin + tiles.begin);
  const Index width = row_of(channels, block), target = first / lanes + block;
  const float* from = column(m, count, block) + tiles.begin * width;
  const Floats shift = out.bias ? at(out.bias + target * lanes) : Floats{};
  for (Index t = tiles.begin; t < tiles.end; ++t, place.next(p), from += width) {
    alignas(64) Floats y[16];
    transform_output(from, apart(count, channels), y);
    const Index rows = std::min(tile, out.y.rows - place.y * tile), columns = std::min(tile, out.y.w - place.x * tile);
    for (Index r = 0; r < rows; ++r) {
      const Index row = place.y * tile + r;
      float* to = out.y.row(place.image, target, out.y.row0 + row) + place.x * tile * lanes;
      for (Index c = 0; c < columns; ++c) {
        const Floats value = y[r * 4 + c] + shift;
        at(to + c * lanes) = relu ? (value <= 0.f ? Floats{} : value) : value;   // not-a-number stays
      }
      if constexpr (relu) {
        if (out.signs.data == nullptr) continue;
        std::uint8_t* bits = out.signs.row(place.image, target, out.signs.row0 + row) + place.x * tile * 2;
        for (Index c = 0; c < columns; ++c) {
          const std::uint16_t word = positive(y[r * 4 + c] + shift);
          std::memcpy(bits + 2 * c, &word, 2);
        }
      }
    }
  }
}
/// G w G' of the filters from `in` channels to a block of the output channels from `first` on.
[[gnu::target("avx512f")]] inline void filters(const SlabPass& p, const Filter& f, Index first, Index channels, Index block, float* u, Range in) {
  const Index width = row_of(channels, block);
  float* out = column(u, p.in_c, block) + in.begin * width;
  for (Index c = in.begin; c < in.end; ++c, out += width)
    transform_filter(f.data + (first / lanes + block) * f.next_out + c / lanes * f.next_in + c % lanes * lanes, lanes * lanes, f.turned, out,
                     apart(p.in_c, channels));
}
/// G' u G for input channels `in` and a block of the output channels from `first` on, into the filters' own layout.
[[gnu::target("avx512f")]] inline void taps(const SlabPass& p, const float* u, Index first, Index channels, Index block, Range in, Index outputs,
                                            Index inputs, bool add, float* dw) {
  const Index width = row_of(channels, block), k = first + block * lanes, count = std::min(lanes, outputs - k);
  const float* from = column(u, p.in_c, block) + in.begin * width;
  for (Index c = in.begin; c < in.end; ++c, from += width) {
    alignas(64) Floats tap[9];
    transform_taps(from, apart(p.in_c, channels), tap);
    for (Index l = 0; l < count; ++l) {
      float* to = dw + ((k + l) * inputs + c) * 9;
      for (Index i = 0; i < 9; ++i) to[i] = (add ? to[i] : 0.f) + tap[i][l];
    }
  }
}
template <int B>
void multiply_rows(Index rows, const float* a, Index row, Index step, Index next_a, const float* b, Index width, Index next_b, Index depth,
                   Index pieces, float* c, Index c_row, bool add) {
  Index i = 0;
  for (; i + 6 <= rows; i += 6) multiply<6, B>(a + i * row, row, step, next_a, b, width, next_b, depth, pieces, c + i * c_row, c_row, add);
  for (; i + 4 <= rows; i += 4) multiply<4, B>(a + i * row, row, step, next_a, b, width, next_b, depth, pieces, c + i * c_row, c_row, add);
  for (; i < rows; ++i) multiply<1, B>(a + i * row, row, step, next_a, b, width, next_b, depth, pieces, c + i * c_row, c_row, add);
}
/// A product's columns of one panel, `width` wide in b and in c.
inline void multiply_panel(Index rows, const float* a, Index row, Index step, Index next_a, const float* b, Index width, Index next_b,
                           Index depth, Index pieces, float* c, bool add) {
  Index j = 0;
  for (; j + 64 <= width; j += 64) multiply_rows<4>(rows, a, row, step, next_a, b + j, width, next_b, depth, pieces, c + j, width, add);
  for (; j + 32 <= width; j += 32) multiply_rows<2>(rows, a, row, step, next_a, b + j, width, next_b, depth, pieces, c + j, width, add);
  for (; j < width; j += 16) multiply_rows<1>(rows, a, row, step, next_a, b + j, width, next_b, depth, pieces, c + j, width, add);
}
/// m = v u at one position, for one panel of output channels.
inline void product(const SlabPass& p, const float* v, const float* u, Index count, Index channels, Index kp, float* m) {
  const Index width = panel_width(channels, kp), whole = p.in_c / panel, rest = p.in_c % panel;
  const float* b = u + p.in_c * panel * kp;
  float* c = m + count * panel * kp;
  if (whole > 0) multiply_panel(count, v, panel, 1, panel * count, b, width, panel * width, panel, whole, c, false);
  if (rest > 0) multiply_panel(count, v + whole * panel * count, rest, 1, 0, b + whole * panel * width, width, 0, rest, 1, c, whole > 0);
}
/// u (+)= v' m at one position, for one panel of output channels.
inline void product_of_gradients(const SlabPass& p, const float* v, const float* m, Index count, Index channels, Index kp, float* u, bool add) {
  const Index width = panel_width(channels, kp);
  for (Index cp = 0; cp < ceil_div(p.in_c, panel); ++cp) {
    const Index rows = panel_width(p.in_c, cp);
    multiply_panel(rows, v + cp * panel * count, 1, rows, 0, m + count * panel * kp, width, 0, count, 1,
                   u + p.in_c * panel * kp + cp * panel * width, add);
  }
}
/// Sums of a group's gradients over all tiles, which are the bias's: the position of the points 1 and 1 adds a tile's up.
inline void add_biases(const float* m, Index count, Index channels, float* total) {
  for (Index k = 0; k < channels; k += panel) {
    const Index width = panel_width(channels, k / panel);
    const float* row = m + 7 * apart(count, channels) + count * k;
    for (Index t = 0; t < count; ++t, row += width)
      for (Index j = 0; j < width; ++j) total[k + j] += row[j];
  }
}
/// Calls f(block, part) for blocks and about equal parts of [0, size), so that all threads have something to do.
template <class F>
void for_parts(Index blocks, Index size, int threads, F f) {
  const Index cuts = std::clamp<Index>(ceil_div(4 * threads, blocks), 1, std::max<Index>(size, 1));
  parallel_for(blocks * cuts, threads, [&](Index i) {
    const Index part = i / blocks;
    f(i % blocks, Range{size * part / cuts, size * (part + 1) / cuts});
  });
}
}  // namespace detail
/// A forward pass, or a data gradient. Writes all of `out.y`.
/// Pre:     views have 16 channels a block; `scratch`: blocking.bytes, aligned to 64
inline void run(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& in, const Filter& filter, const Output& out,
                float* scratch) {
  const auto put = [&](const float* m, Index begin, Index count, Index first, Index channels, Index block, Range tiles) {
    if (out.relu) detail::outputs<true>(p, m, begin, count, first, channels, block, out, tiles);
    else detail::outputs<false>(p, m, begin, count, first, channels, block, out, tiles);
  };
  const Index all = p.tiles(), in_blocks = p.in_c / lanes;
  float* u = scratch;
  const auto transform_filters = [&](Index first, Index channels) {
    detail::for_parts(channels / lanes, p.in_c, threads, [&](Index block, Range c) { detail::filters(p, filter, first, channels, block, u, c); });
  };
  if (blocking.by_thread) {
    const Index channels = p.out_c, chunks = ceil_div(all, blocking.tiles);
    transform_filters(0, channels);
    parallel_for(threads, threads, [&](Index thread) {
      const Index of_each = detail::apart(blocking.tiles, p.in_c) + detail::apart(blocking.tiles, channels);
      float* v = u + positions * (detail::apart(p.in_c, channels) + thread * of_each);
      float* m = v + positions * detail::apart(blocking.tiles, p.in_c);
      for (Index chunk = chunks * thread / threads; chunk < chunks * (thread + 1) / threads; ++chunk) {
        const Index begin = chunk * blocking.tiles, count = std::min(blocking.tiles, all - begin);
        for (Index block = 0; block < in_blocks; ++block) detail::inputs(p, in, begin, count, block, v, {0, count});
        for (Index q = 0; q < positions; ++q)
          for (Index kp = 0; kp < ceil_div(channels, panel); ++kp)
            detail::product(p, v + q * detail::apart(count, p.in_c), u + q * detail::apart(p.in_c, channels), count, channels, kp, m + q * detail::apart(count, channels));
        for (Index block = 0; block < channels / lanes; ++block)
          put(m, begin, count, 0, channels, block, {0, count});
      }
    });
    return;
  }
  float* v = u + positions * detail::apart(p.in_c, blocking.channels);
  float* m = v + positions * detail::apart(blocking.tiles, p.in_c);
  const bool grouped = blocking.channels < p.out_c;
  if (!grouped) transform_filters(0, p.out_c);
  for (Index begin = 0; begin < all; begin += blocking.tiles) {
    const Index count = std::min(blocking.tiles, all - begin);
    detail::for_parts(in_blocks, count, threads, [&](Index block, Range t) { detail::inputs(p, in, begin, count, block, v, t); });
    for (Index first = 0; first < p.out_c; first += blocking.channels) {
      const Index channels = std::min(blocking.channels, p.out_c - first), panels = ceil_div(channels, panel);
      if (grouped) transform_filters(first, channels);
      parallel_for(positions * panels, threads, [&](Index i) {
        const Index q = i / panels;
        detail::product(p, v + q * detail::apart(count, p.in_c), u + q * detail::apart(p.in_c, channels), count, channels, i % panels, m + q * detail::apart(count, channels));
      });
      detail::for_parts(channels / lanes, count, threads, [&](Index block, Range t) {
        put(m, begin, count, first, channels, block, t);
      });
    }
  }
}
/// A filter gradient from x and dy, written or added: dw [outputs][inputs][3][3], and db [outputs] unless it is null.
/// Pre:     as run(); outputs <= out_c and inputs <= in_c are the channels without padding
inline void run_gradient(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& x, const View<const float>& dy,
                         Index outputs, Index inputs, bool add, float* dw, float* db, float* scratch) {
  const Index all = p.tiles(), in_blocks = p.in_c / lanes;
  const auto write = [&](const float* u, Index first, Index channels) {
    detail::for_parts(channels / lanes, inputs, threads, [&](Index block, Range in) {
      detail::taps(p, u, first, channels, block, in, outputs, inputs, add, dw);
    });
  };
  if (blocking.by_thread) {
    const Index channels = p.out_c, filter = positions * detail::apart(p.in_c, channels);
    const Index inputs_of_chunk = positions * detail::apart(blocking.tiles, p.in_c);
    const Index of_each = filter + inputs_of_chunk + positions * detail::apart(blocking.tiles, channels);
    const auto of_thread = [&](Index thread) { return scratch + thread * of_each; };
    const auto sums_of = [&](Index thread) { return scratch + threads * of_each + thread * channels; };
    parallel_for(threads, threads, [&](Index thread) {
      float *u = of_thread(thread), *v = u + filter, *m = v + inputs_of_chunk;
      float* sums = sums_of(thread);
      std::fill_n(sums, channels, 0.f);
      const Index first = all * thread / threads, end = all * (thread + 1) / threads;
      if (first == end) std::fill_n(u, filter, 0.f);
      for (Index begin = first; begin < end; begin += blocking.tiles) {
        const Index count = std::min(blocking.tiles, end - begin);
        for (Index block = 0; block < in_blocks; ++block) detail::inputs(p, x, begin, count, block, v, {0, count});
        for (Index block = 0; block < channels / lanes; ++block) detail::gradients(p, dy, begin, count, 0, channels, block, m, {0, count});
        for (Index q = 0; q < positions; ++q)
          for (Index kp = 0; kp < ceil_div(channels, panel); ++kp)
            detail::product_of_gradients(p, v + q * detail::apart(count, p.in_c), m + q * detail::apart(count, channels), count, channels, kp, u + q * detail::apart(p.in_c, channels),
                                         begin > first);
        detail::add_biases(m, count, channels, sums);
      }
    });
    detail::for_parts(positions, p.in_c * channels, threads, [&](Index q, Range r) {
      float* to = scratch + q * detail::apart(p.in_c, channels);
      for (int thread = 1; thread < threads; ++thread) {
        const float* from = of_thread(thread) + q * detail::apart(p.in_c, channels);
        for (Index i = r.begin; i < r.end; ++i) to[i] += from[i];
      }
    });
    for (Index k = 0; db != nullptr && k < outputs; ++k) {
      float sum = add ? db[k] : 0.f;
      for (int thread = 0; thread < threads; ++thread) sum += sums_of(thread)[k];
      db[k] = sum;
    }
    return write(scratch, 0, channels);
  }
  float* u = scratch;
  float* v = u + positions * detail::apart(p.in_c, blocking.channels);
  float* m = v + positions * detail::apart(blocking.tiles, p.in_c);
  for (Index first = 0; first < p.out_c; first += blocking.channels) {
    const Index channels = std::min(blocking.channels, p.out_c - first), panels = ceil_div(channels, panel);
    const bool reads = first == 0 || blocking.tiles < all;   // else the chunk's inputs are still there
    float* sums = m + positions * detail::apart(blocking.tiles, channels);
    std::fill_n(sums, channels, 0.f);
    for (Index begin = 0; begin < all; begin += blocking.tiles) {
      const Index count = std::min(blocking.tiles, all - begin);
      if (reads) detail::for_parts(in_blocks, count, threads, [&](Index block, Range t) { detail::inputs(p, x, begin, count, block, v, t); });
      detail::for_parts(channels / lanes, count, threads, [&](Index block, Range t) {
        detail::gradients(p, dy, begin, count, first, channels, block, m, t);
      });
      parallel_for(positions * panels, threads, [&](Index i) {
        const Index q = i / panels;
        detail::product_of_gradients(p, v + q * detail::apart(count, p.in_c), m + q * detail::apart(count, channels), count, channels, i % panels,
                                     u + q * detail::apart(p.in_c, channels), begin > 0);
      });
      detail::add_biases(m, count, channels, sums);
    }
    for (Index k = 0; db != nullptr && k < std::min(channels, outputs - first); ++k)
      db[first + k] = (add ? db[first + k] : 0.f) + sums[k];
    write(u, first, channels);
  }
}
#endif
}  // namespace lrcnn::host::winograd
