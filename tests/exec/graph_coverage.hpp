#pragma once
// As coverage.hpp, for networks that branch: which features of graphs meet which parts of policies, and networks that have one.
#include "exec/coverage.hpp"
#include "support/random_graph.hpp"
namespace lrcnn::testing {
inline constexpr std::array graph_features{
    "batch norm", "frozen batch norm", "group norm", "instance norm", "layer norm", "norm without affine", "norm and relu", "sum",
    "sum of three", "residual with shortcut", "concat", "long skip", "nearest", "bilinear", "corners", "relu6", "gelu", "hardswish",
    "sigmoid", "norm of vectors", "dropout", "spatial dropout", "stochastic depth", "scale"};
constexpr std::size_t graph_feature_count = graph_features.size();
using GraphFeatureSet = std::array<bool, graph_feature_count>;
/// Whether tensor `above` is made from tensor `below`, directly or not.
inline bool comes_from(const Table& table, Index above, Index below) {
  if (above <= below) return above == below;
  const Node& n = table.node(above - 1);
  return comes_from(table, n.input, below) || (n.other >= 0 && comes_from(table, n.other, below));
}
inline Kind kind_of(const Table& table, Index tensor) { return tensor > 0 ? table.node(tensor - 1).layer.kind : Kind::flatten; }
inline GraphFeatureSet graph_features_of(const Table& table, Index l) {
  GraphFeatureSet set{};
  const Node& node = table.node(l);
  const Layer& y = node.layer;
  const auto has = [&](std::string_view name, bool value) { set[index_of(graph_features, name)] = value; };
  if (y.kind == Kind::norm) {
    has("batch norm", y.norm.over == Norm::Over::batch && !y.norm.frozen), has("frozen batch norm", y.norm.frozen);
    has("group norm", y.norm.over == Norm::Over::group && y.norm.groups > 0);
    has("instance norm", y.norm.over == Norm::Over::group && y.norm.groups == 0);
    has("layer norm", y.norm.over == Norm::Over::channels), has("norm without affine", !y.norm.affine);
    for (Index t = node.input; t > 0 && !set[index_of(graph_features, "norm of vectors")]; t = table.node(t - 1).input)
      has("norm of vectors", ends_rows(table.node(t - 1).layer) || kind_of(table, t) == Kind::global_avg_pool);
  }
  if (y.kind == Kind::activation) {
    using enum Function;
    has("norm and relu", y.activation.function == relu && kind_of(table, node.input) == Kind::norm);
    has("relu6", y.activation.function == relu6), has("gelu", y.activation.function == gelu);
    has("hardswish", y.activation.function == hardswish), has("sigmoid", y.activation.function == sigmoid);
  }
  if (y.kind == Kind::sum) {
    has("sum", true), has("sum of three", kind_of(table, node.input) == Kind::sum || kind_of(table, node.other) == Kind::sum);
    has("residual with shortcut", !comes_from(table, node.input, node.other) && !comes_from(table, node.other, node.input));
  }
  if (y.kind == Kind::concat) {
    has("concat", true);
    has("long skip", kind_of(table, node.input) == Kind::upsample || kind_of(table, node.other) == Kind::upsample);
  }
  has("scale", y.kind == Kind::scale);
  if (y.kind == Kind::dropout) {
    using enum Drop::Each;
    has("dropout", y.drop.each == element), has("spatial dropout", y.drop.each == channel), has("stochastic depth", y.drop.each == image);
  }
  if (y.kind == Kind::upsample) {
    using enum Upsampling::Rule;
    has("nearest", y.upsampling.rule == nearest), has("bilinear", y.upsampling.rule == bilinear);
    has("corners", y.upsampling.rule == bilinear_corners);
  }
  return set;
}
/// Groups of images are refused where statistics are of the whole batch.
inline bool is_possible(std::size_t feature, std::size_t part) {
  return std::string_view(graph_features[feature]) != "batch norm" || std::string_view(parts[part]) != "Images";
}
struct GraphCoverage {
  std::array<std::array<int, part_count>, graph_feature_count> pairs{};
  int cases = 0, infeasible = 0;
  void add(const Plan& plan) {
    ++cases;
    std::array<PartSet, graph_feature_count> seen{};
    for (const Stage& stage : plan.stages) {
      Stage vector = stage;   // a pooled map has no rows to cut either
      vector.vector = true;
      const PartSet here = parts_of(plan, plan.table.node(stage.first).in.h == 1 ? vector : stage);
      for (Index l = stage.first; l < stage.last; ++l) {
        const GraphFeatureSet layer = graph_features_of(plan.table, l);
        for (std::size_t f = 0; f < graph_feature_count; ++f)
          for (std::size_t p = 0; layer[f] && p < part_count; ++p) seen[f][p] = seen[f][p] || here[p];
      }
    }
    for (std::size_t f = 0; f < graph_feature_count; ++f)
      for (std::size_t p = 0; p < part_count; ++p) pairs[f][p] += seen[f][p];
  }
  /// The least of all possible pairs.
  int least_pair() const {
    int least = cases;
    for (std::size_t f = 0; f < graph_feature_count; ++f)
      for (std::size_t p = 0; p < part_count; ++p)
        if (is_possible(f, p)) least = std::min(least, pairs[f][p]);
    return least;
  }
  std::string table() const {
    std::string text = "cases of each pair; columns:";
    for (std::size_t p = 0; p < part_count; ++p) text += (p ? ", " : " ") + std::string(parts[p]);
    for (std::size_t f = 0; f < graph_feature_count; ++f) {
      std::array<char, 40> cell{};
      std::snprintf(cell.data(), cell.size(), "\n%-23s", graph_features[f]);
      text += cell.data();
      for (const int count : pairs[f]) std::snprintf(cell.data(), cell.size(), "%5d", count), text += cell.data();
    }
    return text;
  }
};
/// Whether a norm has one value only, which is refused.
inline bool has_lone_value(const Table& table) {
  return std::any_of(table.nodes.begin(), table.nodes.end(), [](const Node& n) { return has_one_value(n.layer, n.in); });
}
/// A small network with branches that has a layer with the feature.
inline RandomNetwork graph_with(Dice& dice, std::string_view feature) {
  for (;;) {
    RandomNetwork net = random_graph(dice, 5);
    if (feature == "norm of vectors") {   // before the last layer, which reads the one before it
      GraphBuilder build(dice, {net.input.n, make_table(net.layers, net.input).nodes.back().in.c, 1, 1});
      if (!build.add(build.norm())) continue;
      net.layers.insert(net.layers.end() - 1, build.layers.back());
    }
    const Table table = make_table(net.layers, net.input);
    if (has_lone_value(table)) continue;
    for (Index l = 0; l < table.size(); ++l)
      if (graph_features_of(table, l)[index_of(graph_features, feature)]) return net;
  }
}
}  // namespace lrcnn::testing
