#pragma once
// 3x3 convolutions of slabs by Winograd's algorithm, in as much scratch memory as there is.
//
// The library's own Winograd keeps the transforms of a whole slab, and for filter gradients one of all filters for each
// thread: 38 to 240 MB for the layers of VGG-16. Here tiles are taken in chunks and output channels in groups, so that what is
// in memory at a time is chosen (choose_blocking): a chunk's inputs, a group's filters, their products. Some MB do, at little loss.
//
// Threads divide a pass by positions, by channels or by tiles (Division), so that little is written by one thread and read by another one.
//
// Outputs depend neither on chunks, groups and division nor on the number of threads: the sums of a product run through the same
// numbers in the same order. So rows of a slab that begins on a multiple of 4 of the map's rows are bit-identical to the map's. Filter
// gradients depend on the number of threads where each thread adds up tiles of its own (Division::by_tiles).
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/host/put_gradient.hpp>
#include <lrcnn/backend/host/winograd_kernels.hpp>
#if LRCNN_WINOGRAD
namespace lrcnn::host::winograd {
namespace detail {
/// Calls f(block, part) for blocks and about equal parts of [0, size), so that all threads have something to do.
template <class F>
void for_parts(Index blocks, Index size, int threads, F f) {
  const Index cuts = std::clamp<Index>(ceil_div(4 * threads, blocks), 1, std::max<Index>(size, 1));
  parallel_for(blocks * cuts, threads, [&](Index i) {
    const Index part = i / blocks;
    f(i % blocks, Range{size * part / cuts, size * (part + 1) / cuts});
  });
}
/// Transforms the filters to output channels [first, first + channels).
template <class K>
void transform_filters(const SlabPass& p, const Filter& filter, Index first, Index channels, int threads, float* u) {
  for_parts(channels / K::lanes, p.in_c, threads, [&](Index block, Range c) { K::filters(p, filter, first, channels, block, u, c); });
}
/// The products of a chunk of tiles and a group of channels at all positions, on one thread.
template <class K>
void products(const SlabPass& p, const float* v, const float* u, Index count, Index channels, float* m) {
  for (Index q = 0; q < positions; ++q)
    for (Index kp = 0; kp < ceil_div(channels, panel); ++kp)
      K::product(p, v + q * apart(count, p.in_c), u + q * apart(p.in_c, channels), count, channels, kp, m + q * apart(count, channels));
}
/// Transforms products back, and puts them where they go.
template <class K>
void put(const SlabPass& p, const float* m, Index begin, Index count, Index first, Index channels, Index block, const Output& out, Range tiles) {
  if (out.relu) K::template outputs<true>(p, m, begin, count, first, channels, block, out, tiles);
  else K::template outputs<false>(p, m, begin, count, first, channels, block, out, tiles);
}
template <class K>
void run_by_tiles(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& in, const Filter& filter, const Output& out,
                  float* scratch) {
  const Index all = p.tiles(), chunks = ceil_div(all, blocking.tiles);
  float* u = scratch;
  for (Index first = 0; first < p.out_c; first += blocking.channels) {
    const Index channels = std::min(blocking.channels, p.out_c - first);
    transform_filters<K>(p, filter, first, channels, threads, u);
    parallel_for(threads, threads, [&](Index thread) {
      const Index inputs = positions * apart(blocking.tiles, p.in_c), of_each = inputs + positions * apart(blocking.tiles, blocking.channels);
      float* v = u + positions * apart(p.in_c, blocking.channels) + thread * of_each;
      float* m = v + inputs;
      for (Index chunk = chunks * thread / threads; chunk < chunks * (thread + 1) / threads; ++chunk) {
        const Index begin = chunk * blocking.tiles, count = std::min(blocking.tiles, all - begin);
        for (Index block = 0; block < p.in_c / K::lanes; ++block) K::inputs(p, in, begin, count, block, v, {0, count});
        products<K>(p, v, u, count, channels, m);
        for (Index block = 0; block < channels / K::lanes; ++block) put<K>(p, m, begin, count, first, channels, block, out, {0, count});
      }
    });
  }
}
template <class K>
void run_by_channels(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& in, const Filter& filter, const Output& out,
                     float* scratch) {
  const Index all = p.tiles(), groups = ceil_div(p.out_c, blocking.channels), owners = std::min<Index>(threads, groups);
  const Index filters = positions * apart(p.in_c, blocking.channels), of_each = filters + positions * apart(blocking.tiles, blocking.channels);
  float* v = scratch;
  for (Index begin = 0; begin < all; begin += blocking.tiles) {
    const Index count = std::min(blocking.tiles, all - begin);
    for_parts(p.in_c / K::lanes, count, threads, [&](Index block, Range t) { K::inputs(p, in, begin, count, block, v, t); });
    parallel_for(owners, threads, [&](Index owner) {
      float* u = v + positions * apart(blocking.tiles, p.in_c) + owner * of_each;
      float* m = u + filters;
      for (Index group = groups * owner / owners; group < groups * (owner + 1) / owners; ++group) {
        const Index first = group * blocking.channels, channels = std::min(blocking.channels, p.out_c - first);
        const bool there = begin > 0 && groups == owners;   // from the chunk before
        for (Index block = 0; block < channels / K::lanes && !there; ++block) K::filters(p, filter, first, channels, block, u, {0, p.in_c});
        products<K>(p, v, u, count, channels, m);
        for (Index block = 0; block < channels / K::lanes; ++block) put<K>(p, m, begin, count, first, channels, block, out, {0, count});
      }
    });
  }
}
template <class K>
void run_by_positions(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& in, const Filter& filter, const Output& out,
                      float* scratch) {
  const Index all = p.tiles();
  float* u = scratch;
  float* v = u + positions * apart(p.in_c, blocking.channels);
  float* m = v + positions * apart(blocking.tiles, p.in_c);
  const bool grouped = blocking.channels < p.out_c;
  if (!grouped) transform_filters<K>(p, filter, 0, p.out_c, threads, u);
  for (Index begin = 0; begin < all; begin += blocking.tiles) {
    const Index count = std::min(blocking.tiles, all - begin);
    for_parts(p.in_c / K::lanes, count, threads, [&](Index block, Range t) { K::inputs(p, in, begin, count, block, v, t); });
    for (Index first = 0; first < p.out_c; first += blocking.channels) {
      const Index channels = std::min(blocking.channels, p.out_c - first), panels = ceil_div(channels, panel);
      if (grouped) transform_filters<K>(p, filter, first, channels, threads, u);
      parallel_for(positions * panels, threads, [&](Index i) {
        const Index q = i / panels;
        K::product(p, v + q * apart(count, p.in_c), u + q * apart(p.in_c, channels), count, channels, i % panels, m + q * apart(count, channels));
      });
      for_parts(channels / K::lanes, count, threads, [&](Index block, Range t) { put<K>(p, m, begin, count, first, channels, block, out, t); });
    }
  }
}
}   // namespace detail
/// A forward pass, or a data gradient, with the kernels K. Writes all of `out.y`.
/// Pre:     the processor has K's vectors; views have K::lanes channels a block; `scratch`: blocking.bytes, aligned to 64
template <class K>
void run(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& in, const Filter& filter, const Output& out,
         float* scratch) {
  switch (blocking.division) {
    case Division::by_positions: return detail::run_by_positions<K>(p, blocking, threads, in, filter, out, scratch);
    case Division::by_channels: return detail::run_by_channels<K>(p, blocking, threads, in, filter, out, scratch);
    case Division::by_tiles: return detail::run_by_tiles<K>(p, blocking, threads, in, filter, out, scratch);
  }
}
/// Where a filter gradient goes: dw [outputs][inputs][3][3], and db [outputs] unless it is null, written or added.
struct FilterGradient {
  Index outputs = 0, inputs = 0;   ///< channels without padding
  bool add = false;
  float *dw = nullptr, *db = nullptr;
};
namespace detail {
/// Sums of gradients, in scratch that is aligned to whole lines.
inline double* sums_at(float* scratch) { return reinterpret_cast<double*>(scratch); }
/// Puts the sums of output channels [first, first + channels), sum_of(0) and so on, where biases' gradients go, if there are any.
template <class Sum>
void write_biases(const FilterGradient& d, Index first, Index channels, Sum sum_of) {
  if (d.db == nullptr) return;
  for (Index k = 0; k < std::min(channels, d.outputs - first); ++k) put_gradient(d.db[first + k], sum_of(k), d.add);
}
/// Transforms products of gradients back, for output channels [first, first + channels), and puts them where they go.
template <class K>
void write_gradient(const SlabPass& p, const FilterGradient& d, const float* u, Index first, Index channels, int threads) {
  for_parts(channels / K::lanes, d.inputs, threads,
            [&](Index block, Range in) { K::taps(p, u, first, channels, block, in, d.outputs, d.inputs, d.add, d.dw); });
}
/// The products of gradients of a chunk of tiles and a group of channels at all positions, on one thread; `add`: to what u has.
template <class K>
void products_of_gradients(const SlabPass& p, const float* v, const float* m, Index count, Index channels, float* u, bool add) {
  for (Index q = 0; q < positions; ++q)
    for (Index kp = 0; kp < ceil_div(channels, panel); ++kp)
      K::product_of_gradients(p, v + q * apart(count, p.in_c), m + q * apart(count, channels), count, channels, kp, u + q * apart(p.in_c, channels),
                              add);
}
/// Each thread takes a part of the tiles and has products and sums of its own, which are added up at the end.
template <class K>
void gradient_by_tiles(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& x, const View<const float>& dy,
                       const FilterGradient& d, float* scratch) {
  const Index all = p.tiles();
  const Index filters = positions * apart(p.in_c, blocking.channels), inputs = positions * apart(blocking.tiles, p.in_c);
  const Index of_each = filters + inputs + positions * apart(blocking.tiles, blocking.channels);
  const auto of_thread = [&](Index thread) { return scratch + thread * of_each; };
  const auto sums_of = [&](Index thread) { return sums_at(scratch + threads * of_each + thread * sums_floats(blocking.channels)); };
  for (Index first = 0; first < p.out_c; first += blocking.channels) {
    const Index channels = std::min(blocking.channels, p.out_c - first);
    parallel_for(threads, threads, [&](Index thread) {
      float *u = of_thread(thread), *v = u + filters, *m = v + inputs;
      double* sums = sums_of(thread);
      std::fill_n(sums, channels, 0.0);
      const Index begin = all * thread / threads, end = all * (thread + 1) / threads;
      if (begin == end) std::fill_n(u, filters, 0.f);
      for (Index at = begin; at < end; at += blocking.tiles) {
        const Index count = std::min(blocking.tiles, end - at);
        for (Index block = 0; block < p.in_c / K::lanes; ++block) K::inputs(p, x, at, count, block, v, {0, count});
        for (Index block = 0; block < channels / K::lanes; ++block) K::gradients(p, dy, at, count, first, channels, block, m, {0, count});
        products_of_gradients<K>(p, v, m, count, channels, u, at > begin);
        K::add_biases(m, count, channels, sums);
      }
    });
    for_parts(positions, p.in_c * channels, threads, [&](Index q, Range r) {
      float* to = scratch + q * apart(p.in_c, channels);
      for (int thread = 1; thread < threads; ++thread) {
        const float* from = of_thread(thread) + q * apart(p.in_c, channels);
        for (Index i = r.begin; i < r.end; ++i) to[i] += from[i];
      }
    });
    write_biases(d, first, channels, [&](Index k) {
      double sum = 0;
      for (int thread = 0; thread < threads; ++thread) sum += sums_of(thread)[k];
      return sum;
    });
    write_gradient<K>(p, d, scratch, first, channels, threads);
  }
}
/// Each thread has channels of dy to itself, with their sums; all share the inputs of a chunk.
template <class K>
void gradient_by_channels(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& x, const View<const float>& dy,
                          const FilterGradient& d, float* scratch) {
  const Index all = p.tiles(), groups = ceil_div(p.out_c, blocking.channels), owners = std::min<Index>(threads, groups);
  const Index filters = positions * apart(p.in_c, blocking.channels), gradients = positions * apart(blocking.tiles, blocking.channels);
  const Index of_each = filters + gradients + sums_floats(blocking.channels);
  float* v = scratch;
  for (Index round = 0; round < ceil_div(groups, owners); ++round) {
    const bool reads = round == 0 || blocking.tiles < all;   // else the chunk's inputs are still there
    for (Index begin = 0; begin < all; begin += blocking.tiles) {
      const Index count = std::min(blocking.tiles, all - begin);
      if (reads) for_parts(p.in_c / K::lanes, count, threads, [&](Index block, Range t) { K::inputs(p, x, begin, count, block, v, t); });
      parallel_for(owners, threads, [&](Index owner) {
        const Index group = round * owners + owner, first = group * blocking.channels;
        if (group >= groups) return;
        const Index channels = std::min(blocking.channels, p.out_c - first);
        float* u = v + positions * apart(blocking.tiles, p.in_c) + owner * of_each;
        float* m = u + filters;
        double* sums = sums_at(m + gradients);
        if (begin == 0) std::fill_n(sums, channels, 0.0);
        for (Index block = 0; block < channels / K::lanes; ++block) K::gradients(p, dy, begin, count, first, channels, block, m, {0, count});
        products_of_gradients<K>(p, v, m, count, channels, u, begin > 0);
        K::add_biases(m, count, channels, sums);
        if (begin + count < all) return;
        write_biases(d, first, channels, [&](Index k) { return sums[k]; });
        write_gradient<K>(p, d, u, first, channels, 1);
      });
    }
  }
}
template <class K>
void gradient_by_positions(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& x, const View<const float>& dy,
                           const FilterGradient& d, float* scratch) {
  const Index all = p.tiles(), in_blocks = p.in_c / K::lanes;
  float* u = scratch;
  float* v = u + positions * apart(p.in_c, blocking.channels);
  float* m = v + positions * apart(blocking.tiles, p.in_c);
  for (Index first = 0; first < p.out_c; first += blocking.channels) {
    const Index channels = std::min(blocking.channels, p.out_c - first), panels = ceil_div(channels, panel);
    const bool reads = first == 0 || blocking.tiles < all;   // else the chunk's inputs are still there
    double* sums = sums_at(m + positions * apart(blocking.tiles, channels));
    std::fill_n(sums, channels, 0.0);
    for (Index begin = 0; begin < all; begin += blocking.tiles) {
      const Index count = std::min(blocking.tiles, all - begin);
      if (reads) for_parts(in_blocks, count, threads, [&](Index block, Range t) { K::inputs(p, x, begin, count, block, v, t); });
      for_parts(channels / K::lanes, count, threads, [&](Index block, Range t) { K::gradients(p, dy, begin, count, first, channels, block, m, t); });
      parallel_for(positions * panels, threads, [&](Index i) {
        const Index q = i / panels;
        K::product_of_gradients(p, v + q * apart(count, p.in_c), m + q * apart(count, channels), count, channels, i % panels,
                                u + q * apart(p.in_c, channels), begin > 0);
      });
      K::add_biases(m, count, channels, sums);
    }
    write_biases(d, first, channels, [&](Index k) { return sums[k]; });
    write_gradient<K>(p, d, u, first, channels, threads);
  }
}
}   // namespace detail
/// A filter gradient from x and dy.
/// Pre:     as run(); d.outputs <= out_c and d.inputs <= in_c
template <class K>
void run_gradient(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& x, const View<const float>& dy,
                  const FilterGradient& d, float* scratch) {
  switch (blocking.division) {
    case Division::by_positions: return detail::gradient_by_positions<K>(p, blocking, threads, x, dy, d, scratch);
    case Division::by_channels: return detail::gradient_by_channels<K>(p, blocking, threads, x, dy, d, scratch);
    case Division::by_tiles: return detail::gradient_by_tiles<K>(p, blocking, threads, x, dy, d, scratch);
  }
}
}   // namespace lrcnn::host::winograd
#endif
