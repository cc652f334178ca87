#pragma once
// What can be wrong with a layer and the shape it is given, found in one place.
//
// fault_of() answers for constants and for run-time values alike. At compile time Sequential and Fixed turn a fault
// into a static_assert (network/witness.hpp); at run time make_table() throws a ShapeError with the same words.
#include <lrcnn/core/error.hpp>
#include <lrcnn/layer/custom.hpp>
#include <lrcnn/layer/layer.hpp>
#include <lrcnn/shape/rows.hpp>
#include <initializer_list>
#include <limits>
#include <string>
namespace lrcnn {
enum class Fault : std::uint8_t {
  none,
  empty_input,
  too_large,
  bad_window,
  bad_channels,
  groups_in,
  groups_out,
  window_too_tall,
  pad_too_large,
  window_too_large,
  needs_rows,
  needs_vector,
  norm_groups,
  bad_norm,
  bad_factor,
  ceil_window,
  nothing_left,
  bad_reflection,
  bad_pooled,
  bad_probability,
  bad_reference,
  needs_other,
  same_inputs,
  sum_channels,
  sum_extents,
  concat_extents,
  scale_factors,
  unused,
  one_value,    ///< this one and the next: in training alone, fault_of() does not look for them
  map_given,
};
/// An extent that is not known yet; checks that need it are left for later.
inline constexpr Index unknown = std::numeric_limits<Index>::min();
inline constexpr Shape unknown_shape{unknown, unknown, unknown, unknown};
struct FaultText {
  std::string_view what, rule, change;
};
constexpr FaultText fault_text(Fault fault) {
  switch (fault) {
    case Fault::none: return {"no fault", "", ""};
    case Fault::empty_input:
      return {"an extent of the input is zero or negative", "images, channels, rows and columns must be at least 1",
              "give the input's true extents"};
    case Fault::too_large:
      return {"a tensor, a filter or a number of a layer is too large",
              "extents and numbers of a layer are below 2^31, and a tensor or a filter has at most 2^44 elements",
              "use a smaller input, fewer channels or smaller windows"};
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
    case Fault::norm_groups:
      return {"channels are not divisible by the groups of a norm", "each group has an equal share of the channels",
              "change the norm's groups, or the channels of the layer before"};
    case Fault::bad_norm:
      return {"a norm has an epsilon that is not above 0, a momentum outside 0 to 1, or negative groups",
              "epsilon keeps the root's argument above 0, and momentum is a share", "correct the layer's Norm"};
    case Fault::bad_factor:
      return {"an upsampling factor is below 1", "each pixel becomes as many rows and columns as the factors say",
              "give factors of at least 1"};
    case Fault::ceil_window:
      return {"the extent of a convolution is rounded up", "only the windows of pools may end beyond the padding",
              "leave ceil out of the layer's Window, or give it padding"};
    case Fault::nothing_left:
      return {"nothing is left of the map", "cropping, or the padding of a transposed convolution, leaves at least a row and a column",
              "crop less, use less padding, or a larger input"};
    case Fault::bad_reflection:
      return {"reflected padding is negative, or not smaller than the map",
              "a border shows the rows or columns next to the map's first or last, in reverse", "use less padding, Crop, or a larger input"};
    case Fault::bad_pooled:
      return {"an adaptive pool has no rows or no columns", "the extents of its output are at least 1", "give positive extents"};
    case Fault::bad_probability:
      return {"a dropout's probability is below 0, or not below 1", "what is kept is divided by 1 - probability",
              "give a probability from 0 up to, and without, 1"};
    case Fault::bad_reference:
      return {"a layer reads what does not come before it, or two inputs without being a join",
              "input is at least 1 place back, and other is 0 except for sum, concat and scale", "correct the layer's input or other"};
    case Fault::needs_other:
      return {"a sum, concat or scale has one input only", "a join reads two tensors, input and other",
              "say in other how many places before it the second one lies"};
    case Fault::same_inputs:
      return {"a sum, concat or scale reads one tensor twice", "the branches of a join end in different tensors",
              "put a layer into one of the branches"};
    case Fault::sum_channels:
      return {"the branches of a sum have different numbers of channels", "a sum adds channel to channel",
              "give the last layer of one branch the other's channels, or the shortcut a convolution"};
    case Fault::sum_extents:
      return {"the branches of a sum have different rows, columns or images", "a sum adds pixel to pixel",
              "change strides or padding in one branch, or give the shortcut the body's strides"};
    case Fault::concat_extents:
      return {"the branches of a concat have different rows, columns or images",
              "a concat puts channels of the same pixels one behind the other",
              "change strides, padding or upsampling in one branch, or the input's extents so that pools divide them"};
    case Fault::scale_factors:
      return {"the factors of a scale are no vector of the map's channels",
              "a map [N,C,H,W] is multiplied by a vector [N,C,1,1]",
              "let the second branch begin with GlobalAvgPool, and end in as many channels as the map has"};
    case Fault::unused:
      return {"a layer's output is not used", "every layer but the last is read by one behind it",
              "remove the layer, or let another one read it"};
    case Fault::one_value:
      return {"a norm has one value in each channel or group", "the variance of one value is zero, and so is every gradient",
              "use a larger batch or map, or a frozen norm"};
    case Fault::map_given:
      return {"a loss over images is given a map", "it reads a score for each class of an image, [N,K,1,1]",
              "train with a loss over pixels, such as PixelCrossEntropy, or end the network in GlobalAvgPool, or Flatten, and Linear"};
  }
  return {"?", "?", "?"};
}
/// "nearest", "bilinear" or "bilinear_corners"
constexpr std::string_view rule_name(Upsampling::Rule rule) {
  if (rule == Upsampling::Rule::nearest) return "nearest";
  return rule == Upsampling::Rule::bilinear ? "bilinear" : "bilinear_corners";
}
/// Extents, and numbers that a layer has, are below this; then no product of two overflows, and vendors' libraries can count them.
inline constexpr Index extent_limit = Index{1} << 31;
/// A tensor or a filter has no more elements; then no sum of their bytes over a network overflows.
inline constexpr Index element_limit = Index{1} << 44;
namespace detail {
constexpr bool known(Index extent) { return extent != unknown; }
/// Whether one of some extents from 1 on, or their product, is beyond these limits. Unknown ones count as 1.
constexpr bool too_many(std::initializer_list<Index> extents) {
  Index product = 1;
  for (const Index extent : extents) {
    if (!known(extent) || extent < 1) continue;
    if (extent >= extent_limit || product > element_limit / extent) return true;
    product *= extent;
  }
  return false;
}
constexpr bool too_many(const Shape& s) { return too_many({s.n, s.c, s.h, s.w}); }
constexpr bool has_too_large_number(const Layer& y) {
  const Window& w = y.window;
  for (const Index number : {y.channels, y.groups, w.kernel.h, w.kernel.w, w.stride.h, w.stride.w, w.dilation.h, w.dilation.w, w.pad.top, w.pad.bottom,
                             w.pad.left, w.pad.right, y.upsampling.factor.h, y.upsampling.factor.w, y.pooled.h, y.pooled.w})
    if (number >= extent_limit || number <= -extent_limit) return true;
  return false;
}
/// Whether some window of a pool has no place on an input of this extent.
constexpr bool misses_input(const Axis& axis, Index extent) {
  if (std::max(axis.pad_begin, axis.pad_end) >= axis.extent()) return true;
  if (!known(extent) || axis.dilation <= extent) return false;   // no gap between places is wider than the input
  for (Index out = 0, end = out_extent(axis, extent); out < end;) {
    const Range taps = taps_inside(axis, out, extent);
    if (taps.empty()) return true;
    out = (extent - 1 + axis.pad_begin - taps.begin * axis.dilation) / axis.stride + 1;   // the windows between have that place, too
  }
  return false;
}
constexpr Index windowed(const Axis& axis, Index extent) { return known(extent) ? out_extent(axis, extent) : unknown; }
}  // namespace detail
/// Whether a layer's rows go by out_extent() of its window.
constexpr bool is_windowed(const Layer& layer) {
  return layer.kind == Kind::conv || layer.kind == Kind::max_pool || layer.kind == Kind::avg_pool || layer.kind == Kind::pad ||
         (layer.kind == Kind::custom && !layer.custom->pointwise);
}
/// True if what follows `layer` is a feature vector, which has no rows any more.
constexpr bool ends_rows(const Layer& layer) { return layer.kind == Kind::flatten || layer.kind == Kind::linear; }
/// Whether what follows a layer has no rows any more, given that for its inputs: a scale's has those of its map.
constexpr bool is_flat(const Layer& layer, bool in, bool other) {
  return in || (other && layer.kind != Kind::scale) || ends_rows(layer);
}
namespace detail {
constexpr bool differ(Index a, Index b) { return known(a) && known(b) && a != b; }
constexpr Index either(Index a, Index b) { return known(a) ? a : b; }
constexpr Fault fault_of_norm(const Norm& norm, Index channels) {
  if (!(norm.epsilon > 0) || !(norm.momentum >= 0 && norm.momentum <= 1) || norm.groups < 0) return Fault::bad_norm;
  const bool grouped = norm.over == Norm::Over::group && norm.groups > 0;
  return grouped && known(channels) && channels % norm.groups != 0 ? Fault::norm_groups : Fault::none;
}
constexpr bool reflects_too_far(const Axis& axis, Index extent) {
  return axis.pad_begin < 0 || axis.pad_end < 0 || (known(extent) && std::max(axis.pad_begin, axis.pad_end) >= extent);
}
constexpr Fault fault_of_pad(const Layer& layer, const Shape& in) {
  const Axis rows = row_axis(layer.window), columns = column_axis(layer.window);
  if (layer.window.kernel != Pair(1) || layer.window.stride != Pair(1) || layer.window.ceil) return Fault::bad_window;
  if (layer.reflect) return reflects_too_far(rows, in.h) || reflects_too_far(columns, in.w) ? Fault::bad_reflection : Fault::none;
  const auto empty = [](Index extent) { return known(extent) && extent < 1; };
  return empty(windowed(rows, in.h)) || empty(windowed(columns, in.w)) ? Fault::nothing_left : Fault::none;
}
constexpr Fault fault_of_groups(const Layer& layer, Index channels) {
  if (layer.groups < 1) return Fault::bad_channels;
  return known(channels) && channels % layer.groups != 0 ? Fault::groups_in : Fault::none;
}
constexpr Index transposed(const Axis& axis, Index extent) { return known(extent) ? transposed_extent(axis, extent) : unknown; }
constexpr Fault fault_of_join(const Layer& layer, const Shape& in, const Shape& other) {
  if (layer.kind == Kind::scale) {
    const bool fits = !differ(in.n, other.n) && !differ(in.c, other.c) && !differ(other.h, 1) && !differ(other.w, 1);
    return fits ? Fault::none : Fault::scale_factors;
  }
  const bool sum = layer.kind == Kind::sum;
  if (sum && differ(in.c, other.c)) return Fault::sum_channels;
  if (differ(in.n, other.n) || differ(in.h, other.h) || differ(in.w, other.w)) return sum ? Fault::sum_extents : Fault::concat_extents;
  return Fault::none;
}
}  // namespace detail
constexpr Shape output_shape(const Layer& layer, const Shape& in, const Shape& other = unknown_shape);
namespace detail {
/// fault_of() but for sizes.
constexpr Fault fault_of_kind(const Layer& layer, const Shape& in, bool flat, const Shape& other) {
  if (layer.kind == Kind::norm) return detail::fault_of_norm(layer.norm, in.c);
  if (layer.kind == Kind::dropout) return layer.drop.probability >= 0 && layer.drop.probability < 1 ? Fault::none : Fault::bad_probability;
  if (is_join(layer)) return detail::fault_of_join(layer, in, other);
  if (layer.kind == Kind::upsample) {
    if (layer.upsampling.factor.h < 1 || layer.upsampling.factor.w < 1) return Fault::bad_factor;
    return flat ? Fault::needs_rows : Fault::none;
  }
  if (layer.kind == Kind::linear) {
    if (layer.channels < 1) return Fault::bad_channels;
    return (known(in.h) && in.h != 1) || (known(in.w) && in.w != 1) ? Fault::needs_vector : Fault::none;
  }
  const bool transposed = layer.kind == Kind::conv_transpose, adaptive = layer.kind == Kind::adaptive_avg_pool;
  if (flat && (is_windowed(layer) || transposed || adaptive || layer.kind == Kind::global_avg_pool)) return Fault::needs_rows;
  if (adaptive) return layer.pooled.h < 1 || layer.pooled.w < 1 ? Fault::bad_pooled : Fault::none;
  if (layer.kind == Kind::channel_shuffle) return detail::fault_of_groups(layer, in.c);
  if (layer.kind == Kind::pad) return detail::fault_of_pad(layer, in);
  if (!is_windowed(layer) && !transposed) return Fault::none;
  const Window& w = layer.window;
  for (const Axis& axis : {row_axis(w), column_axis(w)})
    if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1 || axis.pad_begin < 0 || axis.pad_end < 0)
      return Fault::bad_window;
  if (layer.kind == Kind::conv || transposed) {
    if (w.ceil) return Fault::ceil_window;
    if (layer.channels < 1) return Fault::bad_channels;
    if (const Fault fault = detail::fault_of_groups(layer, in.c); fault != Fault::none) return fault;
    if (layer.channels % layer.groups != 0) return Fault::groups_out;
  }
  if (transposed) {
    for (const Index extent : {detail::transposed(row_axis(w), in.h), detail::transposed(column_axis(w), in.w)})
      if (known(extent) && extent < 1) return Fault::nothing_left;
    return Fault::none;
  }
  if ((layer.kind == Kind::max_pool || layer.kind == Kind::avg_pool) &&
      (detail::misses_input(row_axis(w), in.h) || detail::misses_input(column_axis(w), in.w)))
    return Fault::pad_too_large;
  if (layer.kind == Kind::max_pool && w.kernel.h * w.kernel.w > 256) return Fault::window_too_large;
  for (const Index extent : {detail::windowed(row_axis(w), in.h), detail::windowed(column_axis(w), in.w)})
    if (known(extent) && extent < 1) return Fault::window_too_tall;
  return Fault::none;
}
}  // namespace detail
/// The first rule that `layer` breaks on an input of shape `in`, joins on that and `other`. Extents may be `unknown`.
/// `flat`: a layer that they come from ends the rows.
constexpr Fault fault_of(const Layer& layer, const Shape& in, bool flat = false, const Shape& other = unknown_shape) {
  for (const Index extent : {in.n, in.c, in.h, in.w})
    if (detail::known(extent) && extent < 1) return Fault::empty_input;
  if (detail::too_many(in) || detail::has_too_large_number(layer)) return Fault::too_large;
  if (const Fault fault = detail::fault_of_kind(layer, in, flat, other); fault != Fault::none) return fault;
  if (detail::too_many(output_shape(layer, in, other))) return Fault::too_large;
  const bool dense = layer.kind == Kind::linear, conv = layer.kind == Kind::conv || layer.kind == Kind::conv_transpose;
  const Index taps = layer.window.kernel.h * layer.window.kernel.w;
  return (dense || conv) && detail::too_many({layer.channels, dense ? 1 : taps, in.c}) ? Fault::too_large : Fault::none;
}
/// Shape of the layer's output. Pre: fault_of(layer, in, flat, other) == Fault::none. Unknown extents stay unknown.
constexpr Shape output_shape(const Layer& layer, const Shape& in, const Shape& other) {
  using detail::either;
  Shape out = in;
  switch (layer.kind) {
    case Kind::activation:
    case Kind::layer_scale:
    case Kind::channel_shuffle:
    case Kind::dropout:
    case Kind::norm: return out;
    case Kind::adaptive_avg_pool: out.h = layer.pooled.h, out.w = layer.pooled.w; return out;
    case Kind::conv_transpose:
      return {in.n, layer.channels, detail::transposed(row_axis(layer.window), in.h), detail::transposed(column_axis(layer.window), in.w)};
    case Kind::sum: return {either(in.n, other.n), either(in.c, other.c), either(in.h, other.h), either(in.w, other.w)};
    case Kind::scale: return {either(in.n, other.n), either(in.c, other.c), in.h, in.w};
    case Kind::concat:
      out.c = detail::known(in.c) && detail::known(other.c) ? in.c + other.c : unknown;
      return {either(in.n, other.n), out.c, either(in.h, other.h), either(in.w, other.w)};
    case Kind::upsample:
      if (detail::known(in.h)) out.h = in.h * layer.upsampling.factor.h;
      if (detail::known(in.w)) out.w = in.w * layer.upsampling.factor.w;
      return out;
    case Kind::global_avg_pool: out.h = out.w = 1; return out;
    case Kind::flatten:
      out.c = detail::known(in.c) && detail::known(in.h) && detail::known(in.w) ? in.c * in.h * in.w : unknown;
      out.h = out.w = 1;
      return out;
    case Kind::linear: out.c = layer.channels; return out;
    case Kind::conv:
    case Kind::max_pool:
    case Kind::avg_pool:
    case Kind::pad:
    case Kind::custom: break;
  }
  if (layer.channels > 0) out.c = layer.channels;
  if (is_windowed(layer)) {
    out.h = detail::windowed(row_axis(layer.window), in.h);
    out.w = detail::windowed(column_axis(layer.window), in.w);
  }
  return out;
}
/// "conv to 64 channels, kernel 3x3 stride 1x1 ..., groups 2", "group_norm, groups 8", "upsample by 2x2, nearest"
inline std::string describe(const Layer& layer) {
  std::string text(layer.kind == Kind::custom && layer.custom ? layer.custom->name : kind_name(layer.kind));
  if (layer.kind == Kind::activation) text = function_name(layer.activation.function);
  if (layer.channels > 0) text += " to " + std::to_string(layer.channels) + " channels";
  const bool transposed = layer.kind == Kind::conv_transpose;
  if ((is_windowed(layer) && layer.kind != Kind::pad) || transposed) text += ", " + to_string(layer.window);
  if ((layer.kind == Kind::conv || transposed) && layer.groups != 1) text += ", groups " + std::to_string(layer.groups);
  if (layer.kind == Kind::channel_shuffle) text += ", groups " + std::to_string(layer.groups);
  if (layer.kind == Kind::adaptive_avg_pool) text += " to " + std::to_string(layer.pooled.h) + 'x' + std::to_string(layer.pooled.w);
  if (const Pad& p = layer.window.pad; layer.kind == Kind::pad)
    text += " by " + std::to_string(p.top) + ',' + std::to_string(p.bottom) + ',' + std::to_string(p.left) + ',' + std::to_string(p.right) +
            (layer.reflect ? ", reflected" : ", zeros");
  if (layer.kind == Kind::norm) {
    text = norm_name(layer.norm);
    if (layer.norm.over == Norm::Over::group && layer.norm.groups != 0) text += ", groups " + std::to_string(layer.norm.groups);
  }
  if (layer.kind == Kind::dropout) {
    std::string probability = std::to_string(layer.drop.probability);
    while (probability.back() == '0' && probability[probability.size() - 2] != '.') probability.pop_back();
    text = std::string(drop_name(layer.drop)) + " of " + probability;
  }
  if (layer.kind == Kind::upsample) {
    const Pair& factor = layer.upsampling.factor;
    text += " by " + std::to_string(factor.h) + 'x' + std::to_string(factor.w) + ", " + std::string(rule_name(layer.upsampling.rule));
  }
  return text;
}
}  // namespace lrcnn
