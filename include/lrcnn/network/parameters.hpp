#pragma once
// Where every parameter lies.
//
// All parameters of a network live in one flat buffer; gradients and optimizer states lie in buffers of the same
// layout. A list of Parameters is the only description of that layout, filled from the layer table in its order.
// There may be gaps between parameters (alignment); nothing that is kept in a gap means anything.
#include <lrcnn/core/error.hpp>
#include <lrcnn/layer/parameter_shape.hpp>
#include <lrcnn/shape/shape.hpp>
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
namespace lrcnn {
/// One parameter tensor of a network and its place in the flat buffer.
struct Parameter {
  std::string name;   ///< "conv1.weight": stable, unique in the network
  ParameterShape shape{};
  Index offset = 0;   ///< elements from the start of the flat buffer
  Index layer = 0;    ///< index into the layer table
  Range elements() const { return {offset, offset + shape.count()}; }
  friend bool operator==(const Parameter&, const Parameter&) = default;
};
/// Elements that hold every parameter, gaps included.
inline Index flat_elements(std::span<const Parameter> parameters) {
  Index end = 0;
  for (const Parameter& p : parameters) end = std::max(end, p.elements().end);
  return end;
}
/// Elements of all parameters, gaps not counted.
inline Index parameter_elements(std::span<const Parameter> parameters) {
  Index sum = 0;
  for (const Parameter& p : parameters) sum += p.shape.count();
  return sum;
}
/// The parameter of that name, or nullptr.
inline const Parameter* find_parameter(std::span<const Parameter> parameters, std::string_view name) {
  const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
  return found == parameters.end() ? nullptr : &*found;
}
/// The elements of one parameter in a flat buffer. Errors: ShapeError if the buffer ends before them.
template <class T>
std::span<T> elements_of(const Parameter& p, std::span<T> flat) {
  if (p.offset < 0 || p.elements().end > static_cast<Index>(flat.size()))
    throw ShapeError(error_text("parameter '" + p.name + "' takes elements " + std::to_string(p.offset) + " to " + std::to_string(p.elements().end) +
                                    " of a buffer of " + std::to_string(flat.size()),
                                "a flat buffer holds every parameter of its network", "pass a buffer of flat_elements(parameters) elements"));
  return flat.subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.shape.count()));
}
/// Errors:  ShapeError if parameters are of other shapes on another input than on a network's first one (a Flatten fixes them to
///          rows and columns, every layer with parameters to channels)
inline void check_layout(std::span<const Parameter> first, const Shape& first_input, std::span<const Parameter> other, const Shape& input) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (other[i].shape == first[i].shape) continue;
    throw ShapeError(error_text("a batch of shape " + to_string(input) + " would change the shape of parameter '" + first[i].name + "'",
                                "a network's parameters are fixed by its first input, " + to_string(first_input),
                                input.c == first_input.c
                                    ? "use images of one size, or GlobalAvgPool instead of Flatten"
                                    : "use images of " + std::to_string(first_input.c) + (first_input.c == 1 ? " channel" : " channels")));
  }
}
/// Errors:  Error if not so many values are given as there are parameters; `change`: what to change then
inline void check_value_count(std::size_t values, Index parameters, std::string_view change) {
  if (static_cast<Index>(values) != parameters)
    throw Error(error_text(std::to_string(values) + " values are given for " + std::to_string(parameters) + " parameters",
                           "all parameters are set at once", change));
}
/// "[64,3,3,3]"; extents behind the last that is not 1 are left out, the first is always there.
inline std::string extents_text(const ParameterShape& shape) {
  std::size_t last = shape.extents.size();
  while (last > 1 && shape.extents[last - 1] == 1) --last;
  std::string text = "[";
  for (std::size_t i = 0; i < last; ++i) text += (i > 0 ? "," : "") + std::to_string(shape.extents[i]);
  return text + "]";
}
}   // namespace lrcnn
