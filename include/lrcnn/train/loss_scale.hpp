#pragma once
// Gradients of 16-bit floating point vanish where they are small. So the loss is multiplied by a scale, and with it every
// gradient on the way down; the update divides by it again. A scale that is too large makes a gradient overflow: then the
// step is left out, whole, and the scale halved. After a long run of good steps it is doubled.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
namespace lrcnn {
/// Source: Micikevicius et al., "Mixed precision training", ICLR 2018, and the defaults that frameworks have settled on.
struct LossScale {
  static constexpr double least = 1, most = 16777216;   // 2^24
  static constexpr Index patience = 2000;               ///< good steps after which the scale is doubled
  double scale = 65536;
  Index good_steps = 0;   ///< since the scale was last changed
  /// Notes what a step has come to. `finite`: none of its gradients overflowed. A scale that a program has set outside of [least, most] is halved
  /// or doubled towards them only.
  constexpr void note(bool finite) {
    if (!finite) {
      scale = std::min(scale, std::max(least, scale / 2));
      good_steps = 0;
    } else if (++good_steps >= patience) {
      scale = std::max(scale, std::min(most, scale * 2));
      good_steps = 0;
    }
  }
  constexpr bool is_valid() const { return scale > 0 && scale <= std::numeric_limits<double>::max() && good_steps >= 0; }
  friend constexpr bool operator==(const LossScale&, const LossScale&) = default;
};
/// Errors:  Error if the scale is not finite and above 0, or there are fewer than 0 good steps
inline void check(const LossScale& scale) {
  if (!scale.is_valid())
    throw Error(error_text("a loss scale is " + number_text(scale.scale) + " after " + std::to_string(scale.good_steps) + " good steps",
                           "gradients are divided by it, so it is finite and above 0; good steps are 0 or more", "use 65536, say"));
}
/// "65536 12", as training files have it.
inline std::string to_string(const LossScale& scale) { return number_text(scale.scale) + " " + std::to_string(scale.good_steps); }
/// The scale of such a text; nothing if it is none.
inline std::optional<LossScale> parse_loss_scale(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return {};
  const auto scale = parse_number<double>(text.substr(0, space));
  const auto steps = parse_number<Index>(text.substr(space + 1));
  if (!scale || !steps || !LossScale{*scale, *steps}.is_valid()) return {};
  return LossScale{*scale, *steps};
}
}   // namespace lrcnn
