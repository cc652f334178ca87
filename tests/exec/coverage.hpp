#pragma once
// Which features of layers and parts of policies a plan really exercises, and networks and policies that have one.
//
// A pair (feature, part) counts when the layer with the feature lies in a stage that the plan runs with that part: a
// partition that was asked for and came out as a single slab does not count, nor a checkpoint that makes no stage.
#include <lrcnn/layer/conv.hpp>
#include "exec/user_layers.hpp"
#include "support/random_network.hpp"
#include <cstdio>
#include <iterator>
namespace lrcnn::testing {
inline constexpr std::array features{"conv",           "conv 1x1",
                                     "conv even",      "conv tall",
                                     "conv stride",    "conv stride>kernel",
                                     "conv dilation",  "conv groups",
                                     "conv depthwise", "conv asymmetric",
                                     "conv no bias",   "relu",
                                     "leaky +",        "leaky -",
                                     "silu",           "max pool",
                                     "max overlap",    "max padded",
                                     "avg pool",       "avg overlap",
                                     "avg padded",     "avg inside",
                                     "global pool",    "flatten",
                                     "linear",         "blur",
                                     "softplus",       "tanh"};
inline constexpr std::array parts{"Column",         "Overlap",       "Overlap F!=B", "Share",   "Share F<B",    "Share F>B",
                                  "one row",        "Winograd grid", "ByImages",     "Images",  "Stages",       "checkpoints: none",
                                  "pools",          "every k",       "named",        "KeepAll", "RecomputeAll", "RecomputeCheap",
                                  "RecomputeLight", "Keep",          "Section",      "batch 1", "batch > 1",    "RecomputeInput"};
constexpr std::size_t feature_count = features.size(), part_count = parts.size();
using FeatureSet = std::array<bool, feature_count>;
using PartSet = std::array<bool, part_count>;
constexpr std::size_t index_of(const auto& names, std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return i;
  throw "no such name";
}
inline FeatureSet features_of(const Node& node) {
  FeatureSet set{};
  const Layer& y = node.layer;
  const Axis rows = row_axis(y.window);
  const auto has = [&](std::string_view name, bool value) { set[index_of(features, name)] = value; };
  has("conv", y.kind == Kind::conv);
  if (y.kind == Kind::conv) {
    has("conv 1x1", rows.kernel == 1);
    has("conv even", rows.kernel % 2 == 0);
    has("conv tall", rows.kernel >= 5);
    has("conv stride", rows.stride > 1);
    has("conv stride>kernel", rows.stride > rows.kernel);
    has("conv dilation", rows.dilation > 1 && rows.kernel > 1);
    has("conv groups", y.groups > 1 && y.groups < node.in.c);
    has("conv depthwise", y.groups > 1 && y.groups == node.in.c);
    has("conv asymmetric", rows.pad_begin != rows.pad_end);
    has("conv no bias", !y.bias);
  }
  if (y.kind == Kind::activation) {
    has("relu", y.activation.function == Function::relu);
    has("leaky +", y.activation.function == Function::leaky_relu && y.activation.slope > 0);
    has("leaky -", y.activation.function == Function::leaky_relu && y.activation.slope < 0);
    has("silu", y.activation.function == Function::silu);
  }
  const bool padded = rows.pad_begin + rows.pad_end > 0;
  if (y.kind == Kind::max_pool) has("max pool", true), has("max overlap", rows.kernel > rows.stride), has("max padded", padded);
  if (y.kind == Kind::avg_pool) {
    has("avg pool", true), has("avg overlap", rows.kernel > rows.stride);
    has("avg padded", padded && y.count_padding), has("avg inside", padded && !y.count_padding);
  }
  has("global pool", y.kind == Kind::global_avg_pool), has("flatten", y.kind == Kind::flatten), has("linear", y.kind == Kind::linear);
  has("blur", y.custom == &blur_layer), has("softplus", y.custom == Softplus::layer().custom), has("tanh", y.custom == &tanh_layer);
  return set;
}
/// Parts that a plan runs `stage` with. Where the stage is a vector's, cuts of any stage of the plan count.
inline PartSet parts_of(const Plan& plan, const Stage& stage) {
  PartSet set{};
  const auto has = [&](std::string_view name, bool value) { set[index_of(parts, name)] = value; };
  bool overlap = false, share = false, fewer = false, more = false, one_row = false, grid = false, column = false;
  for (const Stage& s : plan.stages) {
    if (!stage.vector && &s != &stage) continue;
    const bool keeps = plan.options.training && stage_needs(plan.table, s, plan.policy.recompute_in(s.partition)).any_kept;
    const Index b = s.backward.slabs();
    const Index f = keeps ? b : s.forward.slabs();   // what is kept by slabs fixes the forward cuts
    const bool cut = std::max(f, b) > 1;
    column = column || !cut;
    overlap = overlap || (cut && s.partition.cut == Cut::overlap);
    share = share || (cut && s.partition.cut == Cut::share);
    fewer = fewer || (cut && f < b), more = more || (cut && f > b);
    for (Index n = 0; cut && n < b; ++n) one_row = one_row || s.backward.at(n, s.tensors() - 1).own.size() == 1;
    for (const auto& rule : row_rules(plan.table, s, plan.target, plan.policy.conv_algorithm_in(s.partition)).layer)
      grid = grid || (cut && rule.grid > 1);
  }
  has("Column", column), has("Overlap", overlap), has("Overlap F!=B", overlap && (fewer || more));
  has("Share", share), has("Share F<B", share && fewer), has("Share F>B", share && more);
  has("one row", one_row), has("Winograd grid", grid);
  const Index group = plan.policy.images > 0 ? std::min(plan.policy.images, plan.table.input.n) : plan.table.input.n;
  has("ByImages", stage.partition.images < group), has("Images", group < plan.table.input.n);
  bool differ = false;
  for (const Stage& s : plan.stages) differ = differ || s.partition != plan.stages[0].partition;
  has("Stages", plan.policy.partition_count > 1 && differ);
  PolicySpec bare = plan.policy;
  bare.checkpoints = {};
  using enum Checkpoints::Rule;
  const auto rule = plan.policy.checkpoints.rule;
  const bool kept = split_stages(plan.table, bare).size() < plan.stages.size();
  has("checkpoints: none", rule == none), has("pools", rule == pools && kept), has("every k", rule == every && kept),
      has("named", rule == named && kept);
  const Recompute recompute = plan.policy.recompute_in(stage.partition);
  has("KeepAll", plan.policy.recompute == Recompute::none), has("RecomputeAll", recompute == Recompute::all);
  has("RecomputeCheap", recompute == Recompute::cheap), has("RecomputeLight", recompute == Recompute::light);
  has("Keep", stage.partition.recompute == Recompute::none && plan.policy.recompute != Recompute::none);
  has("Section", recompute != Recompute::none && recompute != plan.policy.recompute);
  has("batch 1", plan.table.input.n == 1), has("batch > 1", plan.table.input.n > 1);
  for (const Stage& s : plan.stages)   // a stage that ends in a global pooling is the last of those whose input is made again
    if (&s == &stage || stage.vector) set[index_of(parts, "RecomputeInput")] |= s.supplies || (s.recomputes_input && s.reduces);
  return set;
}
/// Cases counted by pair of feature and part, and by partition x checkpoints x recompute.
struct Coverage {
  static constexpr int wanted = 20;
  bool direct = false;   ///< all convolutions are, so that there is no Winograd grid
  std::array<std::array<int, part_count>, feature_count> pairs{};
  std::array<std::array<std::array<int, 4>, 4>, part_count> triples{};
  int cases = 0, infeasible = 0;
  void add(const Plan& plan) {
    ++cases;
    std::array<PartSet, feature_count> seen{};
    PartSet all{};
    for (const Stage& stage : plan.stages) {
      const PartSet here = parts_of(plan, stage);
      for (std::size_t p = 0; p < part_count; ++p) all[p] = all[p] || here[p];
      for (Index l = stage.first; l < stage.last; ++l) {
        const FeatureSet layer = features_of(plan.table.node(l));
        for (std::size_t f = 0; f < feature_count; ++f)
          for (std::size_t p = 0; layer[f] && p < part_count; ++p) seen[f][p] = seen[f][p] || here[p];
      }
    }
    for (std::size_t f = 0; f < feature_count; ++f)
      for (std::size_t p = 0; p < part_count; ++p) pairs[f][p] += seen[f][p];
    for (std::size_t p = 0; p < part_count; ++p)
      triples[p][static_cast<std::size_t>(plan.policy.checkpoints.rule)][static_cast<std::size_t>(plan.policy.recompute)] += all[p];
  }
  bool is_possible(std::size_t part) const { return !direct || part != index_of(parts, "Winograd grid"); }
  /// Cases that a pair lacks.
  int lacks(std::size_t f, std::size_t p) const { return is_possible(p) ? std::max(0, wanted - pairs[f][p]) : 0; }
  int least_pair() const {
    int least = cases;
    for (const auto& row : pairs)
      for (std::size_t p = 0; p < part_count; ++p)
        if (is_possible(p)) least = std::min(least, row[p]);
    return least;
  }
  /// Of the parts that say how a plan is cut. What KeepAll and RecomputeLight keep by slabs leaves no choice of other forward cuts.
  int least_triple() const {
    int least = cases;
    for (std::size_t p = 0; p <= index_of(parts, "Stages"); ++p)
      for (const auto& rules : triples[p])
        for (const Recompute r : {Recompute::all, Recompute::cheap, Recompute::none, Recompute::light}) {
          if (r == Recompute::none && std::string_view(parts[p]).ends_with("B")) break;
          least = std::min(least, rules[static_cast<std::size_t>(r)]);
        }
    return least;
  }
  std::string table() const {
    std::string text = "cases of each pair; columns:";
    for (std::size_t p = 0; p < part_count; ++p) text += (p ? ", " : " ") + std::string(parts[p]);
    for (std::size_t f = 0; f < feature_count; ++f) {
      std::array<char, 40> cell{};
      std::snprintf(cell.data(), cell.size(), "\n%-20s", features[f]);
      text += cell.data();
      for (const int count : pairs[f]) std::snprintf(cell.data(), cell.size(), "%5d", count), text += cell.data();
    }
    return text;
  }
};
/// A layer that has a feature, for an input of this shape; tried again until it fits.
inline Layer layer_with(Dice& dice, std::string_view feature, const Shape& in) {
  Layer y;
  const auto kernel = [&](Index low, Index high) { return Pair{dice.upto(low, high), dice.upto(1, 3)}; };
  if (feature.starts_with("conv")) {
    y = {.kind = Kind::conv,
         .window = {.kernel = kernel(1, 3), .pad = {dice.upto(0, 1), dice.upto(0, 1)}},
         .channels = dice.upto(1, 4),
         .bias = dice.chance(0.6)};
    if (feature == "conv 1x1") y.window.kernel = 1, y.window.pad = 0;
    if (feature == "conv even") y.window.kernel.h = dice.pick<Index>({2, 4, 6});
    if (feature == "conv tall") y.window.kernel.h = dice.upto(5, 7), y.window.pad = {dice.upto(0, 3), dice.upto(0, 3), 1, 1};
    if (feature == "conv stride") y.window.kernel.h = dice.upto(2, 4), y.window.stride = {2, dice.upto(1, 2)};
    if (feature == "conv stride>kernel") y.window.kernel.h = dice.upto(1, 2), y.window.stride.h = y.window.kernel.h + dice.upto(1, 2);
    if (feature == "conv dilation") y.window.kernel.h = dice.upto(2, 3), y.window.dilation = {dice.upto(2, 3), dice.upto(1, 2)};
    if (feature == "conv asymmetric") y.window.pad = {dice.upto(0, 1), dice.upto(2, 3), dice.upto(0, 1), dice.upto(0, 1)};
    if (feature == "conv groups") y.groups = 2, y.channels = 2 * dice.upto(1, 3);
    if (feature == "conv depthwise") y.groups = in.c, y.channels = in.c * dice.upto(1, 2);
    if (feature == "conv no bias") y.bias = false;
  } else if (feature == "relu" || feature == "silu" || feature.starts_with("leaky")) {
    y.activation.function = Function::leaky_relu;
    if (feature == "relu") y.activation.function = Function::relu;
    if (feature == "silu") y.activation.function = Function::silu;
    y.activation.slope = feature == "leaky +" ? 0.125 : feature == "leaky -" ? -0.25 : 0;
  } else if (feature.starts_with("max") || feature.starts_with("avg")) {
    y.kind = feature.starts_with("max") ? Kind::max_pool : Kind::avg_pool;
    y.window = {.kernel = {dice.upto(2, 3), dice.upto(1, 3)}, .stride = {dice.upto(1, 3), dice.upto(1, 2)}};
    if (feature.ends_with("overlap")) y.window.stride.h = dice.upto(1, y.window.kernel.h - 1);
    if (feature.ends_with("padded") || feature.ends_with("inside")) y.window.pad = {dice.upto(0, 1), 1, 0, dice.upto(0, y.window.kernel.w - 1)};
    y.count_padding = feature != "avg inside";
  } else if (feature == "blur") {
    y = Blur<>::layer();
    y.window = {.kernel = {dice.upto(2, 4), 1}, .stride = {dice.upto(1, 2), 1}, .pad = {dice.upto(0, 2), dice.upto(0, 1), 0, 0}};
  } else {
    y = feature == "softplus" ? Softplus::layer() : Tanh::layer();
  }
  return y;
}
/// A small network that has a layer with the feature. `tile`: and a convolution that Winograd's grid applies to.
inline RandomNetwork network_with(Dice& dice, std::string_view feature, bool tile) {
  const std::string_view end = feature == "flatten" ? "flatten" : feature == "global pool" ? "global pool" : "";
  for (;;) {
    RandomNetwork net;
    net.input = {dice.chance(0.35) ? 1 : dice.upto(2, 3), feature == "conv groups" ? 4 : dice.upto(1, 4), dice.upto(9, 36), dice.upto(3, 7)};
    Shape shape = net.input;
    bool fits = true;
    const auto add = [&](const Layer& y) {
      fits = fits && fault_of(y, shape) == Fault::none;
      if (!fits) return;
      shape = output_shape(y, shape);
      net.layers.push_back(y);
      fits = shape.c <= 12 && shape.h * shape.w <= 400;
    };
    const Index count = dice.upto(2, 5), place = dice.upto(0, count - 1), tile_place = dice.upto(0, count - 1);
    for (Index i = 0; i < count; ++i) {
      if (tile && i == tile_place) add(Conv<3>::layer());
      const bool listed = end.empty() && feature != "linear";
      if (listed && i == place) add(layer_with(dice, feature, shape));
      else if (dice.chance(0.5)) add(layer_with(dice, features[static_cast<std::size_t>(dice.upto(0, 10))], shape));
      else add(layer_with(dice, features[static_cast<std::size_t>(dice.upto(11, feature_count - 1))], shape));
    }
    if (!fits || shape.h < 4) continue;
    const bool pooled = end.empty() ? dice.chance(0.5) : end == "global pool";
    if (pooled || shape.count() <= 600 * shape.n) net.layers.push_back({.kind = pooled ? Kind::global_avg_pool : Kind::flatten});
    else continue;
    if (dice.chance(0.3)) {
      net.layers.push_back({.kind = Kind::linear, .channels = dice.upto(2, 5), .bias = dice.chance(0.5)});
      net.layers.push_back(layer_with(dice, dice.pick<const char*>({"relu", "leaky +", "leaky -", "silu", "softplus", "tanh"}), shape));
    }
    net.layers.push_back({.kind = Kind::linear, .channels = dice.upto(2, 5), .bias = true});
    return net;
  }
}
/// The most slabs that any stage of a network can be cut into.
inline Index most_slabs(const Table& table, const PolicySpec& policy, const Target& target, Cut cut) {
  Index most = 1;
  for (const Stage& stage : split_stages(table, policy)) {
    if (stage.vector) continue;
    most = std::max(most, max_slabs(row_rules(table, stage, target, policy.conv_algorithm_in(policy.partition(0))).graph(), cut));
  }
  return most;
}
/// A policy that has a part; everything else is drawn. May turn out infeasible.
inline PolicySpec policy_with(Dice& dice, std::string_view part, const RandomNetwork& net, const Target& target) {
  PolicySpec p = random_policy(dice, net);
  using enum Checkpoints::Rule;
  if (part == "checkpoints: none") p.checkpoints = {};
  if (part == "pools") p.checkpoints = {.rule = pools};
  if (part == "every k") p.checkpoints = {.rule = every, .every = dice.upto(1, 3)};
  const Table table = make_table(net.layers, net.input);
  if (part == "named") p.checkpoints = {.rule = named, .names = {table.node(dice.upto(0, std::max<Index>(0, table.size() - 4))).layer.name}};
  if (part == "KeepAll") p.recompute = Recompute::none;
  if (part == "RecomputeAll") p.recompute = Recompute::all;
  if (part == "RecomputeCheap") p.recompute = Recompute::cheap;
  if (part == "RecomputeLight") p.recompute = Recompute::light;
  if (part == "Keep") p.recompute = dice.pick({Recompute::all, Recompute::cheap, Recompute::light});
  if (part == "Images") p.images = dice.upto(1, std::max<Index>(1, net.input.n - 1));
  if (part == "Winograd grid") compute_by(p, ConvAlgorithm::winograd);
  Partition one = p.partitions[0];
  if (part == "Keep") one.recompute = Recompute::none;
  else if (part == "Section") one.recompute = dice.pick({Recompute::all, Recompute::cheap, Recompute::light});
  else if (part == "RecomputeInput") one.input = SectionInput::recompute, one.recompute = Recompute::all;
  else if (part.starts_with("Recompute") || part.ends_with("B")) one.recompute = Recompute::of_policy;
  if (part == "Section" && p.recompute == one.recompute) p.recompute = Recompute::none;
  if (part == "Column") one.cut = Cut::column, one.forward = one.backward = 1;
  if (part.starts_with("Overlap") || part.starts_with("Share") || part == "one row" || part == "Winograd grid") {
    one.cut = part.starts_with("Overlap") ? Cut::overlap : part.starts_with("Share") ? Cut::share : dice.pick({Cut::overlap, Cut::share});
    one.forward = one.backward = dice.upto(2, 5);
    if (part.ends_with("F<B")) one.forward = dice.upto(1, one.backward - 1), p.recompute = dice.pick({Recompute::all, Recompute::cheap});
    if (part.ends_with("F>B")) one.backward = dice.upto(1, one.forward - 1), p.recompute = dice.pick({Recompute::all, Recompute::cheap});
    if (part.ends_with("F!=B")) one.forward = dice.upto(1, one.backward - 1), p.recompute = dice.pick({Recompute::all, Recompute::cheap});
    if (part.ends_with("F!=B") && dice.chance(0.5)) std::swap(one.forward, one.backward);
  }
  if (part == "ByImages") one.images = 1;
  if (one.cut == Cut::share) one.passes = NormPasses::none, one.forward_passes = false;   // slabs of extra passes hand no rows on
  if (part == "RecomputeInput" && dice.chance(0.9)) p.checkpoints = {.rule = every, .every = dice.upto(1, 3)};
  p.partitions[0] = one;
  if (part == "Stages") {
    if (p.checkpoints.rule == none && dice.chance(0.4)) p.checkpoints = {.rule = every, .every = dice.upto(1, 3)};
    p.partition_count = dice.upto(2, 4);
    for (Index i = 1; i < p.partition_count; ++i)
      p.partitions[static_cast<std::size_t>(i)] = {dice.pick({Cut::column, Cut::overlap, Cut::share}), 2, 2, 0};
  } else {
    p.partition_count = 1;
  }
  if (part == "one row") p.partitions[0].forward = p.partitions[0].backward = most_slabs(table, p, target, one.cut);
  for (Partition& q : p.partitions)
    if (q.cut == Cut::column) q.forward = q.backward = 1;
  return p;
}
}   // namespace lrcnn::testing
