#pragma once
// Two-byte floating point: how tensors are stored for which four bytes would be too many.
//
// float16 is IEEE 754's binary16 (11 bits of precision, up to 65504), bfloat16 the upper half of a float (8 bits, a
// float's range); in memory they are what CUDA calls __half and __nv_bfloat16. Both are for storage: an element turns
// into a float by itself and exactly, sums and products are a float's, and only an explicit conversion rounds, once,
// to nearest even. What must not lose small changes, such as parameters and gradients, is kept in master_t.
#include <lrcnn/core/host_device.hpp>
#include <cstdint>
#include <limits>
#include <type_traits>
namespace lrcnn {
namespace detail {
/// Bits of the nearest value with so many bits of fraction; of two equally near ones, of the even one.
/// Post:    beyond the largest value infinity, not-a-number 0x7fff, as the device's own conversions have it
template <int fraction_bits>
LRCNN_HOST_DEVICE constexpr std::uint16_t two_byte_bits(double value) {
  constexpr int bias = (1 << (14 - fraction_bits)) - 1, lowest = 1 - bias;   // lowest: the least normal exponent
  constexpr std::uint64_t infinite = 0x7fffu >> fraction_bits << fraction_bits, fraction = (std::uint64_t{1} << 52) - 1;
  const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, value), magnitude = bits & ~(std::uint64_t{1} << 63);
  const std::uint64_t sign = bits >> 63 << 15;
  if (magnitude > std::uint64_t{0x7ff} << 52) return 0x7fff;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent > bias) return static_cast<std::uint16_t>(sign | infinite);
  const int drop = 52 - fraction_bits + (exponent < lowest ? lowest - exponent : 0);   // bits that do not fit
  if (drop > 53) return static_cast<std::uint16_t>(sign);
  const std::uint64_t significand = (magnitude & fraction) | (fraction + 1), half = std::uint64_t{1} << (drop - 1);
  const std::uint64_t kept = significand >> drop, rest = significand & (2 * half - 1);
  // The leading bit of a normal value adds one to the exponent; so does a carry from rounding, up to infinity.
  const std::uint64_t below = exponent < lowest ? 0 : static_cast<std::uint64_t>(exponent - lowest) << fraction_bits;
  return static_cast<std::uint16_t>(sign | (below + kept + (rest > half || (rest == half && kept % 2 != 0) ? 1 : 0)));
}
LRCNN_HOST_DEVICE constexpr std::uint16_t float16_bits(float value) {
#ifdef __CUDA_ARCH__
  if (!__builtin_is_constant_evaluated()) {
    std::uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  }
#endif
  return two_byte_bits<10>(static_cast<double>(value));
}
LRCNN_HOST_DEVICE constexpr float float16_value(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
  if (!__builtin_is_constant_evaluated()) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
#endif
  const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x400u) return __builtin_bit_cast(float, sign | ((magnitude << 13) + (112u << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}
LRCNN_HOST_DEVICE constexpr std::uint16_t bfloat16_bits(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (!__builtin_is_constant_evaluated()) {
    std::uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  }
#endif
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const bool is_number = (bits & 0x7fffffffu) <= 0x7f800000u;
  return static_cast<std::uint16_t>(is_number ? (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16 : 0x7fffu);
}
}   // namespace detail
/// IEEE 754 binary16: 1 bit of sign, 5 of exponent, 10 of fraction.
class float16 {
 public:
  float16() = default;
  /// The nearest value, rounded once from any arithmetic type that a double holds.
  template <class A>
  requires std::is_arithmetic_v<A> LRCNN_HOST_DEVICE constexpr explicit float16(A value) : bits_(round(value)) {}
  /// The value, exactly.
  LRCNN_HOST_DEVICE constexpr operator float() const { return detail::float16_value(bits_); }
  LRCNN_HOST_DEVICE constexpr std::uint16_t bits() const { return bits_; }
  LRCNN_HOST_DEVICE static constexpr float16 from_bits(std::uint16_t bits) {
    float16 value{};
    value.bits_ = bits;
    return value;
  }

 private:
  template <class A>
  LRCNN_HOST_DEVICE static constexpr std::uint16_t round(A value) {
    if constexpr (std::is_same_v<A, float>) return detail::float16_bits(value);
    else return detail::two_byte_bits<10>(static_cast<double>(value));
  }
  std::uint16_t bits_;
};
/// The upper half of a float: 1 bit of sign, 8 of exponent, 7 of fraction.
class bfloat16 {
 public:
  bfloat16() = default;
  /// The nearest value, rounded once from any arithmetic type that a double holds.
  template <class A>
  requires std::is_arithmetic_v<A> LRCNN_HOST_DEVICE constexpr explicit bfloat16(A value) : bits_(round(value)) {}
  /// The value, exactly.
  LRCNN_HOST_DEVICE constexpr operator float() const { return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits_) << 16); }
  LRCNN_HOST_DEVICE constexpr std::uint16_t bits() const { return bits_; }
  LRCNN_HOST_DEVICE static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 value{};
    value.bits_ = bits;
    return value;
  }

 private:
  template <class A>
  LRCNN_HOST_DEVICE static constexpr std::uint16_t round(A value) {
    if constexpr (std::is_same_v<A, float>) return detail::bfloat16_bits(value);
    else return detail::two_byte_bits<7>(static_cast<double>(value));
  }
  std::uint16_t bits_;
};
static_assert(sizeof(float16) == 2 && std::is_trivially_copyable_v<float16> && std::is_trivial_v<float16>);
static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16> && std::is_trivial_v<bfloat16>);
/// What elements T are computed in, and the type of the parameters, gradients and optimizer states that go with them.
template <class T>
using master_t = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
namespace detail {
/// What std::numeric_limits says of a two-byte type with so many bits of fraction.
template <class T, int fraction_bits>
struct TwoByteLimits {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, is_iec559 = true, is_bounded = true;
  static constexpr int radix = 2, digits = fraction_bits + 1, max_exponent = 1 << (14 - fraction_bits);
  static constexpr int min_exponent = 3 - max_exponent;
  static constexpr std::uint16_t infinite = 0x7fffu >> fraction_bits << fraction_bits;
  static constexpr T infinity() { return T::from_bits(infinite); }
  static constexpr T quiet_NaN() { return T::from_bits(0x7fff); }
  static constexpr T max() { return T::from_bits(infinite - 1); }
  static constexpr T lowest() { return T::from_bits(0x8000u | (infinite - 1)); }
  static constexpr T min() { return T::from_bits(1u << fraction_bits); }
  static constexpr T denorm_min() { return T::from_bits(1); }
  static constexpr T epsilon() { return T(1.0 / (1 << fraction_bits)); }
};
}   // namespace detail
}   // namespace lrcnn
template <>
struct std::numeric_limits<lrcnn::float16> : lrcnn::detail::TwoByteLimits<lrcnn::float16, 10> {};
template <>
struct std::numeric_limits<lrcnn::bfloat16> : lrcnn::detail::TwoByteLimits<lrcnn::bfloat16, 7> {};
