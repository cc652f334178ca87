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
constexpr bool asks_too_much(const LayerRules& rules, const BackwardReads& reads) {
  if (rules.rows == RowMap::all || rules.reduces || rules.ends_rows || rules.draws || rules.uses_workspace) return true;
  return reads.other || reads.indices || reads.sign || (reads.for_parameters && !reads.input);
}
/// Whether a custom layer's rows are those of its rule, as far as extents are known.
constexpr bool fits_row_rule(const Layer& layer, const Shape& in) {
  const LayerRules& rules = rules_of(layer);
  if (rules.rows == RowMap::same && layer.window != Window{1}) return false;
  if (!known(in.h) || !known(in.w)) return true;
  const Shape own = rules.output(layer, in, in), plain = same_extents(layer, in, in);
  if (rules.rows == RowMap::same) return own.h == in.h;
  if (rules.rows == RowMap::window) return own == plain || own == windowed_shape(layer, in);   // another one would be ignored
  const Axis axis = rules.axis(layer, in);
  if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1 || axis.up < 1 || own.h < 1) return false;
  return window_begin(axis, own.h - 1) < in.h + std::max<Index>(0, axis.pad_end);
}
/// What is wrong with the shapes that a custom layer's rules give. Pre: nothing else is.
constexpr Fault fault_of_custom_shape(const Layer& layer, const Shape& in) {
  const LayerRules& rules = rules_of(layer);
  if (!fits_row_rule(layer, in)) return Fault::bad_row_rule;
  if (!rules.overwrites_input && !rules.overwrites_gradient) return Fault::none;
  const bool keeps_shape = !known(in.c) || !known(in.h) || !known(in.w) || rules.output(layer, in, in) == in;
  return rules.rows == RowMap::same && keeps_shape ? Fault::none : Fault::not_in_place;
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
namespace detail {
/// Whether a layer that cannot choose its channels says that it gives others than it does, as far as these are known.
constexpr bool gives_other_channels(const Layer& layer, const Shape& in, const Shape& other) {
  const Kind kind = layer.kind;
  if (layer.channels == 0 || kind == Kind::conv || kind == Kind::conv_transpose || kind == Kind::linear || kind == Kind::custom) return false;
  Layer plain = layer;
  plain.channels = 0;
  return layer.channels < 0 || differ(layer.channels, output_shape(plain, in, other).c);
}
}   // namespace detail
/// The first rule that `layer` breaks on an input of shape `in`, joins on that and `other`. Extents may be `unknown`.
/// `flat`: a layer that they come from ends the rows.
constexpr Fault fault_of(const Layer& layer, const Shape& in, bool flat = false, const Shape& other = unknown_shape) {
  for (const Index extent : {in.n, in.c, in.h, in.w})
    if (detail::known(extent) && extent < 1) return Fault::empty_input;
  if (detail::too_many(in) || detail::has_too_large_number(layer)) return Fault::too_large;
  const LayerRules& rules = rules_of(layer);
  const bool custom = layer.kind == Kind::custom;
  if (custom && detail::asks_too_much(rules, rules.backward(layer))) return Fault::bad_rules;
  if (flat && rules.rows != RowMap::same && !rules.ends_rows) return Fault::needs_rows;
  const bool windowed = rules.rows == RowMap::window;
  if (const Fault fault = windowed ? detail::fault_of_window(layer.window) : Fault::none; fault != Fault::none) return fault;
  if (const Fault fault = rules.fault(layer, in, other); fault != Fault::none) return fault;
  if (const Fault fault = windowed ? detail::fault_of_fit(layer.window, in) : Fault::none; fault != Fault::none) return fault;
  if (const Fault fault = custom ? detail::fault_of_custom_shape(layer, in) : Fault::none; fault != Fault::none) return fault;
  if (detail::gives_other_channels(layer, in, other)) return Fault::other_channels;
  return detail::too_many(output_shape(layer, in, other)) ? Fault::too_large : Fault::none;
}
/// "conv to 64 channels, kernel 3x3 stride 1x1 ..., groups 2", "group_norm, groups 8", "upsample by 2x2, nearest"
inline std::string describe(const Layer& layer) {
  const LayerRules& rules = rules_of(layer);
  std::string text(variant_name(layer));
  if (layer.channels > 0) text += " to " + std::to_string(layer.channels) + " channels";
  const bool own_window = layer.kind == Kind::custom && layer.window != Window{1};   // whatever its axis makes of it
  if (rules.rows == RowMap::window || own_window) text += ", " + to_string(layer.window);
  return text + rules.details(layer);
}
}   // namespace lrcnn
