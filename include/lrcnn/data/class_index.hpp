#pragma once
// Where the pixels of some classes are in masks: found in one pass over each mask, tile by tile, and kept as counts of small cells.
#include <lrcnn/data/crop_places.hpp>
#include <lrcnn/data/mask_classes.hpp>
namespace lrcnn {
/// Pixels of some classes in the masks of some images. Takes 16 bytes for each class and cell of 128 x 128 pixels that has any of it.
class ClassIndex {
 public:
  struct Pixel {
    Index image;
    Pair at;
  };
  ClassIndex() = default;
  explicit ClassIndex(std::vector<std::int32_t> classes) : classes_(std::move(classes)), cells_(classes_.size()) {}
  const std::vector<std::int32_t>& classes() const { return classes_; }
  /// Adds the mask of image number `image`; only pixels that crops at `places` can show count. Others may have values without a class.
  /// Errors:  as ClassMask::for_each()
  /// Cost:    one pass over the mask
  void add(Index image, const ClassMask& mask, const CropPlaces& places) {
    const ImageInfo& info = mask.image.info();
    const Index across = ceil_div(info.width, cell), cells = across * ceil_div(info.height, cell);
    std::vector<std::vector<std::uint16_t>> counts(classes_.size(), std::vector<std::uint16_t>(static_cast<std::size_t>(cells)));
    each_pixel(mask, whole(info), places, [&](std::size_t slot, Pair at) { ++item(counts[slot], at.h / cell * across + at.w / cell); });
    for (std::size_t slot = 0; slot < classes_.size(); ++slot)
      for (Index c = 0; c < cells; ++c)
        if (const Index here = item(counts[slot], c); here > 0)
          cells_[slot].push_back({count(slot) + here, static_cast<std::int32_t>(image), static_cast<std::int32_t>(c)});
  }
  /// Pixels of classes()[slot].
  Index count(std::size_t slot) const { return cells_[slot].empty() ? 0 : cells_[slot].back().end; }
  /// Pixel number `number` of a class. `image(i)` gives mask and places of image i, as they were added. Pre: 0 <= number < count(slot).
  /// Cost:    reads one cell of a mask
  template <class MaskOf, class PlacesOf>
  Pixel pixel(std::size_t slot, Index number, const MaskOf& mask_of, const PlacesOf& places_of) const {
    const auto found = std::upper_bound(cells_[slot].begin(), cells_[slot].end(), number, [](Index n, const Cell& c) { return n < c.end; });
    Index before = found == cells_[slot].begin() ? 0 : std::prev(found)->end;
    const ClassMask mask = mask_of(found->image);
    const ImageInfo& info = mask.image.info();
    const Index across = ceil_div(info.width, cell), y = found->cell / across * cell, x = found->cell % across * cell;
    std::vector<Index> of_cell;
    each_pixel(mask, {{y, std::min(y + cell, info.height)}, {x, std::min(x + cell, info.width)}}, places_of(found->image),
               [&](std::size_t s, Pair at) {
                 if (s == slot) of_cell.push_back(at.h * info.width + at.w);
               });
    const Index rest = number - before;
    if (rest >= static_cast<Index>(of_cell.size()))
      throw DataError(error_text("mask '" + info.path.string() + "' has other classes than when it was read first",
                                 "a mask stays as it is while crops are made of it", "begin anew"));
    std::sort(of_cell.begin(), of_cell.end());   // whatever tiles they came from
    return {found->image, {item(of_cell, rest) / info.width, item(of_cell, rest) % info.width}};
  }

 private:
  static constexpr Index cell = 128;   ///< rows and columns; its pixels fit into 16 bits
  struct Cell {
    Index end;   ///< pixels of the class in this cell and all before
    std::int32_t image, cell;
  };
  template <class F>
  void each_pixel(const ClassMask& mask, const ImageRegion& region, const CropPlaces& places, F f) const {
    const auto shown = [&](Index y, Index x) { return places.shows({y, x}); };
    mask.for_each(region, shown, [&](Index y, Index x, std::int32_t label) {
      for (std::size_t slot = 0; slot < classes_.size(); ++slot)
        if (classes_[slot] == label && shown(y, x)) f(slot, Pair{y, x});
    });
  }
  std::vector<std::int32_t> classes_{};
  std::vector<std::vector<Cell>> cells_{};   ///< of each class, in order
};
}   // namespace lrcnn
