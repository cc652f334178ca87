#pragma once
// Which thread reads what of an array in the host's memory: plain numbers, used by the kernel (gather.hpp) and by the count of its transactions
// (backend/cudnn/gather_traffic.hpp).
//
// A run is a contiguous piece of an image: a row of one channel in planes, of all channels where these are interleaved; all its rows where
// they are whole. A thread reads a granule of a run: 16 bytes at a multiple of 16. What crosses the bus are lines of 128 bytes, or as many
// sectors of 32 bytes of them as a warp touches, so a warp whose first granule lies in the middle of a line costs a request more. Therefore granules
// are numbered from the first line that begins within the run, and those before it come last: the shift of PyTorch-Direct.
// Source:  Min et al., "PyTorch-Direct", arXiv 2101.07956: a warp's first access is moved to a multiple of 128 bytes by a circular shift
#include <lrcnn/backend/cudnn/loops/work.hpp>
#include <lrcnn/data/direct_source.hpp>
namespace lrcnn::loops {
inline constexpr Index warp_threads = 32, line_bytes = 128, sector_bytes = 32;
/// How threads are laid over runs; what is not the default is there to be compared with.
struct GatherOrder {
  bool shifted = true;        ///< numbered from a line's begin
  Index granule_bytes = 16;   ///< at least an element's; a power of two up to 16
};
/// An address as a number; arithmetic with it may leave the array.
using Address = Index;
/// Bytes [begin, end).
struct ByteRange {
  Address begin = 0, end = 0;
  LRCNN_HOST_DEVICE bool empty() const { return end <= begin; }
};
/// A thread's part: a granule of a run.
struct GatherPlace {
  Index image = 0, channel = 0, row = 0;   ///< row counts from the first that is written; channel is 0 where channels are interleaved
  Address run = 0;                         ///< of the run's first element
  ByteRange granule{};                     ///< empty: nothing to do. It may reach beyond the run at both ends
  ByteRange inside{};                      ///< the part of it that lies within run and image, and is read
};
/// Where the runs of some rows of some images lie, and how threads share them.
struct GatherMap {
  Address base = 0;     ///< of the array's first element
  Index element = 1;    ///< bytes
  Index length = 0;     ///< elements of a run
  Index granule = 16;   ///< bytes
  bool shifted = true;
  Divisor units, rows, channels;   ///< threads of a run; runs of a channel; channels whose runs lie apart
  Index count = 0;                 ///< of units of work
  Index first_row = 0;             ///< of the batch's images, of those that are written
  Index row_step = 0, column_step = 1, channel_step = 0;
  Index width = 0, image_rows = 0, image_width = 0;   ///< columns of a cut; extents of the array's images
  Index gap = 0;                                      ///< bytes of a pixel behind its last channel
  const GatheredSample* samples = nullptr;            ///< of the first image that is written
  /// Rows `rows_read` of images [first, first + images) of a batch. `samples`: where whoever uses the map reads the batch's; `base`: likewise
  /// the array's first element.
  template <class T>
  GatherMap(const DirectSource<T>& source, Index first, Index images, Range rows_read, const GatheredSample* all_samples, Address base_address,
            const GatherOrder& order = {})
      : base(base_address), shifted(order.shifted), first_row(rows_read.begin), samples(all_samples + first) {
    const SampleArray& array = source.array();
    const SampleLayout& l = array.layout();
    element = array_type_bytes(array.type());
    granule = std::max(element, order.granule_bytes);
    row_step = l.row, column_step = l.interleaves() ? l.column : 1, channel_step = l.channel;
    width = source.shape().w, image_rows = l.shape.h, image_width = l.shape.w;
    gap = l.interleaves() ? (l.column - l.shape.c) * element : 0;
    const bool joined = source.whole_rows() && l.row == l.row_length();   // rows lie one after the other
    length = (joined ? rows_read.size() : 1) * width * column_step;
    const Index shared = l.interleaves() ? 1 : l.shape.c, apart = joined ? 1 : rows_read.size();
    const auto fits = [&](Index step) { return step * element % granule == 0; };
    const bool aligned = base % granule == 0 && joined && fits(l.row) && (l.shape.n == 1 || fits(l.image)) && (shared == 1 || fits(l.channel));
    const Index granules = ceil_div(length * element, granule) + (aligned ? 0 : 1);   // a run that begins anywhere may touch one more
    Index threads = 1;
    while (threads < warp_threads && threads < granules) threads *= 2;   // short runs share a warp
    if (granules > warp_threads) threads = round_up(granules, warp_threads);
    units = Divisor(threads), rows = Divisor(apart), channels = Divisor(shared);
    count = images * shared * apart * threads;
  }
  /// Granules of a run whose number is `unit`, in the order in which threads take them.
  LRCNN_HOST_DEVICE ByteRange granule_of(ByteRange run, Index unit) const {
    const Address first = run.begin - run.begin % granule, line = run.begin + line_bytes - 1 - (run.begin + line_bytes - 1) % line_bytes;
    const Address start = shifted && line < run.end ? line : first;
    const Index rest = (run.end - start + granule - 1) / granule;   // granules from there on; those before it follow
    if (unit < rest) return {start + unit * granule, start + (unit + 1) * granule};
    const Address begin = first + (unit - rest) * granule;
    return begin < start ? ByteRange{begin, begin + granule} : ByteRange{};
  }
  LRCNN_HOST_DEVICE GatherPlace place(Index unit) const {
    GatherPlace p;
    Index run = units.split(unit);
    Index whole = rows.split(run);   // run is the row now
    p.row = run;
    p.image = channels.split(whole), p.channel = whole;
    const GatheredSample& sample = samples[p.image];
    const Index y = sample.y + first_row + p.row;
    p.run = base + (sample.first + y * row_step + sample.x * column_step + p.channel * channel_step) * element;
    const ByteRange bytes{p.run, p.run + length * element};
    p.granule = granule_of(bytes, unit);
    if (p.granule.empty() || y < 0 || y >= image_rows) return p;
    p.inside = {bytes.begin, bytes.end - gap};
    if (rows.value() > 1 || length == width * column_step) {   // a single row, of which columns may lie outside
      const Index left = sample.x < 0 ? -sample.x : 0, right = image_width - sample.x < width ? image_width - sample.x : width;
      p.inside = {p.run + left * column_step * element, p.run + right * column_step * element - gap};
    }
    if (p.inside.begin < p.granule.begin) p.inside.begin = p.granule.begin;
    if (p.inside.end > p.granule.end) p.inside.end = p.granule.end;
    return p;
  }
};
}   // namespace lrcnn::loops
