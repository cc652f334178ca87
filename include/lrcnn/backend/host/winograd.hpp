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
}   // namespace detail
/// A forward pass, or a data gradient, with the kernels K. Writes all of `out.y`.
/// Pre:     the processor has K's vectors; views have K::lanes channels a block; `scratch`: blocking.bytes, aligned to 64
template <class K>
void run(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& in, const Filter& filter, const Output& out,
         float* scratch) {
  const auto put = [&](const float* m, Index begin, Index count, Index first, Index channels, Index block, Range tiles) {
    if (out.relu) K::template outputs<true>(p, m, begin, count, first, channels, block, out, tiles);
    else K::template outputs<false>(p, m, begin, count, first, channels, block, out, tiles);
  };
  const Index all = p.tiles(), in_blocks = p.in_c / K::lanes;
  float* u = scratch;
  const auto transform_filters = [&](Index first, Index channels) {
    detail::for_parts(channels / K::lanes, p.in_c, threads, [&](Index block, Range c) { K::filters(p, filter, first, channels, block, u, c); });
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
        for (Index block = 0; block < in_blocks; ++block) K::inputs(p, in, begin, count, block, v, {0, count});
        for (Index q = 0; q < positions; ++q)
          for (Index kp = 0; kp < ceil_div(channels, panel); ++kp)
            K::product(p, v + q * detail::apart(count, p.in_c), u + q * detail::apart(p.in_c, channels), count, channels, kp,
                       m + q * detail::apart(count, channels));
        for (Index block = 0; block < channels / K::lanes; ++block) put(m, begin, count, 0, channels, block, {0, count});
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
    detail::for_parts(in_blocks, count, threads, [&](Index block, Range t) { K::inputs(p, in, begin, count, block, v, t); });
    for (Index first = 0; first < p.out_c; first += blocking.channels) {
      const Index channels = std::min(blocking.channels, p.out_c - first), panels = ceil_div(channels, panel);
      if (grouped) transform_filters(first, channels);
      parallel_for(positions * panels, threads, [&](Index i) {
        const Index q = i / panels;
        K::product(p, v + q * detail::apart(count, p.in_c), u + q * detail::apart(p.in_c, channels), count, channels, i % panels,
                   m + q * detail::apart(count, channels));
      });
      detail::for_parts(channels / K::lanes, count, threads, [&](Index block, Range t) { put(m, begin, count, first, channels, block, t); });
    }
  }
}
/// Where a filter gradient goes: dw [outputs][inputs][3][3], and db [outputs] unless it is null, written or added.
struct FilterGradient {
  Index outputs = 0, inputs = 0;   ///< channels without padding
  bool add = false;
  float *dw = nullptr, *db = nullptr;
};
namespace detail {
/// Transforms products of gradients back, for output channels [first, first + channels), and puts them where they go.
template <class K>
void write_gradient(const SlabPass& p, const FilterGradient& d, const float* u, Index first, Index channels, int threads) {
  for_parts(channels / K::lanes, d.inputs, threads,
            [&](Index block, Range in) { K::taps(p, u, first, channels, block, in, d.outputs, d.inputs, d.add, d.dw); });
}
/// Each thread takes a part of the tiles and has products and sums of its own, which are added up at the end.
template <class K>
void gradient_by_thread(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& x, const View<const float>& dy,
                        const FilterGradient& d, float* scratch) {
  const Index all = p.tiles(), in_blocks = p.in_c / K::lanes;
  const Index channels = p.out_c, filter = positions * apart(p.in_c, channels);
  const Index inputs_of_chunk = positions * apart(blocking.tiles, p.in_c);
  const Index of_each = filter + inputs_of_chunk + positions * apart(blocking.tiles, channels);
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
      for (Index block = 0; block < in_blocks; ++block) K::inputs(p, x, begin, count, block, v, {0, count});
      for (Index block = 0; block < channels / K::lanes; ++block) K::gradients(p, dy, begin, count, 0, channels, block, m, {0, count});
      for (Index q = 0; q < positions; ++q)
        for (Index kp = 0; kp < ceil_div(channels, panel); ++kp)
          K::product_of_gradients(p, v + q * apart(count, p.in_c), m + q * apart(count, channels), count, channels, kp,
                                  u + q * apart(p.in_c, channels), begin > first);
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
  for (Index k = 0; d.db != nullptr && k < d.outputs; ++k) {
    float sum = d.add ? d.db[k] : 0.f;
    for (int thread = 0; thread < threads; ++thread) sum += sums_of(thread)[k];
    d.db[k] = sum;
  }
  write_gradient<K>(p, d, scratch, 0, channels, threads);
}
}   // namespace detail
/// A filter gradient from x and dy.
/// Pre:     as run(); d.outputs <= out_c and d.inputs <= in_c
template <class K>
void run_gradient(const SlabPass& p, const Blocking& blocking, int threads, const View<const float>& x, const View<const float>& dy,
                  const FilterGradient& d, float* scratch) {
  if (blocking.by_thread) return detail::gradient_by_thread<K>(p, blocking, threads, x, dy, d, scratch);
  const Index all = p.tiles(), in_blocks = p.in_c / K::lanes;
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
      if (reads) detail::for_parts(in_blocks, count, threads, [&](Index block, Range t) { K::inputs(p, x, begin, count, block, v, t); });
      detail::for_parts(channels / K::lanes, count, threads,
                        [&](Index block, Range t) { K::gradients(p, dy, begin, count, first, channels, block, m, t); });
      parallel_for(positions * panels, threads, [&](Index i) {
        const Index q = i / panels;
        K::product_of_gradients(p, v + q * detail::apart(count, p.in_c), m + q * detail::apart(count, channels), count, channels, i % panels,
                                u + q * detail::apart(p.in_c, channels), begin > 0);
      });
      K::add_biases(m, count, channels, sums);
    }
    for (Index k = 0; d.db != nullptr && k < std::min(channels, d.outputs - first); ++k) d.db[first + k] = (d.add ? d.db[first + k] : 0.f) + sums[k];
    detail::write_gradient<K>(p, d, u, first, channels, threads);
  }
}
}   // namespace lrcnn::host::winograd
#endif
