#pragma once
// Rows of a batch whose samples lie in the host's memory: the device reads them there, looks up or normalises, rounds and writes a slab.
//
// One kernel does what the copied path does in four steps (convert, copy to pinned memory, send, scatter). Numbers cross the bus as they are
// stored: a byte instead of the four of a float. Which thread reads what is GatherMap's; a thread reads 16 bytes at once.
#include <lrcnn/backend/cudnn/gather_blob.hpp>
#include <lrcnn/backend/cudnn/loops/gather_map.hpp>
namespace lrcnn::loops {
namespace detail {
/// S: what the array holds; T: what the slab does.
template <class S, class T>
struct GatherLoop {
  static constexpr int most = 16 / static_cast<int>(sizeof(S));   ///< elements of a granule
  GatherMap map;
  cudnn::GatherTables tables;
  ByteRange array;   ///< all that may be read
  T* to;
  Index to_image, to_row;
  int channels;
  Divisor stored_columns, columns;   ///< by the map's column_step, by its width
  LRCNN_HOST_DEVICE float value(S number, int channel) const {
    if constexpr (std::is_same_v<S, std::uint8_t>) return tables.bytes[256 * channel + number];
    else return static_cast<float>((static_cast<double>(number) / full_sample<S> - tables.mean[channel]) / tables.deviation[channel]);
  }
  /// Reads a granule: all of it at once where it lies within the array, or else the elements that are wanted.
  LRCNN_HOST_DEVICE void read(const GatherPlace& p, S (&numbers)[static_cast<std::size_t>(most)]) const {
    if (p.granule.begin >= array.begin && p.granule.end <= array.end && map.granule == 16) {
      Pack<S, most> pack;
      copy_pack(&pack, reinterpret_cast<const S*>(p.granule.begin));
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
      for (int v = 0; v < most; ++v) numbers[v] = pack.element[v];
    } else {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
      for (int v = 0; v < most; ++v) {
        const Address at = p.granule.begin + v * static_cast<Index>(sizeof(S));
        if (at >= p.inside.begin && at < p.inside.end) numbers[v] = *reinterpret_cast<const S*>(at);
      }
    }
  }
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const GatherPlace p = map.place(unit);
    if (p.granule.empty()) return;
    S numbers[static_cast<std::size_t>(most)] = {};
    if (!p.inside.empty()) read(p, numbers);
    const Index before = (p.granule.begin - p.run) / static_cast<Index>(sizeof(S));   // elements of the run before the granule; negative at its head
    Index column = before > 0 ? before : 0, c = column;
    column = stored_columns.split(c);
    Index x = column, y = p.row + columns.split(x);
    const bool flip = map.samples[p.image].flip != 0;
    const int in_granule = static_cast<int>(map.granule / static_cast<Index>(sizeof(S)));
#ifdef __CUDA_ARCH__
#pragma unroll   // numbers are registers
#endif
    for (int v = 0; v < most; ++v) {
      if (v >= in_granule || before + v < 0 || before + v >= map.length) continue;
      const int channel = static_cast<int>(c + p.channel);
      if (channel < channels) {
        const Address at = p.granule.begin + v * static_cast<Index>(sizeof(S));
        const float number = at >= p.inside.begin && at < p.inside.end ? value(numbers[v], channel) : tables.outside[channel];
        to[p.image * to_image + y * to_row + (flip ? map.width - 1 - x : x) * channels + channel] = static_cast<T>(number);
      }
      if (++c < map.column_step) continue;
      c = 0;
      if (++x == map.width) x = 0, ++y;
    }
  }
};
}   // namespace detail
/// Calls f with the number of units of the loop that gather_rows() runs, and with the loop. Nothing is read before the loop runs.
template <class T, class F>
void with_gather_loop(const DirectSource<float>& source, const cudnn::GatheredBatch& there, Index first, const View<T>& to, const GatherOrder& order,
                      F f) {
  assert(channels_last(to) && to.c == source.shape().c && to.w == source.shape().w);
  const SampleArray& array = source.array();
  const auto base = reinterpret_cast<Address>(array.on_device());
  const GatherMap map(source, first, to.n, to.range(), there.samples, base, order);
  with_array_type(array.type(), [&]<class S>(const S*) {
    f(map.count, detail::GatherLoop<S, T>{map,
                                          there.tables,
                                          {base, base + array.bytes()},
                                          to.data,
                                          to.n > 1 ? to.stride_n : 0,
                                          to.stride_row(),
                                          static_cast<int>(to.c),
                                          Divisor(map.column_step),
                                          Divisor(map.width)});
  });
}
/// Writes normalised rows to.range() of images [first, first + to.n) of a batch, as source.read() does on the host, rounded to T.
/// Shapes:  to [N,C,rows,W], channels last
/// Pre:     `exec` reaches source.array().on_device() and what `there` points to; to lies within the batch
/// Post:    writes to, with the bits of source.read() and one rounding
template <class Exec, class T>
void gather_rows(const Exec& exec, const DirectSource<float>& source, const cudnn::GatheredBatch& there, Index first, const View<T>& to,
                 const GatherOrder& order = {}) {
  if (empty(to)) return;
  with_gather_loop(source, there, first, to, order, [&](Index count, const auto& loop) { for_units(exec, count, loop); });
}
}   // namespace lrcnn::loops
