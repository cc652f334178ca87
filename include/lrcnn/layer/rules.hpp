#pragma once
// What the library must know about a kind of layer, in one row.
//
// The row of a kind stands beside its descriptor, as `kind_rules<Kind::conv>`; a layer of a program's own brings its row in
// CustomLayer::rules. Checks, planner, checker and trainer ask the row (rules_of() in layer/layers.hpp). They know by name only kinds of
// which there is more to say: barriers, joins, norms, activations, and convolutions, whose filters are packed and whose slabs are dense.
// What a layer computes is said by its loops, in backend/.
#include <lrcnn/layer/fault.hpp>
#include <lrcnn/layer/layer.hpp>
#include <lrcnn/layer/parameter_shape.hpp>
#include <lrcnn/shape/rows.hpp>
#include <string>
#include <string_view>
namespace lrcnn {
/// Which rows of its input a row of a layer's output reads.
enum class RowMap : std::uint8_t {
  same,     ///< the row of the same number
  window,   ///< those that Layer::window says
  own,      ///< those that LayerRules::axis says
  all,      ///< all of them
};
/// What a layer's backward step reads besides the gradient of its output.
struct BackwardReads {
  bool input = false;
  bool other = false;   ///< of a join: its second input
  bool output = false;
  bool indices = false;          ///< a byte for each element of the output, which the forward step saves
  bool sign = false;             ///< the sign of the output: from the output, or from a bit for each element, which the forward step saves
  bool for_parameters = false;   ///< the input, for the gradients of its parameters alone
};
constexpr BackwardReads reads_nothing(const Layer&) { return {}; }
constexpr BackwardReads reads_input(const Layer&) { return {.input = true}; }
constexpr BackwardReads reads_output(const Layer&) { return {.output = true}; }
constexpr BackwardReads reads_input_and_output(const Layer&) { return {.input = true, .output = true}; }
constexpr BackwardReads reads_input_for_parameters(const Layer&) { return {.input = true, .for_parameters = true}; }
/// What rules say unless told otherwise.
constexpr std::string_view no_variants(const Layer&) { return {}; }
inline std::string no_details(const Layer&) { return {}; }
constexpr Axis same_row(const Layer&, const Shape&) { return {}; }
constexpr Shape same_extents(const Layer& layer, const Shape& in, const Shape&) {
  Shape out = in;
  if (layer.channels > 0) out.c = layer.channels;
  return out;
}
constexpr Fault no_fault(const Layer&, const Shape&, const Shape&) { return Fault::none; }
constexpr ParameterShapes no_parameters(const Layer&, const Shape&) { return {}; }
/// The rules of a kind of layer. Shapes that functions are given may have unknown extents where a Fault or a Shape is asked for.
/// (Functions that do nothing rather than null pointers: g++ 12 under the undefined-behaviour sanitizer takes no comparison of a pointer with
/// null for a constant.)
struct LayerRules {
  std::string_view name{};                                   ///< "conv"
  std::string_view counted_as{};                             ///< unnamed layers are named after this and a number: "pool"; empty: variant or name
  std::string_view (*variant)(const Layer&) = no_variants;   ///< stands for the name: "relu" of an activation
  std::string (*details)(const Layer&) = no_details;         ///< follow name, channels and window in messages: ", groups 2"
  RowMap rows = RowMap::same;
  Axis (*axis)(const Layer&, const Shape& in) = same_row;   ///< RowMap::own: the rows as an axis
  bool reduces = false;                                     ///< RowMap::all: takes rows as they come, adds them up, and is done with the last
  bool ends_rows = false;                                   ///< its output is a feature vector, which has no rows any more
  BackwardReads (*backward)(const Layer&) = reads_nothing;
  bool cheap = true;                  ///< its output can be had from its input in little more than a memory pass (RecomputeCheap)
  bool overwrites_input = false;      ///< the forward step may write its output over its (first) input
  bool overwrites_gradient = false;   ///< the backward step may write the gradient of its (first) input over that of its output
  bool takes_activation = false;      ///< its forward step may apply the activation behind it
  bool uses_workspace = false;        ///< its steps may want workspace
  bool sums_channels = false;         ///< a step of it adds up over rows what belongs to a channel
  bool draws = false;                 ///< draws random numbers of the run's key
  Shape (*output)(const Layer&, const Shape& in, const Shape& other) = same_extents;   ///< but for RowMap::window. Pre: no fault
  Fault (*fault)(const Layer&, const Shape& in, const Shape& other) = no_fault;        ///< the first rule that a layer breaks on such inputs
  ParameterShapes (*parameters)(const Layer&, const Shape& in) = no_parameters;        ///< in the order in which its functions receive them
};
/// The row of a kind. Each header of layer/ specialises it for the kinds of its descriptors.
template <Kind kind>
inline constexpr LayerRules kind_rules{};
namespace detail {
constexpr Index windowed(const Axis& axis, Index extent) { return known(extent) ? out_extent(axis, extent) : unknown; }
constexpr Shape windowed_shape(const Layer& layer, const Shape& in) {
  const Index channels = layer.channels > 0 ? layer.channels : in.c;
  return {in.n, channels, windowed(row_axis(layer.window), in.h), windowed(column_axis(layer.window), in.w)};
}
constexpr Fault fault_of_window(const Window& window) {
  for (const Axis& axis : {row_axis(window), column_axis(window)})
    if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1 || axis.pad_begin < 0 || axis.pad_end < 0) return Fault::bad_window;
  return Fault::none;
}
/// Whether the window fits into an input of these extents at least once.
constexpr Fault fault_of_fit(const Window& window, const Shape& in) {
  for (const Index extent : {windowed(row_axis(window), in.h), windowed(column_axis(window), in.w)})
    if (known(extent) && extent < 1) return Fault::window_too_tall;
  return Fault::none;
}
constexpr Fault fault_of_groups(const Layer& layer, Index channels) {
  if (layer.groups < 1) return Fault::bad_channels;
  return known(channels) && channels % layer.groups != 0 ? Fault::groups_in : Fault::none;
}
/// An unknown extent, where another one must be the same.
constexpr Index either(Index a, Index b) { return known(a) ? a : b; }
constexpr bool differ(Index a, Index b) { return known(a) && known(b) && a != b; }
inline std::string pair_text(const Pair& pair) { return std::to_string(pair.h) + 'x' + std::to_string(pair.w); }
}   // namespace detail
}   // namespace lrcnn
