// data/tile_cache.hpp: a thread that decodes ahead and finds no memory, not even to note that it found none, leaves the tile to its reader.
// In a program of its own, because it replaces operator new.
#include "support/drawn_image.hpp"
#include <lrcnn/data/cached_image.hpp>
#include <cstdlib>
#include <new>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
thread_local bool decodes_ahead = false;
std::atomic<bool> no_memory = false;   // for threads that decode ahead
std::atomic<int> refused = 0;          // how often they have asked nevertheless
}   // namespace
// Not inline: else g++ sees free() beside a new expression and warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (decodes_ahead && no_memory) {
    ++refused;
    throw std::bad_alloc();
  }
  if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
TEST_CASE("threads that decode ahead go on after a time without any memory, and readers get their tiles meanwhile") {
  const auto comes = [](auto f) {
    for (int i = 0; i < 2000 && !f(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return f();
  };
  const auto image = draw_image(80, 16, 1, 16, 16);
  const auto reader = std::this_thread::get_id();
  const DataError damaged("lrcnn: a tile is damaged; a; b");
  bool first = true;
  image->before = [&](Index, Index) {
    if (std::this_thread::get_id() == reader) return;
    decodes_ahead = true;   // one thread, so no lock
    if (std::exchange(first, false)) {
      no_memory = true;
      throw damaged;   // a copy, without memory of operator new
    }
  };
  std::vector<ImageRegion> bands;
  for (Index y = 0; y < 80; y += 16) bands.push_back({{y, y + 16}, {0, 16}});
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 80 * 16, .threads = 1});
  const CachedImage cached(image, cache);
  const auto read = [&](const ImageRegion& band) {
    std::vector<std::byte> bytes(256);
    cached.read(band, bytes);
    return bytes == image->pixels(band);
  };
  cached.expect(bands);
  REQUIRE(comes([&] { return refused >= 2; }));   // to keep the decoder, and to note which tile it was
  const int before = refused;
  CHECK(read(bands[0]));                                   // wakes the thread
  REQUIRE(comes([&] { return refused >= before + 2; }));   // a place for a tile, and to note which
  CHECK(cache->report().decoded_ahead == 0);
  no_memory = false;
  CHECK(read(bands[1]));
  CHECK(comes([&] { return cache->report().decoded_ahead == 3; }));
  for (const ImageRegion& band : bands) CHECK(read(band));
  CHECK(image->decoded == 5);
}
