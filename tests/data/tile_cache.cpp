// data/tile_cache.hpp, data/cached_image.hpp: the pixels of the file whatever the cache holds, within its bytes, in the order that is expected.
#include "support/drawn_image.hpp"
#include "support/error_of.hpp"
#include <lrcnn/data/cached_image.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
namespace {
std::vector<std::byte> read(const CachedImage& image, const ImageRegion& region) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(region.rows.size() * region.columns.size() * image.info().pixel_bytes()));
  image.read(region, bytes);
  return bytes;
}
Range random_range(const Random& random, std::uint64_t& draw, Index size) {
  const auto begin = static_cast<Index>(random.below(draw++, static_cast<std::uint64_t>(size)));
  return {begin, begin + 1 + static_cast<Index>(random.below(draw++, static_cast<std::uint64_t>(size - begin)))};
}
/// Waits for something that other threads do. A test that waits in vain fails.
template <class F>
bool comes(F f) {
  for (int i = 0; i < 2000; ++i) {
    if (f()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}
std::vector<ImageRegion> bands(Index height, Index width, Index rows) {
  std::vector<ImageRegion> result;
  for (Index y = 0; y < height; y += rows) result.push_back({{y, std::min(height, y + rows)}, {0, width}});
  return result;
}
}   // namespace
TEST_CASE("a cached image gives any region's pixels, whatever the tiles, samples and bytes of the cache") {
  const Random random(20241, 1);
  std::uint64_t draw = 0;
  const auto below = [&](Index n) { return static_cast<Index>(random.below(draw++, static_cast<std::uint64_t>(n))); };
  for (int repetition = 0; repetition < 60; ++repetition) {
    const Index height = 1 + below(60), width = 1 + below(60);
    const auto image = draw_image(height, width, 1 + below(4), 1 + below(70), 1 + below(70), static_cast<SampleType>(below(10)));
    const Index tiles = 1 + below(5);
    const auto cache =
        std::make_shared<TileCache>(TileCacheOptions{.bytes = tiles * image->info().tile_bytes(), .threads = static_cast<int>(below(3))});
    const CachedImage cached(image, cache);
    std::vector<ImageRegion> regions;
    for (int i = 0; i < 8; ++i) regions.push_back({random_range(random, draw, height), random_range(random, draw, width)});
    if (repetition % 2 == 0) cached.expect(regions);
    for (const ImageRegion& region : regions) {
      INFO("repetition " << repetition << ": " << to_string(region) << " of " << height << "x" << width);
      REQUIRE(read(cached, region) == image->pixels(region));
    }
    REQUIRE(cache->report().most_bytes <= cache->options().bytes);
  }
}
TEST_CASE("tiles that fit into the cache are decoded once; an image that goes takes its tiles along") {
  const auto image = draw_image(64, 64, 3, 16, 16);
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 64 * 64 * 3, .threads = 0});
  {
    const CachedImage cached(image, cache);
    for (int i = 0; i < 3; ++i) CHECK(read(cached, {{5, 60}, {0, 64}}) == image->pixels({{5, 60}, {0, 64}}));
    CHECK(image->decoded == 16);
    CHECK(cache->report().found_tiles == 32);
    CHECK(cache->report().bytes == 64 * 64 * 3);
    CHECK(image->decoders == 1);
  }
  CHECK(cache->report().bytes == 0);
}
TEST_CASE("tiles are decoded ahead in the order that is expected, as far as there is room") {
  const auto image = draw_image(160, 16, 1, 16, 16);
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 4 * 256, .threads = 2});
  const CachedImage cached(image, cache);
  const auto order = bands(160, 16, 16);
  cached.expect(order);
  REQUIRE(comes([&] { return cache->report().decoded_ahead == 4; }));
  Index ahead = 4;
  for (const ImageRegion& band : order) {
    REQUIRE(read(cached, band) == image->pixels(band));
    ahead = std::min<Index>(ahead + 1, 10);
    REQUIRE(comes([&] { return cache->report().decoded_ahead == ahead; }));   // the one that was read has given its place to the next
  }
  CHECK(image->decoded == 10);
  CHECK(cache->report().found_tiles == 10);
  CHECK(cache->report().most_bytes == 4 * 256);
}
TEST_CASE("a full cache stays full: a tile takes the place of the one used longest ago") {
  const auto image = draw_image(16 * 80, 16, 1, 16, 16);
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 64 * 256, .threads = 0});
  const CachedImage cached(image, cache);
  const auto order = bands(16 * 80, 16, 16);
  const auto visit = [&](std::size_t i) { REQUIRE(read(cached, order[i]) == image->pixels(order[i])); };
  for (std::size_t i = 0; i < 65; ++i) visit(i);   // 0 has gone, 1 goes next
  CHECK(cache->report().bytes == 64 * 256);
  visit(1), visit(65), visit(1);
  CHECK(image->decoded == 66);
  visit(2);   // went instead
  CHECK(image->decoded == 67);
  cached.expect(std::vector{order[4]});
  visit(66), visit(67), visit(4);   // 4 was the next to go, and now somebody wants it
  CHECK(image->decoded == 69);
  CHECK(cache->report().bytes == 64 * 256);
}
TEST_CASE("rows that are read again, from the last to the first, cost only what does not fit") {
  // Down and up again over ten tiles, with room for six: at the turn the last six are there, and the first four are decoded a second time.
  const auto image = draw_image(160, 16, 1, 16, 16);
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 6 * 256, .threads = 0});
  const CachedImage cached(image, cache);
  std::vector<ImageRegion> order = bands(160, 16, 16);
  order.insert(order.end(), order.rbegin(), order.rend());
  cached.expect(order);
  for (const ImageRegion& band : order) REQUIRE(read(cached, band) == image->pixels(band));
  CHECK(image->decoded == 14);
}
TEST_CASE("what comes unexpected is read all the same, and what was expected stays so") {
  const auto image = draw_image(160, 16, 1, 16, 16);
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 3 * 256, .threads = 1});
  const CachedImage cached(image, cache);
  const auto order = bands(160, 16, 16);
  cached.expect(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    REQUIRE(read(cached, {{159 - static_cast<Index>(i), 160}, {3, 5}}) == image->pixels({{159 - static_cast<Index>(i), 160}, {3, 5}}));
    REQUIRE(read(cached, order[i]) == image->pixels(order[i]));
  }
}
TEST_CASE("idle decoders keep no more bytes than the tiles may have, but for the last one; 64 of them at most") {
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 100, .threads = 0});
  std::vector<std::shared_ptr<DrawnImage>> images;
  std::vector<CachedImage> cached;
  for (const Index bytes : {40, 40, 40, 250}) {
    images.push_back(draw_image(4, 4, 1, 2, 4));
    images.back()->decoder_bytes = bytes;
    cached.emplace_back(images.back(), cache);
  }
  const auto decoders_after = [&](std::size_t i, Index row) {
    static_cast<void>(read(cached[i], {{row, row + 1}, {0, 4}}));
    return images[i]->decoders.load();
  };
  CHECK(decoders_after(0, 0) == 1);
  CHECK(decoders_after(0, 2) == 1);
  CHECK(decoders_after(1, 0) == 1);
  CHECK(cache->report().decoder_bytes == 80);
  CHECK(decoders_after(2, 0) == 1);   // the first image's decoder has gone
  CHECK(cache->report().decoder_bytes == 80);
  for (int i = 0; i < 20; ++i) static_cast<void>(read(cached[1], {{i % 2 * 2, i % 2 * 2 + 1}, {0, 4}}));
  CHECK(images[1]->decoders == 1);
  CHECK(decoders_after(3, 0) == 1);
  CHECK(cache->report().decoder_bytes == 250);   // alone, and kept
  CHECK(decoders_after(3, 2) == 1);
  CHECK(decoders_after(1, 0) == 1);   // the tile is still there
  cached.pop_back();
  CHECK(cache->report().decoder_bytes == 0);
  for (int i = 0; i < 70; ++i) {
    images.push_back(draw_image(1, 1, 1, 1, 1));
    images.back()->decoder_bytes = 1;
    static_cast<void>(read(cached.emplace_back(images.back(), cache), {{0, 1}, {0, 1}}));
  }
  CHECK(cache->report().decoder_bytes == 64);
}
TEST_CASE("many threads read many images through a cache of a few tiles") {
  std::vector<std::shared_ptr<DrawnImage>> images;
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 3 * 64, .threads = 2});
  std::vector<CachedImage> cached;
  for (Index i = 0; i < 4; ++i) {
    images.push_back(draw_image(40, 40, 1, 8, 8));
    images.back()->value = [i](Index y, Index x, Index) { return static_cast<int>((y * 5 + x + i) % 100); };
    cached.emplace_back(images.back(), cache);
  }
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const Random random(77, t);
        std::uint64_t draw = 0;
        for (int i = 0; i < 100; ++i) {
          const auto n = static_cast<std::size_t>(random.below(draw++, 4));
          const ImageRegion region{random_range(random, draw, 40), random_range(random, draw, 40)};
          if (i % 10 == 0) cached[n].expect(std::vector{region});
          if (read(cached[n], region) != images[n]->pixels(region)) ++wrong;
        }
      });
  }
  CHECK(wrong == 0);
  CHECK(cache->report().most_bytes <= 3 * 64);
}
TEST_CASE("images of different tiles, in order or not, sound or damaged, share room for one tile, and all threads come to an end") {
  std::vector<std::shared_ptr<DrawnImage>> images;
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 40 * 8 * 3, .threads = 3});
  std::vector<CachedImage> cached;
  for (Index i = 0; i < 4; ++i) {
    ImageInfo info = draw_image(40, 40, 1 + i % 3, 8, i % 2 == 0 ? 40 : 5 + i)->info();
    info.in_order = i % 2 == 0;
    images.push_back(std::make_shared<DrawnImage>(info));
    if (i == 3)
      images.back()->before = [](Index row, Index column) {
        if (row == 2 && column == 1) throw DataError("damaged");
      };
    cached.emplace_back(images.back(), cache);
  }
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const Random random(78, t);
        std::uint64_t draw = 0;
        for (int i = 0; i < 60; ++i) {
          const auto n = static_cast<std::size_t>(random.below(draw++, 4));
          const ImageRegion region{random_range(random, draw, 40), random_range(random, draw, 40)};
          if (i % 3 == 0) cached[n].expect(bands(40, 40, 8));
          const ImageRegion damaged{{16, 24}, images[3]->info().columns_of(1)};
          const auto meet = [](Range a, Range b) { return a.begin < b.end && b.begin < a.end; };
          const bool fails = n == 3 && meet(region.rows, damaged.rows) && meet(region.columns, damaged.columns);
          try {
            if (read(cached[n], region) != images[n]->pixels(region) || fails) ++wrong;
          } catch (const DataError&) {
            if (!fails) ++wrong;
          }
          if (i % 20 == 0) CachedImage(images[1], cache).expect(bands(40, 40, 8));   // and gone
        }
      });
  }
  CHECK(wrong == 0);
  CHECK(cache->report().most_bytes <= cache->options().bytes);
  for (const std::size_t i : {0U, 2U}) CHECK(images[i]->most_busy == 1);
}
TEST_CASE("a format that is decoded in order has one decoder at work, from top to bottom") {
  ImageInfo info = draw_image(200, 10, 1, 10, 10)->info();
  info.in_order = true;
  const auto image = std::make_shared<DrawnImage>(info);
  std::vector<Index> rows;
  image->before = [&](Index row, Index) { rows.push_back(row); };   // one at a time, so no lock
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 500, .threads = 2});
  {
    const CachedImage cached(image, cache);
    cached.expect(bands(200, 10, 10));
    for (const ImageRegion& band : bands(200, 10, 10)) REQUIRE(read(cached, band) == image->pixels(band));
  }
  CHECK(image->most_busy == 1);
  CHECK(image->decoders == 1);
  CHECK(std::is_sorted(rows.begin(), rows.end()));
  CHECK(rows.size() == 20);
}
TEST_CASE("however many threads decode a format ahead that is decoded in order, none passes another") {
  ImageInfo info = draw_image(400, 10, 1, 10, 10)->info();
  info.in_order = true;
  for (int repetition = 0; repetition < 3; ++repetition) {
    const auto image = std::make_shared<DrawnImage>(info);
    std::vector<Index> rows;
    image->before = [&](Index row, Index) {   // one at a time, so no lock
      rows.push_back(row);
      std::this_thread::sleep_for(std::chrono::microseconds(200));   // meanwhile others come and wait
    };
    const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 4000, .threads = 8});
    {
      const CachedImage cached(image, cache);
      cached.expect(bands(400, 10, 10));
      REQUIRE(comes([&] { return cache->report().decoded_ahead == 40; }));
    }
    INFO("repetition " << repetition);
    REQUIRE(std::is_sorted(rows.begin(), rows.end()));
  }
}
TEST_CASE("a tile that cannot be decoded is an error for who reads it, each time, and for nobody else") {
  const auto image = draw_image(40, 40, 1, 10, 10);
  std::atomic<bool> broken = true;
  image->before = [&](Index row, Index column) {
    if (broken && row == 1 && column == 2) throw DataError("lrcnn: tile 1,2 is damaged; a; b");
  };
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 1600, .threads = 1});
  const CachedImage cached(image, cache);
  cached.expect(bands(40, 40, 10));
  CHECK(comes([&] { return cache->report().decoded_ahead == 15; }));
  for (int i = 0; i < 2; ++i) CHECK(error_of([&] { read(cached, {{0, 40}, {0, 40}}); }) == "lrcnn: tile 1,2 is damaged; a; b");
  CHECK(read(cached, {{0, 40}, {0, 20}}) == image->pixels({{0, 40}, {0, 20}}));
  broken = false;
  CHECK(read(cached, {{0, 40}, {0, 40}}) == image->pixels({{0, 40}, {0, 40}}));
}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)   // which end the program where an allocation is this large
TEST_CASE("a tile for which there is no memory is an error for who reads it, and does not stop the threads that decode ahead") {
  constexpr Index more_than_addresses = Index{1} << 50;
  const auto huge = draw_image(1, more_than_addresses, 1, 1, more_than_addresses), small = draw_image(20, 10, 1, 10, 10);
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 2 * more_than_addresses, .threads = 1});
  const CachedImage absent(huge, cache), cached(small, cache);
  absent.expect(std::vector{whole(huge->info())});
  cached.expect(bands(20, 10, 10));
  CHECK(comes([&] { return cache->report().decoded_ahead == 2; }));
  CHECK_THROWS_AS(absent.for_each_tile({{0, 1}, {0, 1}}, [](const ImageRegion&, const std::byte*, Index) {}), std::bad_alloc);
  CHECK(read(cached, {{0, 20}, {0, 10}}) == small->pixels({{0, 20}, {0, 10}}));
}
#endif
TEST_CASE("errors of caches name the image, the numbers and the remedy") {
  const auto image = draw_image(40, 30, 1, 10, 10);
  CHECK(error_of([] { TileCache({.bytes = 0}); }) ==
        "lrcnn: tile cache of 0 bytes with 1 threads; it has room for a tile and 0 to 256 threads; choose other numbers");
  CHECK(error_of([] { TileCache({.bytes = 1, .threads = -1}); }) ==
        "lrcnn: tile cache of 1 bytes with -1 threads; it has room for a tile and 0 to 256 threads; choose other numbers");
  CHECK(error_of([&] { CachedImage(image, std::make_shared<TileCache>(TileCacheOptions{.bytes = 99})); }) ==
        "lrcnn: image 'drawn.img' has tiles of 100 bytes (drawn), and the tile cache holds 99; a cache has room for at least one tile; give the "
        "cache more bytes, or store the image in smaller tiles");
  const CachedImage cached(image, std::make_shared<TileCache>());
  const std::string outside =
      "lrcnn: rows 0 to 40, columns 0 to 29 of image 'drawn.img' are asked for; it has 40 rows and 30 columns; ask for pixels within the image";
  CHECK(error_of([&] { read(cached, {{0, 41}, {0, 30}}); }) == outside);
  CHECK(error_of([&] { cached.expect(std::vector<ImageRegion>{{{0, 41}, {0, 30}}}); }) == outside);
  std::vector<std::byte> few(5);
  CHECK(error_of([&] {
          cached.read({{0, 2}, {0, 3}}, few);
        }) == "lrcnn: rows 0 to 1, columns 0 to 2 of image 'drawn.img' are read into 5 bytes; they take 6; give memory of that size");
}
