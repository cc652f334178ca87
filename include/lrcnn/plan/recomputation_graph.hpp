#pragma once
// Forward graphs as recomputation sees them: what each output takes, how long it takes to compute, and who reads it.
//
// Parameters and the network's input are left out: they are there in any case.
#include <lrcnn/plan/target.hpp>
#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>
namespace lrcnn {
/// A node of a forward graph: an operation and its output.
struct RecomputationNode {
  std::string name{};   ///< for messages; may be empty
  Index bytes = 0;      ///< of its output
  Index time = 0;       ///< that its forward step takes, in a unit of the graph's own
  friend bool operator==(const RecomputationNode&, const RecomputationNode&) = default;
};
/// Node `to` reads the output of node `from`; both are indices of nodes.
struct RecomputationEdge {
  Index from = 0;
  Index to = 0;
  friend constexpr bool operator==(const RecomputationEdge&, const RecomputationEdge&) = default;
  friend constexpr auto operator<=>(const RecomputationEdge&, const RecomputationEdge&) = default;
};
/// A forward graph. Nodes may be listed in any order.
struct RecomputationGraph {
  std::vector<RecomputationNode> nodes{};
  std::vector<RecomputationEdge> edges{};
  Index size() const { return static_cast<Index>(nodes.size()); }
  const RecomputationNode& node(Index i) const { return item(nodes, i); }
  friend bool operator==(const RecomputationGraph&, const RecomputationGraph&) = default;
};
namespace detail {
/// Who reads a node, and whom it reads.
struct NodeLinks {
  std::vector<std::vector<Index>> readers, inputs;
  explicit NodeLinks(const RecomputationGraph& graph) : readers(graph.nodes.size()), inputs(graph.nodes.size()) {
    for (const RecomputationEdge& e : graph.edges) {
      item(readers, e.from).push_back(e.to);
      item(inputs, e.to).push_back(e.from);
    }
  }
};
/// The nodes in topological order; among those that may come next, the first of the list does. Nodes on and behind a cycle are missing.
inline std::vector<Index> order_of_links(const NodeLinks& links) {
  const std::size_t count = links.inputs.size();
  std::vector<std::size_t> waits(count);
  std::priority_queue<Index, std::vector<Index>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i)
    if (waits[i] = links.inputs[i].size(); waits[i] == 0) ready.push(static_cast<Index>(i));
  std::vector<Index> order;
  order.reserve(count);
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const Index reader : item(links.readers, order.back()))
      if (--item(waits, reader) == 0) ready.push(reader);
  }
  return order;
}
/// "node 3", "node 3 (conv1)"
inline std::string node_text(const RecomputationGraph& graph, Index i) {
  const std::string& name = graph.node(i).name;
  return "node " + std::to_string(i) + (name.empty() ? "" : " (" + name + ")");
}
/// "node 0 -> node 2 -> node 0": a cycle of a graph that has one. `ordered`: the nodes that are not on or behind a cycle.
inline std::string cycle_text(const RecomputationGraph& graph, const NodeLinks& links, const std::vector<Index>& ordered) {
  std::vector<char> done(graph.nodes.size(), 0);
  for (const Index i : ordered) item(done, i) = 1;
  Index at = std::find(done.begin(), done.end(), 0) - done.begin();
  std::vector<Index> path;   // against the edges: each node left over reads one that is
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    const auto& inputs = item(links.inputs, at);
    at = *std::find_if(inputs.begin(), inputs.end(), [&](Index input) { return !item(done, input); });
  }
  std::string text = node_text(graph, at);
  const auto begin = std::find(path.begin(), path.end(), at);
  for (auto next = path.end(); next != begin;) text += " -> " + node_text(graph, *--next);
  return text;
}
inline void check_nodes(const RecomputationGraph& graph, const std::string& who) {
  const auto fault = [&](const std::string& what, const char* rule, const char* change) { throw DataError(error_text(who + what, rule, change)); };
  if (graph.nodes.empty()) fault(" has no nodes", "a forward graph has at least one", "list the network's operations as nodes");
  Index bytes = 0, time = 0;
  for (Index i = 0; i < graph.size(); ++i) {
    const RecomputationNode& node = graph.node(i);
    const auto number = [&](const char* what, Index n) { return ", " + node_text(graph, i) + ": its " + what + " " + std::to_string(n); };
    if (node.bytes < 0) fault(number("bytes are", node.bytes), "an output takes 0 bytes or more", "write the size of the node's output");
    if (node.time < 0) fault(number("time is", node.time), "a node takes a time of 0 or more", "write the time of the node's forward step");
    if (node.bytes > std::numeric_limits<Index>::max() / 2 - bytes)
      fault(number("bytes are", node.bytes) + ", with which the sum goes beyond 64 bits",
            "twice the bytes of all nodes, values and gradients, are at most 2^63 - 1", "check the sizes of the outputs");
    if (node.time > std::numeric_limits<Index>::max() - time)
      fault(number("time is", node.time) + ", with which the sum goes beyond 64 bits", "the times of all nodes sum up to at most 2^63 - 1",
            "write times in a larger unit");
    bytes += node.bytes, time += node.time;
  }
}
inline void check_edges(const RecomputationGraph& graph, const std::string& who) {
  std::vector<std::pair<RecomputationEdge, std::size_t>> sorted;
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    const RecomputationEdge e = graph.edges[i];
    const std::string edge = ", edge " + std::to_string(i);
    for (const Index end : {e.from, e.to})
      if (end < 0 || end >= graph.size())
        throw DataError(error_text(who + edge + " names node " + std::to_string(end) + ", which is not there",
                                   "nodes are numbered from 0 to " + std::to_string(graph.size() - 1), "name nodes of the graph"));
    if (e.from == e.to)
      throw DataError(error_text(who + edge + " leads from " + node_text(graph, e.from) + " to itself", "a node reads outputs of other nodes",
                                 "remove the edge"));
    sorted.emplace_back(e, i);
  }
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice == sorted.end()) return;
  const auto [edge, first] = *twice;
  throw DataError(error_text(who + ", edges " + std::to_string(first) + " and " + std::to_string((twice + 1)->second) + " both lead from " +
                                 node_text(graph, edge.from) + " to " + node_text(graph, edge.to),
                             "an edge says that one node reads another, however often it does", "remove one of them"));
}
}   // namespace detail
/// Finds out whether a graph can be used. `who`: what messages call it.
/// Errors: DataError if it has no nodes; naming the node, if bytes or times are negative or their sums go beyond 64 bits; naming the edge, if
///         it leads to no node, to itself, or is there twice; naming the nodes, if some form a cycle.
inline void check_graph(const RecomputationGraph& graph, const std::string& who = "the graph") {
  detail::check_nodes(graph, who);
  detail::check_edges(graph, who);
  const detail::NodeLinks links(graph);
  const std::vector<Index> order = detail::order_of_links(links);
  if (order.size() < graph.nodes.size())
    throw DataError(error_text(who + " has a cycle: " + detail::cycle_text(graph, links, order),
                               "no node of a forward graph reads, even through others, its own output", "remove or turn an edge of the cycle"));
}
/// The nodes of a graph in topological order: their own if that is one; otherwise, among the nodes that may come next, the first in the list
/// comes next.
/// Errors: as check_graph()
inline std::vector<Index> topological_order(const RecomputationGraph& graph) {
  check_graph(graph);
  return detail::order_of_links(detail::NodeLinks(graph));
}
/// The forward graph of a network: a node for each layer of the table, in its order, with the bytes of its output as a buffer of that target,
/// alignment included. By the convention of Kusumoto et al. (NeurIPS 2019), a convolution takes a time of 10, transposed ones and custom
/// layers that are not cheap included, and any other layer, linear ones included, a time of 1.
inline RecomputationGraph recomputation_graph(const Table& table, const Target& target) {
  RecomputationGraph graph;
  for (Index i = 0; i < table.size(); ++i) {
    const Node& node = table.node(i);
    const LayerRules& rules = rules_of(node.layer);
    const bool convolves = !rules.cheap && !rules.ends_rows;
    const Index bytes = target.bytes(node.out.n, node.out.c, node.out.h, node.out.w);
    graph.nodes.push_back({std::string(node.layer.name.view()), round_up(bytes, target.alignment), convolves ? 10 : 1});
    if (node.input > 0) graph.edges.push_back({node.input - 1, i});
    if (node.other > 0) graph.edges.push_back({node.other - 1, i});
  }
  return graph;
}
}   // namespace lrcnn
