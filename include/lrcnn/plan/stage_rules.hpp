#pragma once
// Where stages end, and which rows their layers read: questions to the layers of a table and to a policy.
#include <lrcnn/layer/statistics.hpp>
#include <lrcnn/plan/stage.hpp>
#include <lrcnn/plan/target.hpp>
#include <string>
namespace lrcnn {
/// Images that go through all stages together.
constexpr Index group_images(const Table& table, const PolicySpec& policy) {
  return policy.images > 0 ? std::min(policy.images, table.input.n) : table.input.n;
}
namespace detail {
constexpr bool is_pool(const Layer& layer) { return layer.kind == Kind::max_pool || layer.kind == Kind::avg_pool; }
/// Whether layer `l` ends a residual block, and the number of the block, from 1: it is a sum, or the activation behind one. 0: it does not.
constexpr Index ends_block(const Table& table, Index l) {
  const auto is_sum = [&](Index n) { return n >= 0 && table.node(n).layer.kind == Kind::sum; };
  const auto activates = [&](Index n) { return n < table.size() && is_activation(table.node(n).layer) && table.node(n).input == n; };
  if (is_sum(l) ? activates(l + 1) : !(activates(l) && is_sum(l - 1))) return 0;
  Index count = 0;
  for (Index n = 0; n <= l; ++n) count += is_sum(n);
  return count;
}
/// Whether the policy keeps the output of layer `l`.
constexpr bool is_checkpoint(const Table& table, const PolicySpec& policy, Index l) {
  using enum Checkpoints::Rule;
  const Layer& layer = table.node(l).layer;
  switch (policy.checkpoints.rule) {
    case none: return false;
    case pools: return is_pool(layer);
    case sums: return ends_block(table, l) > 0 && ends_block(table, l) % policy.checkpoints.every == 0;
    case every: return (l + 1) % policy.checkpoints.every == 0;
    case named:
      for (const Name& name : policy.checkpoints.names) {
        if (name.empty()) break;
        if (name == layer.name) return true;
      }
      return false;
  }
  return false;
}
/// Whether a stage must end behind layer `l`, whatever the policy says.
constexpr bool is_barrier(const Table& table, Index l) {
  if (l + 1 == table.size() || rules_of(table.node(l).layer).reduces) return true;
  return table.node(l + 1).layer.kind == Kind::flatten ||
         (ends_rows(table.node(l + 1).layer) && !ends_rows(table.node(l).layer) && !is_activation(table.node(l).layer));
}
/// Whether nothing in a stage has more than one row.
constexpr bool has_one_row(const Table& table, const Stage& stage) {
  for (Index l = stage.first; l < stage.last; ++l)
    if (table.node(l).in.h > 1 || table.node(l).out.h > 1) return false;
  return true;
}
/// The layers that work on vectors, which have no rows to cut. They share no section with layers of maps, whatever the order in which branches
/// are executed. Means, which have one row behind a global pooling, may be in a section with either, and so may an input of one pixel.
struct VectorLayers {
  std::vector<char> are{};        ///< of each layer: it writes a vector, or means behind a layer that does
  std::vector<char> together{};   ///< of each layer: likewise, or means before a layer that does
  constexpr explicit VectorLayers(const Table& table)
      : are(static_cast<std::size_t>(table.size()), 0), together(static_cast<std::size_t>(table.size()), 0) {
    enum Rows : char { map, means, none };
    std::vector<Rows> rows(static_cast<std::size_t>(table.tensors()), map);   // of each tensor
    if (table.input.h * table.input.w == 1) rows[0] = means;
    for (Index l = 0; l < table.size(); ++l) {
      const Node& node = table.node(l);
      const Rows in = item(rows, node.input), other = node.other < 0 ? in : item(rows, node.other);
      const bool reduces = rules_of(node.layer).reduces, one_row = in != map && other != map && node.out.h == 1;
      Rows& out = item(rows, l + 1);
      if (is_flat(node.layer, in == none, other == none)) out = none;
      else if (reduces || one_row) out = means;
      item(are, l) = out == none || (out == means && !reduces && l > 0 && item(are, l - 1));
    }
    for (Index l = table.size() - 1; l >= 0; --l) {
      const bool before = l + 1 < table.size() && item(together, l + 1) && item(rows, l + 1) == means && !rules_of(table.node(l).layer).reduces;
      item(together, l) = item(are, l) || before;
    }
  }
  /// Whether a section must end behind layer l, since the next one works on vectors and it does not, or the other way round.
  constexpr bool part(Index l) const { return l + 1 < static_cast<Index>(together.size()) && item(together, l) != item(together, l + 1); }
};
/// Names in a policy that no layer bears would silently keep nothing.
constexpr void check_names(const Table& table, const PolicySpec& policy) {
  if (policy.checkpoints.rule != Checkpoints::Rule::named) return;
  for (const Name& name : policy.checkpoints.names) {
    if (name.empty()) return;
    bool found = false;
    for (const Node& node : table.nodes) found = found || node.layer.name == name;
    if (!found)
      throw PlanError(error_text("checkpoint at layer '" + std::string(name.view()) + "', which the network does not have",
                                 "CheckpointAt<...> names layers of the network",
                                 "use a name that the network's table shows, such as '" + std::string(table.node(0).layer.name.view()) + "'"));
  }
}
/// Whether Winograd's algorithm could compute a layer: a convolution with 3x3 filters, stride 1, dense.
constexpr bool fits_winograd(const Layer& y) {
  return y.kind == Kind::conv && y.window.kernel == Pair(3) && y.window.stride == Pair(1) && y.window.dilation == Pair(1) && y.groups == 1;
}
/// Rows and columns of a tile of Winograd's algorithm, F(4x4, 3x3).
inline constexpr Index winograd_tile = 4;
/// Whether a norm needs its input whole before it begins.
constexpr bool waits(const Node& node, bool training) { return node.layer.kind == Kind::norm && has_statistics(node.layer, training); }
/// Whether training takes statistics of the whole batch, so that its images cannot go through the network one after the other.
constexpr bool takes_statistics_of_batch(const Table& table) {
  return std::any_of(table.nodes.begin(), table.nodes.end(),
                     [](const Node& node) { return waits(node, true) && node.layer.norm.over == Norm::Over::batch; });
}
}   // namespace detail
/// What a RowGraph of a stage refers to.
struct RowRules {
  std::vector<RowRule> layer{};
  std::vector<TensorRule> tensor{};   ///< empty for a chain
  std::vector<detail::TensorCut> scratch{};
  Index height = 1, last_row_bytes = 0, inputs = 1;
  /// Pre: the rules outlive the graph.
  constexpr RowGraph graph() { return {layer, height, last_row_bytes, inputs, tensor, scratch.data()}; }
};
/// The stage of a table as the row algebra sees it. Rows cost what they do in the target's memory; with `conv_algorithm` winograd, cuts lie on
/// the grid of its tiles where they may.
constexpr RowRules row_rules(const Table& table, const Stage& stage, const Target& target, ConvAlgorithm conv_algorithm) {
  RowRules rules;
  const bool chain = stage.is_chain() && stage.passes == 0;
  for (Index l = stage.first; l < stage.first + stage.chain_layers(); ++l) {
    const Node& node = table.node(l);
    RowRule rule{
        .axis = row_axis_of(node), .in_height = node.in.h, .out_height = node.out.h, .in_row_bytes = target.bytes(1, node.in.c, 1, node.in.w)};
    if (conv_algorithm == ConvAlgorithm::winograd && detail::fits_winograd(node.layer)) rule.grid = detail::winograd_tile;
    if (is_activation(node.layer) && chain && !rules.layer.empty()) rule.grid = rules.layer.back().grid;
    if (!chain) rule.in = stage.in(l - stage.first), rule.other = stage.other(l - stage.first);
    rule.other_whole = node.layer.kind == Kind::scale;
    rules.layer.push_back(rule);
  }
  const auto row_bytes = [&](const Shape& s) { return target.bytes(1, s.c, 1, s.w); };
  const Shape& top = table.shape(stage.tensor(stage.tensors() - 1));
  rules.height = top.h, rules.last_row_bytes = row_bytes(top), rules.inputs = stage.input_count();
  rules.scratch.resize(static_cast<std::size_t>(stage.tensors()));
  for (Index t = 0; !chain && t < stage.tensors(); ++t) {
    const Shape& s = table.shape(stage.tensor(t));
    rules.tensor.push_back({s.h, row_bytes(s), stage.use(t).readers > 0, stage.use(t).leaves});
  }
  for (Index l = 0; stage.passes > 0 && l < stage.chain_layers(); ++l)   // each row of such a norm's input has a gradient, read or not
    if (detail::waits(table.node(stage.first + l), true))
      for (const Index t : {stage.in(l), stage.out(l)}) item(rules.tensor, t).leaves = true;
  return rules;
}
namespace detail {
inline std::string layers_name(const Table& table, Index first, Index last) {
  return std::string(table.node(first).layer.name.view()) + ".." + std::string(table.node(last - 1).layer.name.view());
}
inline std::string stage_name(const Table& table, const Stage& stage) { return "stage " + layers_name(table, stage.first, stage.last); }
}   // namespace detail
}   // namespace lrcnn
