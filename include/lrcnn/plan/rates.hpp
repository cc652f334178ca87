#pragma once
// How fast a backend is, roughly: what seconds of steps are estimated from where nobody has measured them (plan/costs.hpp).
#include <lrcnn/core/types.hpp>
#include <algorithm>
namespace lrcnn {
/// Constants that stand beside each backend, with their source, so that an estimate is the same on every machine.
struct Rates {
  double step = 1e-6;          ///< seconds that any step takes
  double products = 1e9;       ///< multiply-adds a second of direct convolutions and matrix products
  double winograd = 1e9;       ///< the same, counted by the formula, of convolutions that may use Winograd's algorithm
  double bytes = 5e9;          ///< bytes a second that steps read and write
  double offloaded = 2e9;      ///< bytes a second that go to the larger memory or come from there
  Index least_workspace = 0;   ///< below which the backend may have no way to carry out a step; policies that are chosen have at least so much
  Index lanes = 1;             ///< channels that are computed together: their number is rounded up to a multiple
  /// Scratch with which a convolution from so many channels to so many works by Winograd's algorithm, on so many tiles at a time. nullptr: the
  /// backend does not ask for any.
  Index (*winograd_bytes)(Index from, Index to, Index tiles) = nullptr;
  /// Whether a convolution that may choose works by Winograd's algorithm on a result of so many rows and columns. nullptr: it always does.
  bool (*winograd_pays)(Index rows, Index columns) = nullptr;
  /// Whether a convolution that may use Winograd's algorithm has the scratch for it. Its data gradient goes the other way.
  constexpr bool has_scratch(Index from, Index to, Index workspace) const { return workspace >= scratch(from, to, 24); }
  /// Scratch with which it is about as fast as with any more, as long as its filters fit into the caches.
  constexpr Index good_scratch(Index from, Index to) const { return scratch(from, to, 96); }
  /// Scratch with which it is about as fast as with any more, whatever its filters take.
  constexpr Index ample_scratch(Index from, Index to) const { return scratch(from, to, from * to < 256 * 256 ? 96 : 288); }
  constexpr Index scratch(Index from, Index to, Index tiles) const {
    return winograd_bytes == nullptr ? 0 : std::max(winograd_bytes(from, to, tiles), winograd_bytes(to, from, tiles));
  }
  friend constexpr bool operator==(const Rates&, const Rates&) = default;
};
/// The rates of a backend's type, or these defaults.
template <class B>
constexpr Rates rates_of() {
  if constexpr (requires { B::rates; }) return B::rates;
  else return {};
}
}   // namespace lrcnn
