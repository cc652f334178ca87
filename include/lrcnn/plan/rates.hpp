#pragma once
// How fast a backend is, roughly: what seconds of steps are estimated from where nobody has measured them (plan/costs.hpp).
#include <lrcnn/core/types.hpp>
namespace lrcnn {
/// Constants that stand beside each backend, with their source, so that an estimate is the same on every machine.
struct Rates {
  double step = 1e-6;      ///< seconds that any step takes
  double products = 1e9;   ///< multiply-adds a second of direct convolutions and matrix products
  double winograd = 1e9;   ///< the same, counted by the formula, of convolutions that may use Winograd's algorithm
  double bytes = 5e9;      ///< bytes a second that steps read and write
  Index lanes = 1;         ///< channels that are computed together: their number is rounded up to a multiple
  friend constexpr bool operator==(const Rates&, const Rates&) = default;
};
/// The rates of a backend's type, or these defaults.
template <class B>
constexpr Rates rates_of() {
  if constexpr (requires { B::rates; }) return B::rates;
  else return {};
}
}   // namespace lrcnn
