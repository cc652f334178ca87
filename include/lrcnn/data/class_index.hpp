#pragma once
// Where the pixels of some classes are in masks: found in one pass over each mask, tile by tile, and kept as counts of small cells.
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/crop_places.hpp>
#include <lrcnn/data/samples.hpp>
#include <functional>
#include <optional>
#include <type_traits>
namespace lrcnn {
/// The class that a sample of a mask stands for; none: the sample itself.
using MaskClass = std::function<std::int32_t(std::int64_t)>;
/// Errors:  DataError if a mask has another size than its image, several channels, or samples that are not integers
inline void check_mask(const ImageInfo& mask, const ImageInfo& image) {
  const std::string who = "mask '" + mask.path.string() + "'";
  const auto size = [](const ImageInfo& i) { return std::to_string(i.height) + " rows and " + std::to_string(i.width) + " columns"; };
  if (mask.height != image.height || mask.width != image.width)
    throw DataError(error_text(who + " has " + size(mask) + ", and its image '" + image.path.string() + "' has " + size(image),
                               "a mask has a class for each pixel of its image", "give the mask that belongs to the image, in its size"));
  const bool integers = mask.sample != SampleType::f16 && mask.sample != SampleType::f32 && mask.sample != SampleType::f64;
  if (mask.channels != 1 || !integers)
    throw DataError(error_text(who + " has " + std::to_string(mask.channels) + " channels of " + std::string(sample_name(mask.sample)),
                               "a mask has one channel of integers, a class for each pixel", "save it as a grey picture"));
}
/// Calls f(y, x, class) for each pixel of a region of a mask, each once. Pre: check_mask().
/// Errors:  as CachedImage::for_each_tile(); DataError if a class does not fit into 32 bits; what mask_class and f throw
template <class F>
void for_each_class(const CachedImage& mask, const ImageRegion& region, const MaskClass& mask_class, F f) {
  const auto read = [&]<class S>(const ImageRegion& part, const std::byte* pixels, Index stride, const S*) {
    std::optional<S> last;   // neighbours are of one class mostly
    std::int32_t known = 0;
    for (Index y = part.rows.begin; y < part.rows.end; ++y, pixels += stride)
      for (Index x = part.columns.begin; x < part.columns.end; ++x) {
        S sample;
        std::memcpy(&sample, pixels + (x - part.columns.begin) * Index{sizeof(S)}, sizeof(S));
        if (!last || *last != sample) {
          const auto value = static_cast<std::int64_t>(sample);
          known = mask_class ? mask_class(value) : static_cast<std::int32_t>(value);
          if (!mask_class && known != value)
            throw DataError(error_text("mask '" + mask.info().path.string() + "' has the sample " + std::to_string(value) + " at row " +
                                           std::to_string(y) + ", column " + std::to_string(x),
                                       "a class is a number of 32 bits", "check the mask, or say which classes its samples stand for"));
          last = sample;
        }
        f(y, x, known);
      }
  };
  mask.for_each_tile(region, [&](const ImageRegion& part, const std::byte* pixels, Index stride) {
    with_sample_type(mask.info().sample, [&]<class S>(const S* type) {
      if constexpr (std::is_integral_v<S>) read(part, pixels, stride, type);
    });
  });
}
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
  /// Adds the mask of image number `image`; only pixels that crops at `places` can show count.
  /// Errors:  as for_each_class()
  /// Cost:    one pass over the mask
  void add(Index image, const CachedImage& mask, const MaskClass& mask_class, const CropPlaces& places) {
    const Index across = ceil_div(mask.info().width, cell), cells = across * ceil_div(mask.info().height, cell);
    std::vector<std::vector<std::uint16_t>> counts(classes_.size(), std::vector<std::uint16_t>(static_cast<std::size_t>(cells)));
    each_pixel(mask, whole(mask.info()), mask_class, places,
               [&](std::size_t slot, Pair at) { ++item(counts[slot], at.h / cell * across + at.w / cell); });
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
  Pixel pixel(std::size_t slot, Index number, const MaskOf& mask_of, const PlacesOf& places_of, const MaskClass& mask_class) const {
    const auto found = std::upper_bound(cells_[slot].begin(), cells_[slot].end(), number, [](Index n, const Cell& c) { return n < c.end; });
    Index before = found == cells_[slot].begin() ? 0 : std::prev(found)->end;
    const CachedImage& mask = mask_of(found->image);
    const ImageInfo& info = mask.info();
    const Index across = ceil_div(info.width, cell), y = found->cell / across * cell, x = found->cell % across * cell;
    std::vector<Index> of_cell;
    each_pixel(mask, {{y, std::min(y + cell, info.height)}, {x, std::min(x + cell, info.width)}}, mask_class, places_of(found->image),
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
  void each_pixel(const CachedImage& mask, const ImageRegion& region, const MaskClass& mask_class, const CropPlaces& places, F f) const {
    for_each_class(mask, region, mask_class, [&](Index y, Index x, std::int32_t label) {
      for (std::size_t slot = 0; slot < classes_.size(); ++slot)
        if (classes_[slot] == label && places.shows({y, x})) f(slot, Pair{y, x});
    });
  }
  std::vector<std::int32_t> classes_{};
  std::vector<std::vector<Cell>> cells_{};   ///< of each class, in order
};
}   // namespace lrcnn
