// An epoch allocates when it begins and never again, in no thread; reading rows never does.
// In a program of its own, because it replaces operator new.
#include <lrcnn/data/loader.hpp>
#include <lrcnn/data/shapes.hpp>
#include <doctest/doctest.h>
#include <atomic>
#include <cstdlib>
#include <new>
namespace {
std::atomic<long> allocations{0};
}
// noinline: g++ takes an inlined malloc or free for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
using namespace lrcnn;
TEST_CASE("loader: no allocation between the first batch and the end of an epoch") {
  const Dataset data = make_shapes({.count = 103, .channels = 3, .h = 12, .w = 12});
  std::vector<float> rows(static_cast<std::size_t>(stored_elements(4, 3, 12, 12, 16)));
  for (const Index threads : {0, 1, 3}) {
    const Loader<float> loader(data, {.batch = 4, .augmentation = {.flip = true, .pad = 2}, .prefetch = 3, .threads = threads});
    auto epoch = loader.epoch(1);
    REQUIRE(epoch.next() != nullptr);
    // The threads' own beginnings are over once as many batches were made as there are slots and more.
    for (int i = 0; i < 8; ++i) REQUIRE(epoch.next() != nullptr);
    const long before = allocations;
    Index images = 0;
    while (const auto* batch = epoch.next()) {
      images += batch->size();
      batch->read(0, dense_view(rows.data(), batch->size(), 3, {0, 12}, 12, 16));
    }
    const long after = allocations;
    CHECK(images == 103 - 36);
    CHECK(after == before);
  }
}
