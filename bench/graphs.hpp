#pragma once
// Forward graphs for which the choice of what to keep is timed: two of 600 nodes, and published ones from the folder that LRCNN_DATA names.
#include "../examples/graph_file.hpp"
#include <lrcnn/core/rng.hpp>
#include <lrcnn/plan/lower_sets.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>
namespace bench {
struct NamedGraph {
  std::string name;
  lrcnn::RecomputationGraph graph;
};
/// A chain of `nodes` nodes of 1 to 1000 kB; every fourth on average also reads one of the eight before. A third of the nodes are convolutions,
/// with a time of 10, and others take 1; or, where `most_time` is given, all times are drawn from 1 to so many.
inline lrcnn::RecomputationGraph graph_with_skips(lrcnn::Index nodes, std::uint64_t most_time = 0) {
  const lrcnn::Random random(1);
  lrcnn::RecomputationGraph graph;
  for (lrcnn::Index i = 0; i < nodes; ++i) {
    const auto draw = [&](std::uint64_t number, std::uint64_t bound) {
      return static_cast<lrcnn::Index>(random.below(4 * static_cast<std::uint64_t>(i) + number, bound));
    };
    const lrcnn::Index time = most_time > 0 ? 1 + draw(1, most_time) : draw(1, 3) == 0 ? 10 : 1;
    graph.nodes.push_back({"", 1000 * (1 + draw(0, 1000)), time});
    if (i > 0) graph.edges.push_back({i - 1, i});
    if (i > 9 && draw(2, 4) == 0) graph.edges.push_back({i - 2 - draw(3, 8), i});
  }
  return graph;
}
/// Errors: lrcnn::DataError if a published graph is there and cannot be used.
inline std::vector<NamedGraph> benchmark_graphs() {
  std::vector<NamedGraph> graphs{{"skips600", graph_with_skips(600)}, {"times600", graph_with_skips(600, 1'000'000)}};
  const char* const root = std::getenv("LRCNN_DATA");
  for (const char* name : {"vgg19", "unet", "resnet50", "googlenet"})
    if (const auto path = std::filesystem::path(root ? root : "") / "graphs" / (std::string(name) + ".json"); root && std::filesystem::exists(path))
      graphs.push_back({name, GraphReader(path.string()).read().graph});
  return graphs;
}
/// What is asked of a graph.
struct GraphCase {
  const NamedGraph* graph = nullptr;
  lrcnn::LowerSetFamily family{};
  lrcnn::Index percent = 0;   ///< of the least budget, for which a strategy is chosen; 0: the least budget itself
  std::string name() const {
    return "graph/" + graph->name + "/" + std::string(lrcnn::family_name(family)) + "/" + (percent == 0 ? "least" : std::to_string(percent));
  }
};
inline std::vector<GraphCase> graph_cases(const std::vector<NamedGraph>& graphs) {
  using enum lrcnn::LowerSetFamily;
  std::vector<GraphCase> cases;
  for (const NamedGraph& graph : graphs)
    for (const lrcnn::LowerSetFamily family : {exact, approx, order, wide})
      for (const lrcnn::Index percent : {0, 100, 150, 300})
        if (family != exact || (graph.graph.size() < 600 && percent < 300)) cases.push_back({&graph, family, percent});
  return cases;
}
}   // namespace bench
