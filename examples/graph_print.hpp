#pragma once
// What to keep of a graph from a file, for people and as JSON.
#include "graph_file.hpp"
#include "json_answer.hpp"
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/plan/lower_sets.hpp>
#include <iomanip>
#include <optional>
#include <ostream>
/// What was asked for, and what came out.
struct GraphReport {
  const GraphFile& file;
  lrcnn::LowerSetFamily family{};
  lrcnn::Index lower_sets = 0;
  lrcnn::RecomputationObjective objective{};
  lrcnn::Index budget = 0;   ///< bytes, where there is a strategy
  std::optional<lrcnn::RecomputationStrategy> strategy{};
  std::optional<lrcnn::Index> least_budget{};   ///< bytes
  lrcnn::Index total(lrcnn::Index lrcnn::RecomputationNode::*of) const {
    lrcnn::Index sum = 0;
    for (const auto& node : file.graph.nodes) sum += node.*of;
    return sum;
  }
  std::vector<lrcnn::Index> ids(const std::vector<lrcnn::Index>& nodes) const {
    std::vector<lrcnn::Index> ids;
    for (const lrcnn::Index v : nodes) ids.push_back(file.ids[static_cast<std::size_t>(v)]);
    return ids;
  }
};
/// "0-3 5 7-8"; "-" for none
inline std::string id_ranges(const std::vector<lrcnn::Index>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t end = i + 1;
    while (end < ids.size() && ids[end] - ids[end - 1] == 1) ++end;
    text += (text.empty() ? "" : " ") + std::to_string(ids[i]) + (end > i + 1 ? "-" + std::to_string(ids[end - 1]) : "");
    i = end;
  }
  return text.empty() ? "-" : text;
}
inline std::string exact_bytes(lrcnn::Index bytes) { return std::to_string(bytes) + " bytes (" + lrcnn::format_bytes(bytes) + ")"; }
inline void print_report(std::ostream& out, const GraphReport& report) {
  using namespace lrcnn;
  const RecomputationGraph& graph = report.file.graph;
  const Index time = report.total(&RecomputationNode::time);
  out << "graph " << report.file.name << ": " << graph.size() << " nodes, " << graph.edges.size() << " edges, outputs "
      << exact_bytes(report.total(&RecomputationNode::bytes)) << ", time " << time << "\n"
      << "family " << family_name(report.family) << ": " << report.lower_sets << " lower sets\n";
  if (!std::ranges::is_sorted(topological_order(graph))) out << "The file does not list the nodes in topological order; they were sorted.\n";
  if (report.strategy) {
    const RecomputationStrategy& strategy = *report.strategy;
    out << "budget " << exact_bytes(report.budget) << ", objective " << objective_name(report.objective) << "\n\n segment      bytes  nodes; kept\n";
    for (std::size_t s = 0; s < strategy.segments.size(); ++s) {
      Index bytes = 0;
      for (const Index v : strategy.segments[s].nodes) bytes += graph.node(v).bytes;
      out << std::setw(8) << s + 1 << std::setw(11) << format_bytes(bytes) << "  " << id_ranges(report.ids(strategy.segments[s].nodes)) << "; "
          << id_ranges(report.ids(strategy.segments[s].kept)) << "\n";
    }
    const double share = time > 0 ? 100 * static_cast<double>(strategy.overhead) / static_cast<double>(time) : 0;
    out << "\nkept " << exact_bytes(strategy.kept_bytes) << "\npeak " << exact_bytes(strategy.peak_bytes) << "\noverhead " << strategy.overhead
        << " of a forward pass of " << time << " (" << std::fixed << std::setprecision(1) << share << " %)\n";
  }
  if (report.least_budget) out << "least feasible budget in bytes:\n" << *report.least_budget << "\n";
}
/// The same as one object. Nodes are their ids.
inline nlohmann::ordered_json json_of(const GraphReport& report) {
  using namespace lrcnn;
  nlohmann::ordered_json json{{"graph", report.file.name},
                              {"nodes", report.file.graph.size()},
                              {"edges", report.file.graph.edges.size()},
                              {"bytes", report.total(&RecomputationNode::bytes)},
                              {"time", report.total(&RecomputationNode::time)},
                              {"family", family_name(report.family)},
                              {"lower_sets", report.lower_sets}};
  if (report.strategy) {
    json["budget"] = report.budget;
    json["objective"] = objective_name(report.objective);
    json["peak"] = report.strategy->peak_bytes;
    json["kept"] = report.strategy->kept_bytes;
    json["overhead"] = report.strategy->overhead;
    json["segments"] = nlohmann::ordered_json::array();
    for (const RecomputationSegment& s : report.strategy->segments)
      json["segments"].push_back({{"nodes", report.ids(s.nodes)}, {"kept", report.ids(s.kept)}});
  }
  if (report.least_budget) json["least_budget"] = *report.least_budget;
  return json;
}
