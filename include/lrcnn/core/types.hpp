#pragma once
// The words everything else is said in: sizes, half-open ranges, short names.
#include <lrcnn/core/host_device.hpp>
#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
namespace lrcnn {
/// Every extent, count and byte size. Signed, so that differences need no care.
using Index = std::int64_t;
/// Element `i` of a container or array, whose own operator takes an unsigned number. Pre: 0 <= i < its size.
/// A few functions that constant expressions evaluate a thousand times convert the number themselves, since a call counts as a step.
template <class Values>
constexpr decltype(auto) item(Values&& values, Index i) {
  return values[static_cast<std::size_t>(i)];
}
/// A half-open range [begin, end), absolute in the whole feature map (rows) or batch (images).
/// Every empty range counts as the same set, wherever it lies.
struct Range {
  Index begin = 0;
  Index end = 0;
  constexpr Index size() const { return end > begin ? end - begin : 0; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(Range r) const { return r.empty() || (begin <= r.begin && r.end <= end); }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};
/// Contains every range.
inline constexpr Range everywhere{std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max()};
/// Rows in both; empty if there are none.
constexpr Range intersect(Range a, Range b) {
  const Range r{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return r.empty() ? Range{r.begin, r.begin} : r;
}
/// The smallest range that holds both; an empty operand adds nothing.
constexpr Range hull(Range a, Range b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}
/// Quotient rounded toward minus infinity. Pre: b > 0.
LRCNN_HOST_DEVICE constexpr Index floor_div(Index a, Index b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
/// Quotient rounded toward plus infinity. Pre: b > 0.
LRCNN_HOST_DEVICE constexpr Index ceil_div(Index a, Index b) { return -floor_div(-a, b); }
/// Smallest multiple of b that is at least a. Pre: b > 0.
constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }
/// A short string that can be a template argument and a member of a constant.
/// Names longer than the capacity are cut.
struct Name {
  static constexpr std::size_t capacity = 47;
  std::array<char, capacity + 1> text{};
  constexpr Name() = default;
  constexpr Name(const std::array<char, capacity + 1>& characters) : text(characters) {}   // how nvcc spells one out
  constexpr Name(std::string_view s) {
    for (std::size_t i = 0; i < std::min(s.size(), capacity); ++i) text[i] = s[i];
  }
  constexpr Name(const char* s) : Name(std::string_view(s)) {}
  constexpr std::string_view view() const {
    const char *const begin = text.data(), *end = begin;
    while (end != begin + capacity && *end != '\0') ++end;
    return {begin, static_cast<std::size_t>(end - begin)};
  }
  constexpr bool empty() const { return text[0] == '\0'; }
  friend constexpr bool operator==(const Name&, const Name&) = default;
};
inline namespace literals {
constexpr Index operator""_KiB(unsigned long long n) { return static_cast<Index>(n) << 10; }
constexpr Index operator""_MiB(unsigned long long n) { return static_cast<Index>(n) << 20; }
constexpr Index operator""_GiB(unsigned long long n) { return static_cast<Index>(n) << 30; }
}   // namespace literals
}   // namespace lrcnn
