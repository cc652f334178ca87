#pragma once
// How tensors are stored and multiplied, and which type of a backend does it so.
#include <lrcnn/core/language.hpp>
#include <concepts>
#include <cstdint>
#include <string_view>
namespace lrcnn {
/// How tensors are stored, and which arithmetic may be done on them. Sums are in 32-bit floating point or better always;
/// parameters, their gradients and the optimizer's state are kept in 32 bits even where tensors have 16.
enum class Precision : std::uint8_t {
  of_backend,   ///< whichever the backend has by itself
  fp32,         ///< 32 bits stored and multiplied
  tf32,         ///< 32 bits stored; tensor cores may multiply with 10 bits of mantissa
  fp16,         ///< 16 bits stored: 11 of precision, values up to 65504
  bf16,         ///< 16 bits stored: 8 of precision, fp32's range
};
/// As the part of a policy is called: "Fp32".
constexpr std::string_view precision_name(Precision p) {
  switch (p) {
    case Precision::of_backend: return "of the backend";
    case Precision::fp32: return "Fp32";
    case Precision::tf32: return "Tf32";
    case Precision::fp16: return "Fp16";
    case Precision::bf16: return "Bf16";
  }
  return "?";
}
/// The precision of a backend's type: what it says, or 32 bits.
template <class B>
constexpr Precision precision_of() {
  if constexpr (requires { B::precision; }) return B::precision;
  else return Precision::fp32;
}
namespace detail {
template <class B, Precision p>
struct InPrecision {
  static_assert(p == Precision::of_backend || p == precision_of<B>(),
                "lrcnn: a policy's precision is not one of the backend's; this backend does not come in it; leave the part out, or "
                "choose a backend that has it");
  using type = B;
};
template <class B, Precision p>
  requires(p != Precision::of_backend)
&&requires { typename B::template with<p>; }
struct InPrecision<B, p> {
  using type = typename B::template with<p>;
};
}   // namespace detail
/// The backend that works in a precision: B itself, or its type for that precision.
template <class B, Precision p>
using InPrecision = typename detail::InPrecision<B, p>::type;
}   // namespace lrcnn
