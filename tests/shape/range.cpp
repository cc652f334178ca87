// Half-open ranges as sets, rounding divisions and names (core/types.hpp), on all small values.
#include <lrcnn/core/types.hpp>
#include <doctest/doctest.h>
#include <cmath>
#include <set>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
std::set<Index> members(Range r) {
  std::set<Index> s;
  for (Index i = r.begin; i < r.end; ++i) s.insert(i);
  return s;
}
std::vector<Range> small_ranges() {
  std::vector<Range> all;
  for (Index a = -3; a <= 4; ++a)
    for (Index b = -3; b <= 4; ++b) all.push_back({a, b});   // reversed ones too: they are empty
  return all;
}
}   // namespace
TEST_CASE("divisions round toward minus and plus infinity") {
  for (Index b = 1; b <= 9; ++b)
    for (Index a = -40; a <= 40; ++a) {
      CHECK(floor_div(a, b) == static_cast<Index>(std::floor(static_cast<double>(a) / static_cast<double>(b))));
      CHECK(ceil_div(a, b) == static_cast<Index>(std::ceil(static_cast<double>(a) / static_cast<double>(b))));
      CHECK(round_up(a, b) % b == 0);
      CHECK(round_up(a, b) >= a);
      CHECK(round_up(a, b) < a + b);
    }
  CHECK(floor_div(-1, 4) == -1);
  CHECK(ceil_div(-1, 4) == 0);
}
TEST_CASE("size, emptiness, containment, intersection and hull are those of sets") {
  Index broken = 0;
  for (const Range a : small_ranges()) {
    const auto set_a = members(a);
    broken += a.size() != static_cast<Index>(set_a.size());
    broken += a.empty() != set_a.empty();
    for (const Range b : small_ranges()) {
      const auto set_b = members(b);
      std::set<Index> both, all = set_a;
      for (const Index i : set_a)
        if (set_b.count(i)) both.insert(i);
      all.insert(set_b.begin(), set_b.end());
      broken += members(intersect(a, b)) != both;
      broken += members(intersect(a, b)) != members(intersect(b, a));
      broken += intersect(a, b).end < intersect(a, b).begin;
      broken += a.contains(b) != std::includes(set_a.begin(), set_a.end(), set_b.begin(), set_b.end());
      const Range h = hull(a, b);
      broken += all.empty() ? !h.empty() : h != Range{*all.begin(), *all.rbegin() + 1};
      broken += hull(a, b) != hull(b, a) && !(a.empty() && b.empty());
    }
  }
  CHECK(broken == 0);
  CHECK(hull({3, 3}, {5, 7}) == Range{5, 7});   // an empty operand adds nothing, wherever it lies
}
TEST_CASE("a name is a short string that compares, and is cut at its capacity") {
  CHECK(Name("conv1").view() == "conv1");
  CHECK(Name("conv1") == Name(std::string_view("conv1")));
  CHECK(Name("conv1") != Name("conv2"));
  CHECK(Name().empty());
  const std::string text(60, 'x');
  CHECK(Name(text).view() == text.substr(0, Name::capacity));
  CHECK(Name(text) == Name(text.substr(0, Name::capacity)));
}
static_assert(1_KiB == 1024 && 3_MiB == 3 * 1024 * 1024 && 2_GiB == Index{1} << 31);
