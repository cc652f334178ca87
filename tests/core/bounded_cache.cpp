// What a bounded cache keeps and what it drops.
#include <lrcnn/core/bounded_cache.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
TEST_CASE("values in use stay, and of the others those wanted last") {
  BoundedCache<int, std::shared_ptr<int>> cache(4);
  const auto used = cache.add(-1, std::make_shared<int>(-1));
  CHECK(cache.find(7) == nullptr);
  for (int key = 0; key < 100; ++key) {
    CHECK(*cache.add(key, std::make_shared<int>(key)) == key);
    CHECK(cache.size() <= 9);
    const auto* early = cache.find(0);   // wanted again and again
    REQUIRE(early != nullptr);
    CHECK(**early == 0);
  }
  REQUIRE(cache.find(-1) != nullptr);
  CHECK(*cache.find(-1) == used);
  CHECK(cache.find(99) != nullptr);
  CHECK(cache.find(50) == nullptr);
}
TEST_CASE("any number of values in use is kept") {
  BoundedCache<int, std::shared_ptr<int>> cache(2);
  std::vector<std::shared_ptr<int>> used;
  for (int key = 0; key < 50; ++key) used.push_back(cache.add(key, std::make_shared<int>(key)));
  CHECK(cache.size() == 50);
  used.clear();
  for (int key = 50; key < 60; ++key) cache.add(key, std::make_shared<int>(key));
  CHECK(cache.size() <= 4);
}
