#pragma once
// The order in which an image's tiles will be wanted, as far as somebody has said so.
//
// Regions are expected one after the other. Reads move a cursor along that list; the distance of a tile is the number of regions from the
// cursor to the first one that touches it. A cache keeps the tiles with the least distances and decodes ahead in their order.
#include <lrcnn/data/image_file.hpp>
#include <algorithm>
#include <limits>
#include <vector>
namespace lrcnn::detail {
/// Number of a tile: its row and column in the grid of tiles.
struct TilePlace {
  Index row = 0, column = 0;
  friend auto operator<=>(const TilePlace&, const TilePlace&) = default;
};
/// Tiles that a region touches: rows and columns of the grid. Pre: the region lies within the image and is not empty.
struct TileBlock {
  Range rows{}, columns{};
};
inline TileBlock tiles_of(const ImageInfo& info, const ImageRegion& r) {
  const auto covering = [](Range pixels, Index size) { return Range{pixels.begin / size, ceil_div(pixels.end, size)}; };
  return {covering(r.rows, info.tile_height), covering(r.columns, info.tile_width)};
}
class TileOrder {
 public:
  static constexpr Index never = std::numeric_limits<Index>::max();
  /// Replaces what was expected before. Pre: the regions lie within the image and are not empty.
  void expect(const ImageInfo& info, std::span<const ImageRegion> regions) {
    regions_.assign(regions.begin(), regions.end());
    blocks_.clear();
    regions_of_row_.resize(static_cast<std::size_t>(info.tile_rows()));
    for (auto& list : regions_of_row_) list.clear();
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      blocks_.push_back(tiles_of(info, regions_[i]));
      for (Index row = blocks_.back().rows.begin; row < blocks_.back().rows.end; ++row) item(regions_of_row_, row).push_back(static_cast<Index>(i));
    }
    cursor_ = ahead_ = 0;
  }
  /// A region has been read. If it was expected, those up to it lie behind.
  void passed(const ImageRegion& region) {
    const auto found = std::find(regions_.begin() + cursor_, regions_.end(), region);
    if (found == regions_.end()) return;
    cursor_ = found - regions_.begin() + 1;
    ahead_ = std::max(ahead_, cursor_);
  }
  /// Regions between the cursor and the first one that touches a tile: 0 for the next one; `never` if none does.
  Index distance(TilePlace tile) const {
    if (done()) return never;
    const auto& list = item(regions_of_row_, tile.row);
    for (auto at = std::lower_bound(list.begin(), list.end(), cursor_); at != list.end(); ++at)
      if (const Range columns = item(blocks_, *at).columns; columns.begin <= tile.column && tile.column < columns.end) return *at - cursor_;
    return never;
  }
  /// The first expected tile that `wanted` says yes to, in the order of regions and of tiles within them. False if there is none.
  /// Regions of which it says no to all are not looked at again, unless look_again() says so.
  template <class F>
  bool next(F wanted, TilePlace& tile) {
    for (; ahead_ < static_cast<Index>(blocks_.size()); ++ahead_) {
      const TileBlock& block = item(blocks_, ahead_);
      for (tile.row = block.rows.begin; tile.row < block.rows.end; ++tile.row)
        for (tile.column = block.columns.begin; tile.column < block.columns.end; ++tile.column)
          if (wanted(tile)) return true;
    }
    return false;
  }
  /// Whether all that was expected lies behind.
  bool done() const { return cursor_ == static_cast<Index>(regions_.size()); }
  /// A tile at that distance is wanted again.
  void look_again(Index distance) {
    if (distance != never) ahead_ = std::min(ahead_, cursor_ + distance);
  }

 private:
  std::vector<ImageRegion> regions_;
  std::vector<TileBlock> blocks_;                    ///< of each region
  std::vector<std::vector<Index>> regions_of_row_;   ///< of each row of tiles, ascending
  Index cursor_ = 0;                                 ///< the region that is expected next
  Index ahead_ = 0;                                  ///< the first region that may have tiles nobody has decoded
};
}   // namespace lrcnn::detail
