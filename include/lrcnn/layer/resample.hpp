#pragma once
// Making maps larger, as a descriptor.
#include <lrcnn/layer/rules.hpp>
namespace lrcnn {
/// Each pixel becomes factor.h x factor.w; `Upsample<2>` doubles both, `Upsample<Pair{2, 1}>` the rows.
/// Shapes:  x [N,C,H,W] -> y [N,C,factor.h*H,factor.w*W]
/// Errors:  factors must be at least 1
template <Pair factor = Pair{2}, Upsampling::Rule rule = Upsampling::Rule::nearest>
struct Upsample {
  static constexpr Layer layer() { return {.kind = Kind::upsample, .upsampling = {.rule = rule, .factor = factor}}; }
};
/// "nearest", "bilinear" or "bilinear_corners"
constexpr std::string_view rule_name(Upsampling::Rule rule) {
  if (rule == Upsampling::Rule::nearest) return "nearest";
  return rule == Upsampling::Rule::bilinear ? "bilinear" : "bilinear_corners";
}
namespace detail {
constexpr Axis upsampled_rows(const Layer& layer, const Shape& in) {
  const Index up = layer.upsampling.factor.h;
  using enum Upsampling::Rule;
  if (layer.upsampling.rule == nearest) return nearest_axis(up);
  return layer.upsampling.rule == bilinear ? linear_axis(up) : corner_axis(up, in.h);
}
constexpr Shape upsampled_shape(const Layer& layer, const Shape& in, const Shape&) {
  const Pair& factor = layer.upsampling.factor;
  return {in.n, in.c, known(in.h) ? in.h * factor.h : unknown, known(in.w) ? in.w * factor.w : unknown};
}
constexpr Fault fault_of_upsample(const Layer& layer, const Shape&, const Shape&) {
  return layer.upsampling.factor.h < 1 || layer.upsampling.factor.w < 1 ? Fault::bad_factor : Fault::none;
}
inline std::string factor_text(const Layer& layer) {
  return " by " + pair_text(layer.upsampling.factor) + ", " + std::string(rule_name(layer.upsampling.rule));
}
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::upsample>{.name = "upsample",
                                                       .details = detail::factor_text,
                                                       .rows = RowMap::own,
                                                       .axis = detail::upsampled_rows,
                                                       .output = detail::upsampled_shape,
                                                       .fault = detail::fault_of_upsample};
}   // namespace lrcnn
