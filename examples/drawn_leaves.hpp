#pragma once
// Leaves on an uneven, noisy ground, among discs and bars in other colours: a picture with a mask, for when no photograph is at hand.
#include <lrcnn/data/transform.hpp>
#include <lrcnn/data/image_file.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>
/// The picture, red, green and blue, or its mask, 255 where a leaf is: drawn tile by tile, as if it were decoded.
class DrawnLeaves final : public lrcnn::ImageFile, public std::enable_shared_from_this<DrawnLeaves> {
  using Index = lrcnn::Index;

 public:
  DrawnLeaves(Index height, Index width, std::uint64_t seed, bool mask) : seed_(seed), mask_(mask) {
    info_.path = mask ? "mask of drawn leaves" : "drawn leaves", info_.format = "drawn by the program";
    info_.height = height, info_.width = width, info_.channels = mask ? 1 : 3;
    info_.tile_height = info_.tile_width = 64;
    for (Index i = 0; i < height * width / 2000; ++i) things_.push_back(thing(i));
  }
  const lrcnn::ImageInfo& info() const override { return info_; }
  std::unique_ptr<lrcnn::TileDecoder> decoder() const override { return std::make_unique<Decoder>(shared_from_this()); }

 private:
  using Colour = std::array<double, 3>;
  struct Thing {
    double y, x, length, breadth, cosine, sine;
    bool leaf, disc;
    Colour colour;
  };
  struct Decoder final : lrcnn::TileDecoder {
    explicit Decoder(std::shared_ptr<const DrawnLeaves> of) : leaves(std::move(of)) {}
    void decode(Index row, Index column, std::span<std::byte> out) override {
      const lrcnn::Range rows = leaves->info_.rows_of(row), columns = leaves->info_.columns_of(column);
      std::byte* to = out.data();
      for (Index y = rows.begin; y < rows.end; ++y)
        for (Index x = columns.begin; x < columns.end; ++x, to += leaves->info_.channels) leaves->draw(y, x, to);
    }
    std::shared_ptr<const DrawnLeaves> leaves;
  };
  Thing thing(Index i) const {
    const lrcnn::Random random = lrcnn::purpose_random(seed_, "leaves", i);
    const auto between = [&](std::uint64_t which, double low, double high) { return low + (high - low) * random.uniform(which); };
    const double angle = between(2, 0, 2 * std::numbers::pi);
    Thing t{between(0, 0, double(info_.height)),
            between(1, 0, double(info_.width)),
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
    return t;
  }
  void draw(Index y, Index x, std::byte* to) const {
    const Index height = info_.height, width = info_.width;
    Colour colour{150 + 50 * double(x) / double(width), 140 + 40 * double(y) / double(height), 150};
    bool leaf = false;
    for (const Thing& t : things_) {   // later ones lie above
      const double dy = double(y) - t.y, dx = double(x) - t.x;
      const double along = (dx * t.cosine + dy * t.sine) / t.length, across = (dy * t.cosine - dx * t.sine) / t.breadth;
      const bool in_leaf = std::abs(across) <= 1 - along * along, in_disc = along * along + across * across <= 1;
      const bool in_bar = std::max(std::abs(along), std::abs(across)) <= 1;
      if (t.leaf ? in_leaf : t.disc ? in_disc : in_bar) colour = t.colour, leaf = t.leaf;
    }
    const lrcnn::Random noise = lrcnn::purpose_random(seed_, "noise", 0);
    if (mask_) *to = leaf ? std::byte{255} : std::byte{0};
    else
      for (std::size_t c = 0; c < 3; ++c) {
        const auto at = static_cast<std::uint64_t>(3 * (y * width + x)) + c;
        to[c] = static_cast<std::byte>(std::clamp(colour[c] + 12 * noise.normal(at), 0.0, 255.0));
      }
  }
  lrcnn::ImageInfo info_{};
  std::uint64_t seed_;
  bool mask_;
  std::vector<Thing> things_{};
};
