// Philox against the known answers of its authors' library (Random123, file kat_vectors, philox4x32 10), and the laws
// of Random and permutation.
#include <lrcnn/core/rng.hpp>
#include <doctest/doctest.h>
#include <algorithm>
#include <set>
using namespace lrcnn;
namespace {
using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;
static_assert(philox({0, 0, 0, 0}, {0, 0}) == Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
}   // namespace
TEST_CASE("philox gives the known answers") {
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) == Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}
TEST_CASE("a random value depends on seed, stream and index alone, and on each of their bits") {
  const Random random(7, 3);
  const auto later = random.bits(5);
  CHECK(random.bits(4) != later);
  CHECK(random.bits(5) == later);
  CHECK(Random(7, 3).bits(5) == later);
  std::set<std::uint64_t> values{later};
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    values.insert(Random(7 ^ one, 3).bits(5));
    values.insert(Random(7, 3 ^ one).bits(5));
    values.insert(random.bits(5 ^ one));
  }
  CHECK(values.size() == 1 + 3 * 64);
}
TEST_CASE("uniform lies in [0, 1) and below lies below its bound, both evenly") {
  const Random random(1);
  const int count = 100000;
  double sum = 0, squares = 0;
  std::array<int, 7> hits{};
  for (int i = 0; i < count; ++i) {
    const double u = random.uniform(static_cast<std::uint64_t>(i));
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    sum += u;
    squares += u * u;
    const auto k = random.below(static_cast<std::uint64_t>(i), hits.size());
    REQUIRE(k < hits.size());
    ++hits[k];
  }
  CHECK(sum / count == doctest::Approx(0.5).epsilon(0.01));
  CHECK(squares / count == doctest::Approx(1.0 / 3).epsilon(0.01));
  for (const int h : hits) CHECK(h == doctest::Approx(count / 7.0).epsilon(0.05));
}
TEST_CASE("normal has the moments of a standard normal distribution") {
  const Random random(2, 9);
  const int count = 200000;
  double sum = 0, squares = 0, fourth = 0;
  int beyond_two = 0;
  for (int i = 0; i < count; ++i) {
    const double x = random.normal(static_cast<std::uint64_t>(i));
    REQUIRE(std::isfinite(x));
    sum += x, squares += x * x, fourth += x * x * x * x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  CHECK(std::abs(sum / count) < 0.01);
  CHECK(squares / count == doctest::Approx(1).epsilon(0.015));
  CHECK(fourth / count == doctest::Approx(3).epsilon(0.04));
  CHECK(beyond_two / double(count) == doctest::Approx(0.0455).epsilon(0.05));
}
TEST_CASE("a permutation holds every number once and is a function of its generator") {
  for (const std::int64_t count : {0, 1, 2, 3, 10, 1000}) {
    auto order = permutation(count, Random(5, 1));
    CHECK(order == permutation(count, Random(5, 1)));
    if (count >= 10) {
      CHECK(order != permutation(count, Random(5, 2)));
      CHECK(order != permutation(count, Random(6, 1)));
    }
    std::sort(order.begin(), order.end());
    CHECK(static_cast<std::int64_t>(order.size()) == count);
    for (std::int64_t i = 0; i < count; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
  }
}
TEST_CASE("all permutations of four are equally likely") {
  std::array<int, 256> hits{};
  const int count = 24000;
  for (int seed = 0; seed < count; ++seed) {
    const auto p = permutation(4, Random(static_cast<std::uint64_t>(seed)));
    ++hits[static_cast<std::size_t>(p[0] * 64 + p[1] * 16 + p[2] * 4 + p[3])];
  }
  int kinds = 0;
  for (const int h : hits)
    if (h > 0) {
      ++kinds;
      CHECK(h == doctest::Approx(1000).epsilon(0.15));
    }
  CHECK(kinds == 24);
}
