#pragma once
// Where crops may lie in an image: within regions that are used, beside regions that are held out.
#include <lrcnn/data/image_file.hpp>
#include <lrcnn/shape/window.hpp>
#include <algorithm>
#include <vector>
namespace lrcnn {
/// Rows or columns of one image that both have; empty if there are none.
inline ImageRegion intersect(const ImageRegion& a, const ImageRegion& b) { return {intersect(a.rows, b.rows), intersect(a.columns, b.columns)}; }
/// Whether a region has no pixel.
inline bool empty(const ImageRegion& r) { return r.rows.empty() || r.columns.empty(); }
/// Pixels of a region.
inline Index area(const ImageRegion& r) { return empty(r) ? 0 : r.rows.size() * r.columns.size(); }
/// Disjoint regions that have the pixels of disjoint `regions` that `cut` does not have.
inline std::vector<ImageRegion> without(const std::vector<ImageRegion>& regions, const ImageRegion& cut) {
  std::vector<ImageRegion> rest;
  for (const ImageRegion& r : regions) {
    const ImageRegion both = intersect(r, cut);
    if (empty(both)) {
      rest.push_back(r);
      continue;
    }
    for (const ImageRegion& part :
         {ImageRegion{{r.rows.begin, both.rows.begin}, r.columns}, ImageRegion{{both.rows.end, r.rows.end}, r.columns},
          ImageRegion{both.rows, {r.columns.begin, both.columns.begin}}, ImageRegion{both.rows, {both.columns.end, r.columns.end}}})
      if (!empty(part)) rest.push_back(part);
  }
  return rest;
}
/// All places of crops of one size in one image. A place is the first row and column of a crop.
class CropPlaces {
 public:
  /// `regions`: each crop lies in one of them; none: in the image. `held_out`: no crop has a pixel of these.
  /// Errors:  DataError if a region is empty or not within the image. That there is no place is none: count() is 0 then
  CropPlaces(const ImageInfo& info, std::vector<ImageRegion> regions, const std::vector<ImageRegion>& held_out, Pair crop) : crop_(crop) {
    for (const auto& list : {regions, held_out})
      for (const ImageRegion& r : list)
        if (empty(r) || !whole(info).contains(r))
          throw DataError(error_text("region of " + to_string(r) + " of image '" + info.path.string() + "'",
                                     "a region has a pixel at least and lies within the image, which has " + std::to_string(info.height) +
                                         " rows and " + std::to_string(info.width) + " columns",
                                     "choose another region"));
    if (regions.empty()) regions.push_back(whole(info));
    for (const ImageRegion& r : regions) {
      std::vector<ImageRegion> places{{{r.rows.begin, r.rows.end - crop.h + 1}, {r.columns.begin, r.columns.end - crop.w + 1}}};
      if (empty(places[0])) continue;
      for (const ImageRegion& before : places_) places = without(places, before);   // regions may overlap
      for (const ImageRegion& h : held_out)
        places = without(places, {{h.rows.begin - crop.h + 1, h.rows.end}, {h.columns.begin - crop.w + 1, h.columns.end}});
      places_.insert(places_.end(), places.begin(), places.end());
    }
  }
  Index count() const { return count_in(whole_plane()); }
  /// Place number `number` of all. Pre: 0 <= number < count().
  Pair place(Index number) const { return place_in(whole_plane(), number); }
  /// Places of crops that show a pixel.
  Index count_around(Pair pixel) const { return count_in(around(pixel)); }
  /// Whether some crop shows a pixel.
  bool shows(Pair pixel) const {
    const ImageRegion near = around(pixel);
    return std::any_of(places_.begin(), places_.end(), [&](const ImageRegion& r) { return !empty(intersect(r, near)); });
  }
  /// Pre: 0 <= number < count_around(pixel).
  Pair place_around(Pair pixel, Index number) const { return place_in(around(pixel), number); }
  /// Whether a crop may lie there.
  bool contains(Pair place) const { return count_in({{place.h, place.h + 1}, {place.w, place.w + 1}}) == 1; }

 private:
  static ImageRegion whole_plane() { return {everywhere, everywhere}; }
  ImageRegion around(Pair pixel) const { return {{pixel.h - crop_.h + 1, pixel.h + 1}, {pixel.w - crop_.w + 1, pixel.w + 1}}; }
  Index count_in(const ImageRegion& window) const {
    Index count = 0;
    for (const ImageRegion& r : places_) count += area(intersect(r, window));
    return count;
  }
  Pair place_in(const ImageRegion& window, Index number) const {
    for (const ImageRegion& r : places_) {
      const ImageRegion part = intersect(r, window);
      if (number < area(part)) return {part.rows.begin + number / part.columns.size(), part.columns.begin + number % part.columns.size()};
      number -= area(part);
    }
    throw DataError(error_text("a place of a crop is asked for beyond the last", "places count from 0", "ask for one below count()"));
  }
  Pair crop_;
  std::vector<ImageRegion> places_{};   ///< disjoint regions of first pixels of crops
};
}   // namespace lrcnn
