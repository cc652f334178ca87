#pragma once
// The rules of joins, layers with two inputs. Branches are put together in network/graph.hpp.
#include <lrcnn/layer/rules.hpp>
namespace lrcnn {
namespace detail {
constexpr bool extents_differ(const Shape& a, const Shape& b) { return differ(a.n, b.n) || differ(a.h, b.h) || differ(a.w, b.w); }
constexpr Fault fault_of_sum(const Layer&, const Shape& in, const Shape& other) {
  if (differ(in.c, other.c)) return Fault::sum_channels;
  return extents_differ(in, other) ? Fault::sum_extents : Fault::none;
}
constexpr Fault fault_of_concat(const Layer&, const Shape& in, const Shape& other) {
  return extents_differ(in, other) ? Fault::concat_extents : Fault::none;
}
constexpr Fault fault_of_scale(const Layer&, const Shape& in, const Shape& other) {
  const bool fits = !differ(in.n, other.n) && !differ(in.c, other.c) && !differ(other.h, 1) && !differ(other.w, 1);
  return fits ? Fault::none : Fault::scale_factors;
}
constexpr Shape shape_of_sum(const Layer&, const Shape& in, const Shape& other) {
  return {either(in.n, other.n), either(in.c, other.c), either(in.h, other.h), either(in.w, other.w)};
}
constexpr Shape shape_of_concat(const Layer&, const Shape& in, const Shape& other) {
  return {either(in.n, other.n), known(in.c) && known(other.c) ? in.c + other.c : unknown, either(in.h, other.h), either(in.w, other.w)};
}
constexpr Shape shape_of_scale(const Layer&, const Shape& in, const Shape& other) {
  return {either(in.n, other.n), either(in.c, other.c), in.h, in.w};
}
constexpr BackwardReads reads_both_inputs(const Layer&) { return {.input = true, .other = true}; }
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::sum>{.name = "sum",
                                                  .overwrites_input = true,
                                                  .overwrites_gradient = true,
                                                  .takes_activation = true,
                                                  .output = detail::shape_of_sum,
                                                  .fault = detail::fault_of_sum};
template <>
inline constexpr LayerRules kind_rules<Kind::concat>{.name = "concat", .output = detail::shape_of_concat, .fault = detail::fault_of_concat};
template <>
inline constexpr LayerRules kind_rules<Kind::scale>{
    .name = "scale", .backward = detail::reads_both_inputs, .sums_channels = true, .output = detail::shape_of_scale, .fault = detail::fault_of_scale};
}   // namespace lrcnn
