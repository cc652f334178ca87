#pragma once
// Large images read through a cache of a few tiles, compared with their pixels.
#include "support/drawn_image.hpp"
#include <lrcnn/data/image_source.hpp>
#include <set>
#include <string>
namespace lrcnn::testing {
/// What is wrong with how images are read; empty if nothing is.
inline std::string wrong_image_reads() {
  using test::draw_image;
  const auto pixels_of = [](const CachedImage& image, const ImageRegion& region) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(region.rows.size() * region.columns.size() * image.info().pixel_bytes()));
    image.read(region, bytes);
    return bytes;
  };
  const auto small_cache = [](Index bytes) { return std::make_shared<TileCache>(TileCacheOptions{.bytes = bytes, .threads = 0}); };
  {   // any region
    const auto image = draw_image(50, 45, 3, 9, 11);
    const CachedImage cached(image, small_cache(3 * 9 * 11 * 3));
    const Random random(5, 5);
    for (std::uint64_t i = 0; i < 50; ++i) {
      const auto y = static_cast<Index>(random.below(4 * i, 50)), x = static_cast<Index>(random.below(4 * i + 1, 45));
      const ImageRegion region{{y, y + 1 + static_cast<Index>(random.below(4 * i + 2, static_cast<std::uint64_t>(50 - y)))},
                               {x, x + 1 + static_cast<Index>(random.below(4 * i + 3, static_cast<std::uint64_t>(45 - x)))}};
      if (pixels_of(cached, region) != image->pixels(region)) return to_string(region) + " are not the image's";
    }
  }
  {   // a tile stays while it is looked at, whatever others read meanwhile
    const auto image = draw_image(80, 8, 1, 8, 8);
    const CachedImage cached(image, small_cache(2 * 64));
    bool same = true;
    cached.for_each_tile({{0, 8}, {0, 8}}, [&](const ImageRegion& part, const std::byte* pixels, Index) {
      std::thread([&] {
        for (Index row = 1; row < 10; ++row) pixels_of(cached, {{8 * row, 8 * row + 8}, {0, 8}});
      }).join();
      const auto expected = image->pixels(part);
      same = std::equal(expected.begin(), expected.end(), pixels);
    });
    if (!same) return "a tile changes while it is looked at";
  }
  {   // what is expected is kept as well as anybody could who knows what comes: of ten tiles six, those that are wanted soonest
    const auto image = draw_image(80, 8, 1, 8, 8);
    const CachedImage cached(image, small_cache(6 * 64));
    const Random random(9, 9);
    std::vector<Index> wanted;
    std::vector<ImageRegion> order;
    for (std::uint64_t i = 0; i < 60; ++i) {
      wanted.push_back(static_cast<Index>(random.below(i, 10)));
      order.push_back({{8 * wanted.back(), 8 * wanted.back() + 8}, {0, 8}});
    }
    Index fewest = 0;
    std::set<Index> kept;
    for (auto now = wanted.begin(); now != wanted.end(); ++now) {
      if (kept.contains(*now)) continue;
      const auto sooner = [&](Index a, Index b) { return std::find(now, wanted.end(), a) < std::find(now, wanted.end(), b); };
      if (kept.size() == 6) kept.erase(std::max_element(kept.begin(), kept.end(), sooner));
      kept.insert(*now), ++fewest;
    }
    cached.expect(order);
    for (const ImageRegion& region : order) pixels_of(cached, region);
    if (image->decoded != fewest) return std::to_string(image->decoded) + " tiles are decoded where " + std::to_string(fewest) + " suffice";
  }
  {   // a part of an image as a batch
    const auto image = draw_image(50, 45, 3, 9, 11);
    const ImageSource<double> source(CachedImage(image, small_cache(10'000)), {.region = {{7, 30}, {5, 40}}});
    std::vector<double> values(static_cast<std::size_t>(3 * 23 * 35));
    source.read(0, dense_view(values.data(), 1, 3, {0, 23}, 35));
    for (Index c = 0; c < 3; ++c)
      for (Index y = 0; y < 23; ++y)
        for (Index x = 0; x < 35; ++x)
          if (const double v = item(values, (c * 23 + y) * 35 + x); std::abs(v * 255 - test::drawn_sample(7 + y, 5 + x, c)) > 1e-9)
            return "a part of an image has another image's rows";
  }
  return "";
}
}   // namespace lrcnn::testing
