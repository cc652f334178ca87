#pragma once
// The layer table: a network with its extents, as plain data.
//
// Everything below the type level starts here. A type (Sequential<...>), a run-time list of layers and a random test
// network all become the same table, so what is proved for one holds for the others. Tensors are numbered: 0 is the
// network's input, i + 1 the output of node i; a node says which tensor it reads, so that the table can hold a graph.
#include <lrcnn/core/error.hpp>
#include <lrcnn/network/check.hpp>
#include <lrcnn/network/names.hpp>
#include <lrcnn/network/parameters.hpp>
#include <lrcnn/network/references.hpp>
#include <lrcnn/shape/rows.hpp>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>
namespace lrcnn {
/// A layer in its place.
struct Node {
  Layer layer{};
  Index input = 0;    ///< tensor that it reads
  Index other = -1;   ///< joins: the second one; -1: none
  Shape in{};         ///< shape of the first
  Shape in2{};        ///< joins: of the second
  Shape out{};        ///< shape of the tensor that it writes
  friend constexpr bool operator==(const Node&, const Node&) = default;
};
/// Layers in execution order with all shapes known.
struct Table {
  Shape input{};
  std::vector<Node> nodes;
  constexpr Index size() const { return static_cast<Index>(nodes.size()); }
  constexpr const Node& node(Index i) const { return nodes[static_cast<std::size_t>(i)]; }
  constexpr Index tensors() const { return size() + 1; }
  constexpr const Shape& shape(Index tensor) const { return tensor == 0 ? input : node(tensor - 1).out; }
  friend constexpr bool operator==(const Table&, const Table&) = default;
};
/// Which input rows each output row of a layer reads, as an axis; a layer that reads all rows counts as one that reads the row itself.
constexpr Axis row_axis_of(const Node& node) {
  const LayerRules& rules = rules_of(node.layer);
  if (rules.rows == RowMap::window) return row_axis(node.layer.window);
  return rules.rows == RowMap::own ? rules.axis(node.layer, node.in) : Axis{};
}
/// Gives every unnamed layer its automatic name.
/// Errors:  ShapeError if two layers have one name
constexpr void name_layers(std::vector<Node>& nodes) {
  const auto layer_of = [](Node& node) -> Layer& { return node.layer; };
  const std::span<Node> list(nodes);
  const std::vector<detail::NameSlot> slots(detail::name_slots(nodes.size()));
  if (const auto same = detail::find_same_name(list, slots, layer_of)) detail::throw_same_name(same->first, same->second, nodes[same->second].layer);
  detail::give_names(list, slots, layer_of);
}
namespace detail {
/// Brings the nodes of a graph into the order of execution, and their references with them.
constexpr void order_nodes(std::vector<Node>& nodes, std::span<const Index> place) {
  std::vector<Node> ordered(nodes.size());
  const auto moved = [&](Index tensor) { return tensor > 0 ? place[static_cast<std::size_t>(tensor - 1)] + 1 : tensor; };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = ordered[static_cast<std::size_t>(place[i])] = nodes[i];
    node.input = moved(node.input), node.other = moved(node.other);
    node.layer.input = place[i] + 1 - node.input;
    if (node.other >= 0) node.layer.other = place[i] + 1 - node.other;
  }
  nodes = std::move(ordered);
}
}   // namespace detail
namespace detail {
/// "layer 3 (relu)", "layer 3 'stem'", "the input": what gives a tensor of a list.
inline std::string giver_of(std::span<const Layer> layers, Index tensor) {
  if (tensor == 0) return "the input";
  const Layer& layer = layers[static_cast<std::size_t>(tensor - 1)];
  const std::string text(layer.name.empty() ? short_kind_name(layer) : layer.name.view());
  return "layer " + std::to_string(tensor) + (layer.name.empty() ? " (" + text + ")" : " '" + text + "'");
}
/// What layer `i` of a list cannot take. `other`: the second input of a join, or null.
[[noreturn]] inline void throw_fault(Fault fault, std::span<const Layer> layers, Index i, const Shape& in, const Shape* other) {
  const FaultText text = fault_text(fault);
  const Layer& layer = layers[static_cast<std::size_t>(i)];
  std::string who = "layer " + std::to_string(i + 1);
  if (!layer.name.empty()) who += " '" + std::string(layer.name.view()) + "'";
  who += " (" + describe(layer) + ") on input" + (other ? "s " : " ") + to_string(in);
  if (const Reads reads = reads_of(layer, i); other)
    who += " of " + giver_of(layers, reads.input) + " and " + to_string(*other) + " of " + giver_of(layers, reads.other);
  throw ShapeError(error_text(who + ": " + std::string(text.what), text.rule, text.change));
}
constexpr Table table_of_layers(std::span<const Layer> layers, const Input& input) {
  if (layers.empty()) throw ShapeError(error_text("this network has no layers", "a network has at least one", "name its layers"));
  Table table{input, {}};
  table.nodes.reserve(layers.size());
  std::vector<char> flat(layers.size() + 1, 0);   // tensors that have no rows any more
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const Layer& layer = layers[at];
    const auto i = static_cast<Index>(at);
    const Reads reads = reads_of(layer, i);
    const bool join = reads.other >= 0;
    const Shape in = table.shape(reads.input), other = join ? table.shape(reads.other) : Shape{};
    const bool flat_in = flat[static_cast<std::size_t>(reads.input)], flat_other = join && flat[static_cast<std::size_t>(reads.other)];
    Fault fault = fault_of_reads(layer, i);
    if (fault == Fault::none) fault = fault_of(layer, in, flat_in || flat_other, other);
    if (fault != Fault::none) throw_fault(fault, layers, i, in, join ? &other : nullptr);
    table.nodes.push_back({layer, reads.input, reads.other, in, other, output_shape(layer, in, other)});
    flat[at + 1] = is_flat(layer, flat_in, flat_other);
  }
  name_layers(table.nodes);
  if (is_chain(layers)) return table;
  std::vector<Index> levels = levels_of(layers);
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] == unread) throw_fault(Fault::unused, layers, static_cast<Index>(i), table.nodes[i].in, nullptr);
  std::vector<char> shrinking;
  shrinking.reserve(table.nodes.size());
  for (const Node& node : table.nodes) shrinking.push_back(shrinks(node.layer, node.in.c, node.out.c));
  read_early(layers, shrinking, levels);
  order_nodes(table.nodes, execution_places(layers, levels));
  return table;
}
/// The same, compiled where LRCNN_PRECOMPILED says (precompiled/training.hpp).
template <class = void>
Table table_at_run_time(std::span<const Layer> layers, const Input& input) {
  return table_of_layers(layers, input);
}
}   // namespace detail
/// The table of a list of layers, each of which reads layers before it (Layer::input, Layer::other). Nodes are in the order of
/// execution (network/references.hpp), which for a chain is that of the list.
/// Errors: ShapeError naming the layer by its place in the list, its description and the shapes of its inputs (of a join also the layers
///         that they come from), if a layer cannot take what it is given, or if no layer reads it; and if two layers have one name, or
///         there are none.
constexpr Table make_table(std::span<const Layer> layers, const Input& input) {
  if (std::is_constant_evaluated()) return detail::table_of_layers(layers, input);
  return detail::table_at_run_time<>(layers, input);
}
/// Parameter tensors of a layer, in the order its operations receive them.
constexpr ParameterShapes parameter_shapes(const Layer& layer, const Shape& in) { return rules_of(layer).parameters(layer, in); }
/// Whether a layer has parameters that are trained.
constexpr bool trains(const Layer& layer, const Shape& in) {
  const ParameterShapes shapes = parameter_shapes(layer, in);
  for (Index p = 0; p < shapes.count; ++p)
    if (!shapes.item[static_cast<std::size_t>(p)].running) return true;
  return false;
}
/// Elements of a network's flat parameter buffer.
constexpr Index parameter_count(const Table& table) {
  Index count = 0;
  for (const Node& node : table.nodes) {
    const auto shapes = parameter_shapes(node.layer, node.in);
    for (Index p = 0; p < shapes.count; ++p) count += shapes.item[static_cast<std::size_t>(p)].count();
  }
  return count;
}
/// Every parameter of a network with its name ("conv1.weight") and its place in the flat buffer.
inline std::vector<Parameter> parameters_of(const Table& table) {
  std::vector<Parameter> list;
  Index offset = 0;
  for (Index i = 0; i < table.size(); ++i) {
    const Node& node = table.node(i);
    const auto shapes = parameter_shapes(node.layer, node.in);
    for (Index p = 0; p < shapes.count; ++p) {
      const auto& shape = shapes.item[static_cast<std::size_t>(p)];
      list.push_back({std::string(node.layer.name.view()) + "." + std::string(shape.name.view()), shape, offset, i});
      offset += shape.count();
    }
  }
  return list;
}
}   // namespace lrcnn
