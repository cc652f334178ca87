#pragma once
// What can be wrong with a layer and the shape it is given, found in one place.
//
// fault_of() answers for constants and for run-time values alike. At compile time Sequential and Fixed turn a fault
// into a static_assert (network/witness.hpp); at run time make_table() throws a ShapeError with the same words.
#include <lrcnn/core/error.hpp>
#include <lrcnn/layer/custom.hpp>
#include <lrcnn/layer/layer.hpp>
#include <lrcnn/shape/rows.hpp>
#include <limits>
#include <string>
namespace lrcnn {
enum class Fault : std::uint8_t {
  none,
  empty_input,
  bad_window,
  bad_channels,
  groups_in,
  groups_out,
  window_too_tall,
  pad_too_large,
  window_too_large,
  needs_rows,
  needs_vector,
};
/// An extent that is not known yet; checks that need it are left for later.
inline constexpr Index unknown = std::numeric_limits<Index>::min();
struct FaultText {
  std::string_view what, rule, change;
};
constexpr FaultText fault_text(Fault fault) {
  switch (fault) {
    case Fault::none: return {"no fault", "", ""};
    case Fault::empty_input:
      return {"an extent of the input is zero or negative", "images, channels, rows and columns must be at least 1",
              "give the input's true extents"};
    case Fault::bad_window:
      return {"a window has a kernel, stride or dilation below 1, or negative padding",
              "kernel, stride and dilation are at least 1, padding at least 0", "correct the layer's Window"};
    case Fault::bad_channels:
      return {"a layer has no output channels", "channels and groups are at least 1", "give a positive number"};
    case Fault::groups_in:
      return {"input channels are not divisible by groups", "each group reads an equal share of the input channels",
              "change groups, or the channels of the layer before"};
    case Fault::groups_out:
      return {"output channels are not divisible by groups", "each group writes an equal share of the output channels",
              "change groups or channels of this layer"};
    case Fault::window_too_tall:
      return {"the window does not fit into the padded input",
              "extent + padding must be at least (kernel - 1) * dilation + 1", "use a larger input, a smaller kernel, "
              "more padding, or fewer strides before this layer"};
    case Fault::pad_too_large:
      return {"a pooling window could lie wholly in padding",
              "padding of a pool is smaller than its (kernel - 1) * dilation + 1, and every window has a place on the input",
              "use less padding, a larger kernel or less dilation"};
    case Fault::window_too_large:
      return {"a max pool's window has more than 256 places", "the place of a window's maximum is kept in one byte",
              "use a smaller kernel"};
    case Fault::needs_rows:
      return {"a layer that needs rows comes after flatten or linear",
              "convolution and pooling need a map with rows and columns", "put it before Flatten, or remove Flatten"};
    case Fault::needs_vector:
      return {"linear is given a map", "linear reads a feature vector [N,F,1,1]",
              "put Flatten or GlobalAvgPool before Linear"};
  }
  return {"?", "?", "?"};
}
namespace detail {
constexpr bool known(Index extent) { return extent != unknown; }
/// Whether some window of a pool has no place on an input of this extent.
constexpr bool misses_input(const Axis& axis, Index extent) {
  if (std::max(axis.pad_begin, axis.pad_end) >= axis.extent()) return true;
  if (!known(extent) || axis.dilation <= extent) return false;   // no gap between places is wider than the input
  for (Index out = 0; out < out_extent(axis, extent); ++out)
    if (taps_inside(axis, out, extent).empty()) return true;
  return false;
}
constexpr Index windowed(const Axis& axis, Index extent) { return known(extent) ? out_extent(axis, extent) : unknown; }
}  // namespace detail
constexpr bool is_windowed(const Layer& layer) {
  return layer.kind == Kind::conv || layer.kind == Kind::max_pool || layer.kind == Kind::avg_pool ||
         (layer.kind == Kind::custom && !layer.custom->pointwise);
}
/// True if what follows `layer` is a feature vector, which has no rows any more.
constexpr bool ends_rows(const Layer& layer) { return layer.kind == Kind::flatten || layer.kind == Kind::linear; }
/// The first rule that `layer` breaks on an input of shape `in`. Extents may be `unknown`.
/// `flat`: a layer before it ends the rows.
constexpr Fault fault_of(const Layer& layer, const Shape& in, bool flat = false) {
  using detail::known;
  for (const Index extent : {in.n, in.c, in.h, in.w})
    if (known(extent) && extent < 1) return Fault::empty_input;
  if (layer.kind == Kind::linear) {
    if (layer.channels < 1) return Fault::bad_channels;
    return (known(in.h) && in.h != 1) || (known(in.w) && in.w != 1) ? Fault::needs_vector : Fault::none;
  }
  if (flat && (is_windowed(layer) || layer.kind == Kind::global_avg_pool)) return Fault::needs_rows;
  if (!is_windowed(layer)) return Fault::none;
  const Window& w = layer.window;
  for (const Axis& axis : {row_axis(w), column_axis(w)})
    if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1 || axis.pad_begin < 0 || axis.pad_end < 0)
      return Fault::bad_window;
  if (layer.kind == Kind::conv) {
    if (layer.channels < 1 || layer.groups < 1) return Fault::bad_channels;
    if (known(in.c) && in.c % layer.groups != 0) return Fault::groups_in;
    if (layer.channels % layer.groups != 0) return Fault::groups_out;
  }
  if ((layer.kind == Kind::max_pool || layer.kind == Kind::avg_pool) &&
      (detail::misses_input(row_axis(w), in.h) || detail::misses_input(column_axis(w), in.w)))
    return Fault::pad_too_large;
  if (layer.kind == Kind::max_pool && w.kernel.h * w.kernel.w > 256) return Fault::window_too_large;
  for (const Index extent : {detail::windowed(row_axis(w), in.h), detail::windowed(column_axis(w), in.w)})
    if (known(extent) && extent < 1) return Fault::window_too_tall;
  return Fault::none;
}
/// Shape of the layer's output. Pre: fault_of(layer, in) == Fault::none. Unknown extents stay unknown.
constexpr Shape output_shape(const Layer& layer, const Shape& in) {
  Shape out = in;
  switch (layer.kind) {
    case Kind::activation: return out;
    case Kind::global_avg_pool: out.h = out.w = 1; return out;
    case Kind::flatten:
      out.c = detail::known(in.c) && detail::known(in.h) && detail::known(in.w) ? in.c * in.h * in.w : unknown;
      out.h = out.w = 1;
      return out;
    case Kind::linear: out.c = layer.channels; return out;
    default: break;
  }
  if (layer.channels > 0) out.c = layer.channels;
  if (is_windowed(layer)) {
    out.h = detail::windowed(row_axis(layer.window), in.h);
    out.w = detail::windowed(column_axis(layer.window), in.w);
  }
  return out;
}
/// "conv 64, kernel 3x3 stride 1x1 ..., groups 1"
inline std::string describe(const Layer& layer) {
  std::string text(layer.kind == Kind::custom && layer.custom ? layer.custom->name : kind_name(layer.kind));
  if (layer.kind == Kind::activation) text = function_name(layer.activation.function);
  if (layer.channels > 0) text += " to " + std::to_string(layer.channels) + " channels";
  if (is_windowed(layer)) text += ", " + to_string(layer.window);
  if (layer.kind == Kind::conv && layer.groups != 1) text += ", groups " + std::to_string(layer.groups);
  return text;
}
[[noreturn]] inline void throw_fault(Fault fault, const Layer& layer, Index position, const Shape& in) {
  const FaultText text = fault_text(fault);
  std::string who = "layer " + std::to_string(position + 1);
  if (!layer.name.empty()) who += " '" + std::string(layer.name.view()) + "'";
  throw ShapeError(error_text(who + " (" + describe(layer) + ") on input " + to_string(in) + ": " +
                                  std::string(text.what),
                              text.rule, text.change));
}
}  // namespace lrcnn
