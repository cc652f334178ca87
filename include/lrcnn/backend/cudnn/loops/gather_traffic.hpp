#pragma once
// What a gather asks of the bus: counted from the map that the kernel uses, without a device.
//
// A warp's threads read at the same time. What they touch is fetched in sectors of 32 bytes; sectors that lie side by side in a line of 128
// bytes are one request. Caches are left out: every warp fetches what it touches. So the counts are upper bounds, and the same on every machine.
#include <lrcnn/backend/cudnn/loops/gather_map.hpp>
#include <algorithm>
#include <array>
#include <vector>
namespace lrcnn::loops {
struct GatherTraffic {
  Index wanted = 0;                     ///< bytes of the numbers that are read
  Index bytes = 0;                      ///< that cross the bus
  Index warps = 0;                      ///< that read anything
  Index lines_begun = 0;                ///< warps whose first read lies at a line's begin
  std::array<Index, 4> requests_of{};   ///< of 32, 64, 96 and 128 bytes
  Index requests() const { return requests_of[0] + requests_of[1] + requests_of[2] + requests_of[3]; }
  friend bool operator==(const GatherTraffic&, const GatherTraffic&) = default;
};
/// The traffic of rows `rows` of images [first, first + images) of a batch, whose array lies at address `base`.
/// Cost:    a few nanoseconds for each thread of the kernel
template <class T>
GatherTraffic gather_traffic(const DirectSource<T>& source, Index first, Index images, Range rows, Address base, const GatherOrder& order = {}) {
  const GatherMap map(source, first, images, rows, source.samples().data(), base, order);
  GatherTraffic t;
  std::vector<Index> sectors;
  for (Index warp = 0; warp < map.count; warp += warp_threads) {
    sectors.clear();
    for (Index unit = warp; unit < std::min(map.count, warp + warp_threads); ++unit) {
      const ByteRange read = map.place(unit).inside;
      if (read.empty()) continue;
      if (sectors.empty() && read.begin % line_bytes == 0) ++t.lines_begun;
      t.wanted += read.end - read.begin;
      sectors.push_back(read.begin / sector_bytes);
    }
    if (!sectors.empty()) ++t.warps;
    std::sort(sectors.begin(), sectors.end());
    sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
    constexpr Index in_line = line_bytes / sector_bytes;
    for (std::size_t i = 0, size = 0; i < sectors.size(); i += size) {
      size = 1;
      while (i + size < sectors.size() && sectors[i + size] == sectors[i] + static_cast<Index>(size) && sectors[i + size] % in_line != 0) ++size;
      ++t.requests_of[size - 1], t.bytes += static_cast<Index>(size) * sector_bytes;
    }
  }
  return t;
}
}   // namespace lrcnn::loops
