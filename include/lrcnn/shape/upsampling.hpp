#pragma once
// How a map is upsampled, and which input positions an output position of an upsampled map reads, along one axis, stated once.
//
// A map of extent H is made u H wide. Output position p lies at s of the input:
//     nearest           s = floor(p / u)
//     bilinear          s = max(0, (p + 1/2) / u - 1/2)
//     bilinear_corners  s = p (H - 1) / (u H - 1)
// and reads floor(s), and the position behind it where s is between the two; beyond the last one, the last one alone. All of it is
// worked out in integers, so that planner, checker and loops agree. As PyTorch's interpolate with a whole scale_factor does it, with
// align_corners false or true.
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/shape/window.hpp>
#include <cstdint>
namespace lrcnn {
/// How a map is made larger: u x v pixels for each.
struct Upsampling {
  enum class Rule : std::uint8_t {
    nearest,            ///< y(p, q) = x(p / u, q / v)
    bilinear,           ///< between pixel centres: y(p) = x((p + 1/2) / u - 1/2), borders repeated
    bilinear_corners,   ///< corner pixels stay where they are: y(p) = x(p (H - 1) / (uH - 1))
  };
  Rule rule = Rule::nearest;
  Pair factor = 2;
  friend constexpr bool operator==(const Upsampling&, const Upsampling&) = default;
};
/// y = (1 - weight) * x[first] + weight * x[second]; where there is no second, weight is 0 and second is first.
struct Interpolation {
  Index first = 0;
  Index second = 0;
  double weight = 0;
  friend constexpr bool operator==(const Interpolation&, const Interpolation&) = default;
};
/// Factor along the height (`rows`) or along the width.
LRCNN_HOST_DEVICE constexpr Index upsampling_factor(const Upsampling& u, bool rows) { return rows ? u.factor.h : u.factor.w; }
/// What output position `out` is made of. Pre: 0 <= out < factor * extent.
LRCNN_HOST_DEVICE constexpr Interpolation upsampled_at(const Upsampling& u, bool rows, Index out, Index extent) {
  const Index factor = upsampling_factor(u, rows);
  if (u.rule == Upsampling::Rule::nearest || extent == 1) return {out / factor, out / factor, 0};
  const bool corners = u.rule == Upsampling::Rule::bilinear_corners;
  const Index centre = 2 * out + 1 - factor, above = corners ? out * (extent - 1) : centre < 0 ? 0 : centre;
  const Index below = corners ? factor * extent - 1 : 2 * factor;
  const Index first = above / below, rest = above % below;
  if (first >= extent - 1) return {extent - 1, extent - 1, 0};
  if (rest == 0) return {first, first, 0};
  return {first, first + 1, static_cast<double>(rest) / static_cast<double>(below)};
}
/// Input positions that output position `out` reads: one, or two.
constexpr Range upsampled_from(const Upsampling& u, bool rows, Index out, Index extent) {
  const Interpolation at = upsampled_at(u, rows, out, extent);
  return {at.first, at.second + 1};
}
/// Likewise of some output positions.
constexpr Range upsampled_from(const Upsampling& u, bool rows, Range out, Index extent) {
  if (out.empty()) return {0, 0};
  return {upsampled_from(u, rows, out.begin, extent).begin, upsampled_from(u, rows, out.end - 1, extent).end};
}
/// Output positions that read input position `in`.
LRCNN_HOST_DEVICE constexpr Range upsampled_to(const Upsampling& u, bool rows, Index in, Index extent) {
  const Index factor = upsampling_factor(u, rows), all = factor * extent;
  if (u.rule == Upsampling::Rule::nearest || extent == 1) return {in * factor, (in + 1) * factor};
  const bool first = in == 0, last = in == extent - 1;
  if (u.rule == Upsampling::Rule::bilinear_corners) {
    const Index above = extent - 1, below = all - 1;   // p reads `in` where in - 1 < p * above / below < in + 1
    return {first ? 0 : floor_div((in - 1) * below, above) + 1, last ? all : ceil_div((in + 1) * below, above)};
  }
  const Index begin = floor_div(2 * factor * (in - 1) + factor - 1, 2) + 1, end = ceil_div(2 * factor * (in + 1) + factor - 1, 2);
  return {first ? 0 : begin, last ? all : end};
}
}   // namespace lrcnn
