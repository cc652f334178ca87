#pragma once
// A picture with a mask, and random crops of it for training, none of which touches a region that is held out.
#include <lrcnn/lrcnn.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>
/// Colours and mask of one size. A pixel is of the object or not.
struct MaskedPicture {
  std::string description{};
  lrcnn::Index height = 0, width = 0;
  std::vector<std::uint8_t> pixels{};   ///< red, green, blue: [3,height,width]
  std::vector<std::uint8_t> mask{};     ///< [height,width], 1 where the object is
  bool object(lrcnn::Index y, lrcnn::Index x) const { return mask[static_cast<std::size_t>(y * width + x)] != 0; }
  std::uint8_t colour(lrcnn::Index c, lrcnn::Index y, lrcnn::Index x) const { return pixels[static_cast<std::size_t>((c * height + y) * width + x)]; }
};
/// Some rows by some columns.
struct Region {
  lrcnn::Range rows{}, columns{};
  bool contains(lrcnn::Index y, lrcnn::Index x) const { return rows.begin <= y && y < rows.end && columns.begin <= x && x < columns.end; }
  bool meets(const Region& other) const {
    const auto meet = [](lrcnn::Range a, lrcnn::Range b) { return a.begin < b.end && b.begin < a.end; };
    return meet(rows, other.rows) && meet(columns, other.columns);
  }
};
inline std::string to_string(const Region& r) {
  return "rows " + std::to_string(r.rows.begin) + " to " + std::to_string(r.rows.end - 1) + ", columns " + std::to_string(r.columns.begin) + " to " +
         std::to_string(r.columns.end - 1);
}
/// Pixels of the object inside the region, and outside.
inline std::array<lrcnn::Index, 2> object_pixels(const MaskedPicture& picture, const Region& region) {
  std::array<lrcnn::Index, 2> count{};
  for (lrcnn::Index y = 0; y < picture.height; ++y)
    for (lrcnn::Index x = 0; x < picture.width; ++x)
      if (picture.object(y, x)) ++count[region.contains(y, x) ? 0 : 1];
  return count;
}
/// The upper part of the object, with a third of its pixels, and 16 pixels around it.
/// Errors:  DataError if there is no object
inline Region upper_part(const MaskedPicture& picture) {
  using namespace lrcnn;
  std::vector<Index> in_row(static_cast<std::size_t>(picture.height));
  Index all = 0, left = picture.width, right = 0, top = picture.height;
  for (Index y = 0; y < picture.height; ++y)
    for (Index x = 0; x < picture.width; ++x)
      if (picture.object(y, x)) {
        ++in_row[static_cast<std::size_t>(y)], ++all;
        left = std::min(left, x), right = std::max(right, x), top = std::min(top, y);
      }
  if (all == 0)
    throw DataError(
        error_text("the mask of " + picture.description + " is black everywhere", "it is white where the object is", "give a mask of something"));
  Index bottom = top, seen = 0;
  while (3 * seen < all) seen += in_row[static_cast<std::size_t>(bottom++)];
  const auto around = [](Index begin, Index end, Index size) { return Range{std::max<Index>(begin - 16, 0), std::min(end + 16, size)}; };
  return {around(top, bottom, picture.height), around(left, right + 1, picture.width)};
}
/// Crops and their masks as a batch to train on.
class MaskedBatch final : public lrcnn::RowSource<float> {
 public:
  MaskedBatch(lrcnn::Batch<float> images, std::vector<std::int32_t> classes) : images_(std::move(images)), classes_(std::move(classes)) {}
  lrcnn::Shape shape() const override { return images_.shape(); }
  void read(lrcnn::Index first, const lrcnn::View<float>& dst) const override { images_.read(first, dst); }
  lrcnn::Labels labels() const { return lrcnn::Labels::of_pixels(classes_, shape().h, shape().w); }

 private:
  lrcnn::Batch<float> images_;
  std::vector<std::int32_t> classes_;   ///< [N,H,W]
};
/// Square crops, half of them around a pixel of the object, half from anywhere, in all eight orientations, lighter or darker by up to a
/// fifth. A batch is a function of seed and number.
class MaskedCrops {
  using Index = lrcnn::Index;

 public:
  /// Errors:  DataError if a crop is larger than the picture, or the whole object is held out
  MaskedCrops(const MaskedPicture& picture, const Region& held_out, Index batch, Index size, const lrcnn::Normalization& normalization,
              std::uint64_t seed)
      : picture_(picture),
        held_out_(held_out),
        batch_(batch),
        size_(size),
        seed_(seed),
        table_(std::make_shared<const std::vector<float>>(lrcnn::normalization_table<float>(normalization, 3))) {
    if (size > picture.height || size > picture.width)
      throw lrcnn::DataError(lrcnn::error_text("crops of " + extents() + " from " + picture.description + ", which has " +
                                                   std::to_string(picture.height) + "x" + std::to_string(picture.width) + " pixels",
                                               "a crop lies within the picture", "take smaller crops"));
    for (Index y = 0; y < picture.height; ++y)
      for (Index x = 0; x < picture.width; ++x)
        if (picture.object(y, x) && !held_out.contains(y, x)) object_.push_back(y * picture.width + x);
    if (object_.empty())
      throw lrcnn::DataError(lrcnn::error_text("the whole object of " + picture.description + " is held out: " + to_string(held_out),
                                               "crops for training show some of it", "hold a smaller region out"));
  }
  lrcnn::Input input() const { return {batch_, 3, size_, size_}; }
  /// Errors:  DataError if hardly any crop lies beside the region that is held out
  MaskedBatch batch(Index number) const {
    lrcnn::BatchContents contents{.shape = input(), .labels = {}, .indices = {}, .position = number};
    contents.pixels.resize(static_cast<std::size_t>(contents.shape.count()));
    std::vector<std::int32_t> classes(static_cast<std::size_t>(batch_ * size_ * size_));
    for (Index i = 0; i < batch_; ++i) cut(i, lrcnn::purpose_random(seed_, "crops", number, i), contents.pixels, classes);
    return {lrcnn::Batch<float>(table_, std::move(contents)), std::move(classes)};
  }

 private:
  std::string extents() const { return std::to_string(size_) + "x" + std::to_string(size_); }
  /// Draws until a crop touches nothing that is held out.
  lrcnn::Pair corner(Index image, const lrcnn::Random& random) const {
    std::uint64_t draws = 100;   // earlier ones are cut()'s
    const auto below = [&](Index bound) { return static_cast<Index>(random.below(draws++, static_cast<std::uint64_t>(bound))); };
    const Index last_y = picture_.height - size_, last_x = picture_.width - size_;
    for (int attempt = 0; attempt < 10000; ++attempt) {
      Index y, x;
      if (image % 2 == 0) {
        const Index pixel = object_[static_cast<std::size_t>(below(static_cast<Index>(object_.size())))];
        y = std::clamp<Index>(pixel / picture_.width - below(size_), 0, last_y);
        x = std::clamp<Index>(pixel % picture_.width - below(size_), 0, last_x);
      } else {
        y = below(last_y + 1), x = below(last_x + 1);
      }
      if (!Region{{y, y + size_}, {x, x + size_}}.meets(held_out_)) return {y, x};
    }
    throw lrcnn::DataError(
        lrcnn::error_text("crops of " + extents() + " find no place in " + picture_.description + " beside what is held out, " + to_string(held_out_),
                          "what is held out is not seen in training", "take smaller crops, or hold a smaller region out"));
  }
  void cut(Index image, const lrcnn::Random& random, std::vector<std::uint8_t>& pixels, std::vector<std::int32_t>& classes) const {
    const lrcnn::Pair from = corner(image, random);
    const bool turned = random.below(0, 2) == 1, upside_down = random.below(1, 2) == 1, mirrored = random.below(2, 2) == 1;
    const double light = 0.8 + 0.4 * random.uniform(3);
    std::array<std::uint8_t, 256> lit;
    for (std::size_t b = 0; b < 256; ++b) lit[b] = static_cast<std::uint8_t>(std::min(std::lround(light * static_cast<double>(b)), 255l));
    const Index plane = size_ * size_;
    for (Index y = 0; y < size_; ++y)
      for (Index x = 0; x < size_; ++x) {
        Index v = upside_down ? size_ - 1 - y : y, u = mirrored ? size_ - 1 - x : x;
        if (turned) std::swap(u, v);
        const Index to = y * size_ + x;
        classes[static_cast<std::size_t>(image * plane + to)] = picture_.object(from.h + v, from.w + u);
        for (Index c = 0; c < 3; ++c)
          pixels[static_cast<std::size_t>((3 * image + c) * plane + to)] = lit[picture_.colour(c, from.h + v, from.w + u)];
      }
  }
  const MaskedPicture& picture_;
  Region held_out_;
  Index batch_, size_;
  std::uint64_t seed_;
  std::shared_ptr<const std::vector<float>> table_;
  std::vector<Index> object_{};   ///< its pixels that are not held out
};
/// Leaves on an uneven, noisy ground, among discs and bars in other colours: for when no photograph is at hand.
inline MaskedPicture draw_leaves(lrcnn::Index height, lrcnn::Index width, std::uint64_t seed) {
  using namespace lrcnn;
  MaskedPicture picture{"a drawn picture of leaves (not a photograph)", height, width, {}, {}};
  const auto plane = static_cast<std::size_t>(height * width);
  picture.pixels.resize(3 * plane), picture.mask.resize(plane);
  struct Thing {
    double y, x, length, breadth, cosine, sine;
    bool leaf, disc;
    std::array<double, 3> colour;
  };
  std::vector<Thing> things;
  for (Index i = 0; i < height * width / 2000; ++i) {
    const Random random = purpose_random(seed, "leaves", i);
    const auto between = [&](std::uint64_t which, double low, double high) { return low + (high - low) * random.uniform(which); };
    const double angle = between(2, 0, 2 * std::numbers::pi);
    Thing t{between(0, 0, double(height)),
            between(1, 0, double(width)),
            between(3, 14, 30),
            between(4, 4, 10),
            std::cos(angle),
            std::sin(angle),
            i % 2 == 0,
            i % 4 == 1,
            {}};
    if (t.leaf) t.colour = {between(5, 20, 90), between(6, 90, 170), between(7, 20, 80)};
    else t.colour = {between(5, 90, 220), between(6, 40, 130), between(7, 60, 220)};
    if (t.disc) t.length = t.breadth;
    things.push_back(t);
  }
  const Random noise = purpose_random(seed, "noise", 0);
  for (Index y = 0; y < height; ++y)
    for (Index x = 0; x < width; ++x) {
      std::array<double, 3> colour{150 + 50 * double(x) / double(width), 140 + 40 * double(y) / double(height), 150};
      bool leaf = false;
      for (const Thing& t : things) {   // later ones lie above
        const double dy = double(y) - t.y, dx = double(x) - t.x;
        const double along = (dx * t.cosine + dy * t.sine) / t.length, across = (dy * t.cosine - dx * t.sine) / t.breadth;
        const bool in_leaf = std::abs(across) <= 1 - along * along, in_disc = along * along + across * across <= 1;
        const bool in_bar = std::max(std::abs(along), std::abs(across)) <= 1;
        if (t.leaf ? in_leaf : t.disc ? in_disc : in_bar) colour = t.colour, leaf = t.leaf;
      }
      const auto at = static_cast<std::size_t>(y * width + x);
      picture.mask[at] = leaf;
      for (std::size_t c = 0; c < 3; ++c)
        picture.pixels[c * plane + at] = static_cast<std::uint8_t>(std::clamp(colour[c] + 12 * noise.normal(3 * at + c), 0.0, 255.0));
    }
  return picture;
}
