#pragma once
// What can be wrong with a layer and the shape it is given, found in one place by the rules of its kind (layer/rules.hpp).
//
// fault_of() answers for constants and for run-time values alike. At compile time Sequential and Fixed turn a fault
// into a static_assert (network/witness.hpp); at run time make_table() throws a ShapeError with the same words.
#include <lrcnn/layer/fault.hpp>
#include <lrcnn/layer/layers.hpp>
#include <string>
namespace lrcnn {
namespace detail {
constexpr bool has_too_large_number(const Layer& y) {
  const Window& w = y.window;
  for (const Index number : {y.channels, y.groups, w.kernel.h, w.kernel.w, w.stride.h, w.stride.w, w.dilation.h, w.dilation.w, w.pad.top,
                             w.pad.bottom, w.pad.left, w.pad.right, y.upsampling.factor.h, y.upsampling.factor.w, y.pooled.h, y.pooled.w})
    if (number >= extent_limit || number <= -extent_limit) return true;
  return false;
}
/// Whether the rules of a custom layer say more than its functions can do.
constexpr bool asks_too_much(const Layer& layer) {
  const LayerRules& rules = rules_of(layer);
  const BackwardReads reads = rules.backward(layer);
  return rules.rows == RowMap::all || rules.reduces || rules.ends_rows || rules.draws || reads.other || reads.indices || reads.sign;
}
}   // namespace detail
/// True if what follows `layer` is a feature vector, which has no rows any more.
constexpr bool ends_rows(const Layer& layer) { return rules_of(layer).ends_rows; }
/// Whether what follows a layer has no rows any more, given that for its inputs: a scale's has those of its map.
constexpr bool is_flat(const Layer& layer, bool in, bool other) { return in || (other && layer.kind != Kind::scale) || ends_rows(layer); }
/// Shape of the layer's output. Pre: fault_of(layer, in, flat, other) == Fault::none. Unknown extents stay unknown.
constexpr Shape output_shape(const Layer& layer, const Shape& in, const Shape& other = unknown_shape) {
  const LayerRules& rules = rules_of(layer);
  return rules.rows == RowMap::window ? detail::windowed_shape(layer, in) : rules.output(layer, in, other);
}
/// The first rule that `layer` breaks on an input of shape `in`, joins on that and `other`. Extents may be `unknown`.
/// `flat`: a layer that they come from ends the rows.
constexpr Fault fault_of(const Layer& layer, const Shape& in, bool flat = false, const Shape& other = unknown_shape) {
  for (const Index extent : {in.n, in.c, in.h, in.w})
    if (detail::known(extent) && extent < 1) return Fault::empty_input;
  if (detail::too_many(in) || detail::has_too_large_number(layer)) return Fault::too_large;
  if (layer.kind == Kind::custom && detail::asks_too_much(layer)) return Fault::bad_rules;
  const LayerRules& rules = rules_of(layer);
  if (flat && rules.rows != RowMap::same && !rules.ends_rows) return Fault::needs_rows;
  const bool windowed = rules.rows == RowMap::window;
  if (const Fault fault = windowed ? detail::fault_of_window(layer.window) : Fault::none; fault != Fault::none) return fault;
  if (const Fault fault = rules.fault(layer, in, other); fault != Fault::none) return fault;
  if (const Fault fault = windowed ? detail::fault_of_fit(layer.window, in) : Fault::none; fault != Fault::none) return fault;
  return detail::too_many(output_shape(layer, in, other)) ? Fault::too_large : Fault::none;
}
/// "conv to 64 channels, kernel 3x3 stride 1x1 ..., groups 2", "group_norm, groups 8", "upsample by 2x2, nearest"
inline std::string describe(const Layer& layer) {
  const LayerRules& rules = rules_of(layer);
  std::string text(variant_name(layer));
  if (layer.channels > 0) text += " to " + std::to_string(layer.channels) + " channels";
  if (rules.rows == RowMap::window) text += ", " + to_string(layer.window);
  return text + rules.details(layer);
}
}   // namespace lrcnn
