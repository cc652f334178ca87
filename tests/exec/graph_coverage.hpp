#pragma once
// As coverage.hpp, for networks that branch: which features of graphs meet which parts of policies, and networks that have one.
#include "exec/coverage.hpp"
#include "support/random_graph.hpp"
namespace lrcnn::testing {
inline constexpr std::array graph_features{"batch norm",
                                           "frozen batch norm",
                                           "group norm",
                                           "instance norm",
                                           "layer norm",
                                           "norm without affine",
                                           "norm and relu",
                                           "sum",
                                           "sum of three",
                                           "residual with shortcut",
                                           "concat",
                                           "long skip",
                                           "nearest",
                                           "bilinear",
                                           "corners",
                                           "relu6",
                                           "gelu",
                                           "hardswish",
                                           "sigmoid",
                                           "norm of vectors",
                                           "dropout",
                                           "spatial dropout",
                                           "stochastic depth",
                                           "scale",
                                           "conv transpose",
                                           "zero pad",
                                           "crop",
                                           "reflect pad",
                                           "adaptive pool",
                                           "ceil pool",
                                           "layer scale",
                                           "channel shuffle"};
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
  if (const Pad& pad = y.window.pad; y.kind == Kind::pad) {
    has("zero pad", !y.reflect && std::max(pad.top, pad.bottom) > 0), has("crop", !y.reflect && std::min(pad.top, pad.bottom) < 0);
    has("reflect pad", y.reflect && std::max(pad.top, pad.bottom) > 0);
  }
  has("conv transpose", y.kind == Kind::conv_transpose), has("adaptive pool", y.kind == Kind::adaptive_avg_pool);
  has("ceil pool", (y.kind == Kind::max_pool || y.kind == Kind::avg_pool) && y.window.ceil);
  has("layer scale", y.kind == Kind::layer_scale), has("channel shuffle", y.kind == Kind::channel_shuffle && y.groups > 1);
  return set;
}
/// Parts of policies, those of coverage.hpp and those that only norms or joins have a use for.
inline constexpr auto graph_parts = [] {
  constexpr std::array own{"CheckpointAtSums", "ExtraPasses", "ExtraPasses both ways", "OneExtraPass", "GradientsInPlace"};
  std::array<const char*, part_count + own.size()> all{};
  std::copy(own.begin(), own.end(), std::copy(parts.begin(), parts.end(), all.begin()));
  return all;
}();
constexpr std::size_t graph_part_count = graph_parts.size();
using GraphPartSet = std::array<bool, graph_part_count>;
inline bool is_of_extra_passes(std::string_view part) { return part.find("ExtraPass") != std::string_view::npos; }
/// Parts that a plan runs stage `s` with. `vector`: it has no rows to cut, and those of any stage count.
inline GraphPartSet graph_parts_of(const Plan& plan, std::size_t s, bool vector) {
  Stage stage = plan.stages[s];
  const PartSet shared = parts_of(plan, vector ? (stage.vector = true, stage) : plan.stages[s]);
  GraphPartSet set{};
  std::copy(shared.begin(), shared.end(), set.begin());
  const auto any = [&](auto has) {
    bool found = has(plan.stages[s], s);
    for (std::size_t t = 0; stage.vector && t < plan.stages.size(); ++t) found = found || has(plan.stages[t], t);
    return found;
  };
  const auto passes = [](const Stage& t, std::size_t) { return t.passes > 0 && t.backward.slabs() > 1; };
  PolicySpec bare = plan.policy;
  bare.checkpoints = {};
  const bool kept = split_stages(plan.table, bare).size() < split_stages(plan.table, plan.policy).size();
  set[index_of(graph_parts, "CheckpointAtSums")] = kept && plan.policy.checkpoints.rule == Checkpoints::Rule::sums;
  set[index_of(graph_parts, "ExtraPasses")] = any(passes);
  set[index_of(graph_parts, "ExtraPasses both ways")] =
      any([&](const Stage& t, std::size_t i) { return passes(t, i) && t.partition.forward_passes; });
  set[index_of(graph_parts, "OneExtraPass")] =
      any([&](const Stage& t, std::size_t i) { return passes(t, i) && t.partition.passes == NormPasses::one; });
  set[index_of(graph_parts, "GradientsInPlace")] = any([&](const Stage&, std::size_t i) {   // rows of a gradient lie above the map's first
    return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
      return step.stage == static_cast<Index>(i) && (step.dx.held_rows.begin < 0 || step.dy.held_rows.begin < 0);
    });
  });
  return set;
}
inline GraphFeatureSet graph_features_of(const Table& table) {
  GraphFeatureSet all{};
  for (Index l = 0; l < table.size(); ++l) {
    const GraphFeatureSet set = graph_features_of(table, l);
    for (std::size_t f = 0; f < graph_feature_count; ++f) all[f] = all[f] || set[f];
  }
  return all;
}
/// Whether plans of a network can have a part, whatever else there is in it. `direct`: no convolution by Winograd's algorithm.
inline bool has_use_for(const Table& table, std::string_view part, bool direct) {
  const auto any = [&](auto has) { return std::any_of(table.nodes.begin(), table.nodes.end(), has); };
  if (part == "batch 1") return table.input.n == 1;
  if (part == "batch > 1" || part == "ByImages") return table.input.n > 1;
  if (part == "Images")
    return table.input.n > 1 && !any([](const Node& n) { return n.layer.norm.over == Norm::Over::batch && has_statistics(n.layer, true); });
  if (part == "Winograd grid")
    return !direct &&
           any([](const Node& n) { return n.layer.kind == Kind::conv && n.layer.window.kernel == Pair(3) && n.layer.window.stride == Pair(1); });
  if (part == "CheckpointAtSums") return any([](const Node& n) { return n.layer.kind == Kind::sum; });
  if (is_of_extra_passes(part)) return any([](const Node& n) { return has_statistics(n.layer, true) && n.in.h > 1; });
  return true;
}
/// How often each pair of feature and part has been seen.
struct GraphCoverage {
  static constexpr int wanted = 20;
  bool direct = false;   ///< all convolutions are
  std::array<std::array<int, graph_part_count>, graph_feature_count> pairs{};
  int cases = 0, infeasible = 0;
  int keeps_between_passes = 0;   ///< cases in which the first of several extra passes keeps what norms read
  void add(const Plan& plan) {
    ++cases;
    const std::vector<StageNeeds> needs = needs_of(plan.table, plan.policy, plan.options, plan.stages);
    keeps_between_passes +=
        std::any_of(needs.begin(), needs.end(), [](const StageNeeds& stage) { return stage.sum_in_place < 0 && !stage.later_runs.empty(); });
    std::array<GraphPartSet, graph_feature_count> seen{};
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const Stage& stage = plan.stages[s];
      const bool cut_no_more = stage.vector || plan.table.node(stage.first).in.h == 1;   // a vector, or a pooled map
      const GraphPartSet here = graph_parts_of(plan, s, cut_no_more);
      for (Index l = stage.first; l < stage.last; ++l) {
        const GraphFeatureSet layer = graph_features_of(plan.table, l);
        for (std::size_t f = 0; f < graph_feature_count; ++f)
          for (std::size_t p = 0; layer[f] && p < graph_part_count; ++p) seen[f][p] = seen[f][p] || here[p];
      }
    }
    for (std::size_t f = 0; f < graph_feature_count; ++f)
      for (std::size_t p = 0; p < graph_part_count; ++p) pairs[f][p] += seen[f][p];
  }
  /// Whether a pair can be: groups of images are refused where statistics are of the whole batch, and direct arithmetic has no grid.
  bool is_possible(std::size_t feature, std::size_t part) const {
    const std::string_view f = graph_features[feature], p = graph_parts[part];
    return !(f == "batch norm" && p == "Images") && !(direct && p == "Winograd grid");
  }
  /// Cases that a pair lacks.
  int lacks(std::size_t f, std::size_t p) const { return is_possible(f, p) ? std::max(0, wanted - pairs[f][p]) : 0; }
  /// Feature and part that lack most cases; if none does, `feature` and a part that every network has a use for.
  std::pair<std::size_t, std::size_t> rarest_pair(std::size_t feature) const {
    std::pair<std::size_t, std::size_t> rarest{feature, 0};
    for (std::size_t f = 0, most = 0; f < graph_feature_count; ++f)
      for (std::size_t p = 0; p < graph_part_count; ++p)
        if (const auto missing = static_cast<std::size_t>(lacks(f, p)); missing > most) most = missing, rarest = {f, p};
    return rarest;
  }
  /// `count` parts that a network has a use for, those first whose pairs with its features lack most; the others in turn, from `turn` on.
  std::vector<std::size_t> rarest_parts(const Table& table, std::size_t count, std::size_t turn) const {
    const GraphFeatureSet has = graph_features_of(table);
    std::vector<std::pair<int, std::size_t>> list;
    for (std::size_t k = 0; k < graph_part_count; ++k) {
      const std::size_t p = (turn + k) % graph_part_count;
      if (!has_use_for(table, graph_parts[p], direct)) continue;
      int all = 0;
      for (std::size_t f = 0; f < graph_feature_count; ++f) all += has[f] ? lacks(f, p) : 0;
      list.push_back({-all, p});
    }
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::size_t> chosen;
    for (std::size_t k = 0; k < std::min(count, list.size()); ++k) chosen.push_back(list[k].second);
    return chosen;
  }
  /// The least of all possible pairs.
  int least_pair() const {
    int least = cases;
    for (std::size_t f = 0; f < graph_feature_count; ++f)
      for (std::size_t p = 0; p < graph_part_count; ++p)
        if (is_possible(f, p)) least = std::min(least, pairs[f][p]);
    return least;
  }
  std::string table() const {
    std::string text = "cases of each pair; columns:";
    for (std::size_t p = 0; p < graph_part_count; ++p) text += (p ? ", " : " ") + std::string(graph_parts[p]);
    for (std::size_t f = 0; f < graph_feature_count; ++f) {
      std::array<char, 40> cell{};
      std::snprintf(cell.data(), cell.size(), "\n%-23s", graph_features[f]);
      text += cell.data();
      for (const int count : pairs[f]) std::snprintf(cell.data(), cell.size(), "%5d", count), text += cell.data();
    }
    return text;
  }
};
/// A policy that has a part; everything else is drawn. May turn out infeasible.
inline PolicySpec graph_policy_with(Dice& dice, std::string_view part, const RandomNetwork& net, const Target& target) {
  if (index_of(graph_parts, part) < part_count) return policy_with(dice, part, net, target);
  PolicySpec p = policy_with(dice, part == "CheckpointAtSums" ? dice.pick({"Column", "Overlap", "Share"}) : "Overlap", net, target);
  Partition& one = p.partitions[0];
  if (part == "CheckpointAtSums") p.checkpoints = {.rule = Checkpoints::Rule::sums, .every = dice.upto(1, 2)};
  if (is_of_extra_passes(part)) {
    one.passes = part == "OneExtraPass" ? NormPasses::one : NormPasses::all;
    one.forward_passes = part.ends_with("both ways") || (part == "OneExtraPass" && dice.chance(0.5));
    if (dice.chance(0.5)) one.recompute = Recompute::cheap;   // the first pass keeps what norms read
    if (dice.chance(0.6)) p.checkpoints = {};                 // so that there are norms within
  }
  if (part == "GradientsInPlace") {
    p.gradients_in_place = true;
    one.forward = one.backward = dice.upto(3, 6);
    if (dice.chance(0.5)) p.checkpoints = {.rule = Checkpoints::Rule::every, .every = dice.upto(2, 4)};
  }
  return p;
}
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
    if (!has_lone_value(table) && graph_features_of(table)[index_of(graph_features, feature)]) return net;
  }
}
}   // namespace lrcnn::testing
