#pragma once
// Gradients of 16-bit floating point vanish where they are small. So the loss is multiplied by a scale, and with it every
// gradient on the way down; the update divides by it again. A scale that is too large makes a gradient overflow: then the
// step is left out, whole, and the scale halved. After a long run of good steps it is doubled.
#include <lrcnn/core/types.hpp>
#include <algorithm>
namespace lrcnn {
/// Source: Micikevicius et al., "Mixed precision training", ICLR 2018, and the defaults that frameworks have settled on.
struct LossScale {
  static constexpr double least = 1, most = 16777216;   // 2^24
  static constexpr Index patience = 2000;               ///< good steps after which the scale is doubled
  double scale = 65536;
  Index good_steps = 0;   ///< since the scale was last changed
  /// Notes what a step has come to. `finite`: none of its gradients overflowed.
  constexpr void note(bool finite) {
    if (!finite) {
      scale = std::max(least, scale / 2);
      good_steps = 0;
    } else if (++good_steps == patience) {
      scale = std::min(most, scale * 2);
      good_steps = 0;
    }
  }
  friend constexpr bool operator==(const LossScale&, const LossScale&) = default;
};
}   // namespace lrcnn
