// The two-byte types: every pattern of bits, rounding against a search in double, and where ranges end.
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/rng.hpp>
#include <lrcnn/core/types.hpp>
#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
using namespace lrcnn;
namespace {
/// What a pattern means, from the definition of the format.
template <class T>
double meaning(std::uint16_t bits) {
  constexpr int fraction_bits = std::numeric_limits<T>::digits - 1, bias = (1 << (14 - fraction_bits)) - 1;
  const int exponent = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 2 * bias + 1) return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}
/// Bits of the nearest value by comparing distances with the neighbours; of equally near ones the even pattern. The
/// values of patterns 0, 1, 2, ... increase, and infinity stands where the next finite value would be.
template <class T>
std::uint16_t nearest(double value) {
  static const std::vector<double> values = [] {
    std::vector<double> v;
    for (std::uint16_t bits = 0; std::isfinite(meaning<T>(bits)); ++bits) v.push_back(meaning<T>(bits));
    v.push_back(2 * v.back() - v[v.size() - 2]);
    return v;
  }();
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double a = std::abs(value);
  if (a >= values.back()) return static_cast<std::uint16_t>(sign | (values.size() - 1));
  const auto above = static_cast<std::size_t>(std::upper_bound(values.begin(), values.end(), a) - values.begin());
  const double down = a - values[above - 1], up = values[above] - a;   // exact: neighbours are near enough
  const bool lower = down < up || (down == up && above % 2 == 1);
  return static_cast<std::uint16_t>(sign | (lower ? above - 1 : above));
}
template <class T>
void check_rounding(double value, bool& good) {
  good = good && T(value).bits() == nearest<T>(value);
  const auto narrow = static_cast<float>(value);
  good = good && T(narrow).bits() == nearest<T>(static_cast<double>(narrow));
}
}   // namespace
TEST_CASE_TEMPLATE("all 65536 patterns mean what the format says, and come back from float and double", T, float16, bfloat16) {
  bool good = true;
  for (unsigned i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const T value = T::from_bits(bits);
    const double wanted = meaning<T>(bits);
    std::uint16_t memory = 0;
    std::memcpy(&memory, &value, 2);
    good = good && memory == bits && value.bits() == bits;
    if (std::isnan(wanted)) {
      good = good && std::isnan(static_cast<float>(value)) && T(static_cast<float>(value)).bits() == 0x7fff;
    } else {
      good = good && static_cast<double>(value) == wanted;
      good = good && std::signbit(static_cast<float>(value)) == std::signbit(wanted);
      good = good && T(static_cast<float>(value)).bits() == bits && T(wanted).bits() == bits;
    }
  }
  CHECK(good);
}
TEST_CASE_TEMPLATE("rounding is to nearest, ties to even, once from double: at every value and around every tie", T, float16, bfloat16) {
  bool good = true;
  for (std::uint16_t bits = 0; std::isfinite(meaning<T>(bits)); ++bits) {
    const double low = meaning<T>(bits), high = meaning<T>(static_cast<std::uint16_t>(bits + 1));
    const double middle = std::isfinite(high) ? low + (high - low) / 2 : low + (low - meaning<T>(static_cast<std::uint16_t>(bits - 1))) / 2;
    for (const double at : {low, middle})
      for (const double sign : {1.0, -1.0}) {
        check_rounding<T>(sign * at, good);
        check_rounding<T>(sign * std::nextafter(at, INFINITY), good);
        check_rounding<T>(sign * std::nextafter(at, 0.0), good);
        check_rounding<T>(sign * std::nextafter(static_cast<float>(at), INFINITY), good);
        check_rounding<T>(sign * std::nextafter(static_cast<float>(at), 0.0f), good);
      }
  }
  CHECK(good);
}
TEST_CASE_TEMPLATE("rounding of arbitrary floats and doubles", T, float16, bfloat16) {
  const Random random(11);
  MESSAGE("seed 11");
  bool good = true;
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const int exponent = static_cast<int>(random.below(2 * i, 340)) - 170;
    check_rounding<T>((random.uniform(2 * i + 1) - 0.5) * std::ldexp(1.0, exponent), good);
    const auto pattern = static_cast<std::uint32_t>(random.below(3 * i, 0x100000000));
    float value = 0;
    std::memcpy(&value, &pattern, 4);
    if (!std::isnan(value)) good = good && T(value).bits() == nearest<T>(static_cast<double>(value));
    else good = good && T(value).bits() == 0x7fff;
  }
  CHECK(good);
}
TEST_CASE_TEMPLATE("special values, integers and limits", T, float16, bfloat16) {
  using Limits = std::numeric_limits<T>;
  CHECK(T(0).bits() == 0);
  CHECK(T(-0.0).bits() == 0x8000);
  CHECK(T(-0.0f).bits() == 0x8000);
  CHECK(T(1e-320).bits() == 0);
  CHECK(T(-1e-60).bits() == 0x8000);
  CHECK(T(1e300).bits() == Limits::infinity().bits());
  CHECK(static_cast<float>(T(-INFINITY)) == -INFINITY);
  CHECK(T(std::nan("")).bits() == 0x7fff);
  CHECK(T(3).bits() == T(3.0).bits());
  CHECK(T(Index{1} << 40).bits() == T(std::ldexp(1.0, 40)).bits());
  CHECK(T{}.bits() == 0);
  CHECK(static_cast<double>(Limits::max()) == meaning<T>(static_cast<std::uint16_t>(Limits::infinity().bits() - 1)));
  CHECK(static_cast<float>(Limits::lowest()) == -static_cast<float>(Limits::max()));
  CHECK(static_cast<double>(Limits::min()) == std::ldexp(1.0, Limits::min_exponent - 1));
  CHECK(static_cast<double>(Limits::denorm_min()) == meaning<T>(1));
  CHECK(T(1 + static_cast<double>(Limits::epsilon())).bits() == T(1).bits() + 1);
  CHECK(static_cast<double>(Limits::max()) < std::ldexp(1.0, Limits::max_exponent));
  CHECK(std::isnan(static_cast<float>(Limits::quiet_NaN())));
}
TEST_CASE("both work in constant expressions, and compute as float") {
  static_assert(float16(1.0f).bits() == 0x3c00 && bfloat16(1.0f).bits() == 0x3f80);
  static_assert(float16(65519.99).bits() == 0x7bff && float16(65520.0).bits() == 0x7c00);
  static_assert(static_cast<float>(float16::from_bits(1)) == 0x1p-24f && float16(0x1p-25).bits() == 0);
  static_assert(std::is_same_v<decltype(float16(1) + float16(1)), float>);
  static_assert(std::is_same_v<decltype(bfloat16(1) * 2.0f), float>);
  static_assert(!std::is_convertible_v<float, float16> && std::is_convertible_v<float16, float>);
  static_assert(std::is_same_v<master_t<float16>, float> && std::is_same_v<master_t<bfloat16>, float>);
  static_assert(std::is_same_v<master_t<float>, float> && std::is_same_v<master_t<double>, double>);
  CHECK(float16(0.5) < float16(1));
}
