#pragma once
// Stages: runs of layers between two tensors that exist in full height, and how each is cut.
//
// A stage ends where the policy puts a checkpoint and where a barrier demands one: behind a global pooling, and before
// a flatten, whose map must be whole. Stages form a graph whose edges are full-height tensors; for a chain of layers
// each stage reads the tensor that the one before it writes.
#include <lrcnn/plan/stream_schedule.hpp>
#include <lrcnn/plan/target.hpp>
#include <string>
namespace lrcnn {
/// A run of layers with its cuts.
struct Stage {
  Index first = 0;          ///< first layer; also the number of the tensor that the stage reads
  Index last = 0;           ///< one past its last layer; also the number of the tensor that it writes
  bool reduces = false;     ///< its last layer is a global pooling, which takes rows as they come
  bool vector = false;      ///< it holds flatten or linear: no rows to cut
  Partition partition{};    ///< as carried out: counts are at most what the rows carry, images at least 1
  Schedule forward;         ///< over the chain, without a closing global pooling
  Schedule backward;        ///< likewise; empty where slabs need not reach the top, which are those of a forward pass alone
  /// Layers of the chain that rows travel through.
  constexpr Index chain_layers() const { return last - first - (reduces ? 1 : 0); }
  friend constexpr bool operator==(const Stage&, const Stage&) = default;
};
namespace detail {
constexpr bool is_pool(const Layer& layer) { return layer.kind == Kind::max_pool || layer.kind == Kind::avg_pool; }
/// Whether the policy keeps the output of layer `l`.
constexpr bool is_checkpoint(const Table& table, const PolicySpec& policy, Index l) {
  using enum Checkpoints::Rule;
  const Layer& layer = table.node(l).layer;
  switch (policy.checkpoints.rule) {
    case none: return false;
    case pools: return is_pool(layer);
    case every: return (l + 1) % policy.checkpoints.every == 0;
    case named:
      for (const Name& name : policy.checkpoints.names)
        if (!name.empty() && name == layer.name) return true;
      return false;
  }
  return false;
}
/// Whether a stage must end behind layer `l`, whatever the policy says.
constexpr bool is_barrier(const Table& table, Index l) {
  if (l + 1 == table.size() || table.node(l).layer.kind == Kind::global_avg_pool) return true;
  return table.node(l + 1).layer.kind == Kind::flatten || (ends_rows(table.node(l + 1).layer) && !ends_rows(table.node(l).layer) &&
                                                           table.node(l).layer.kind != Kind::activation);
}
/// Names in a policy that no layer bears would silently keep nothing.
constexpr void check_names(const Table& table, const PolicySpec& policy) {
  if (policy.checkpoints.rule != Checkpoints::Rule::named) return;
  for (const Name& name : policy.checkpoints.names) {
    bool found = name.empty();
    for (const Node& node : table.nodes) found = found || node.layer.name == name;
    if (!found)
      throw PlanError(error_text("checkpoint at layer '" + std::string(name.view()) + "', which the network does not have",
                                 "CheckpointAt<...> names layers of the network",
                                 "use a name that the network's table shows, such as '" +
                                     std::string(table.node(0).layer.name.view()) + "'"));
  }
}
/// Row rules of a stage's chain.
constexpr std::vector<RowRule> row_rules(const Table& table, const Stage& stage, const Target& target, Arithmetic arithmetic) {
  std::vector<RowRule> rules;
  for (Index l = stage.first; l < stage.first + stage.chain_layers(); ++l) {
    const Node& node = table.node(l);
    RowRule rule{.in_height = node.in.h, .out_height = node.out.h,
                 .in_row_bytes = target.bytes(1, node.in.c, 1, node.in.w)};
    if (is_windowed(node.layer)) rule.axis = row_axis(node.layer.window);
    const bool tiled = arithmetic == Arithmetic::winograd && node.layer.kind == Kind::conv &&
                       node.layer.window.kernel == Pair(3) && node.layer.window.stride == Pair(1) &&
                       node.layer.window.dilation == Pair(1) && node.layer.groups == 1;
    if (tiled) rule.grid = 4;   // output rows of a tile of F(4x4, 3x3)
    if (node.layer.kind == Kind::activation && !rules.empty()) rule.grid = rules.back().grid;
    rules.push_back(rule);
  }
  return rules;
}
inline std::string stage_name(const Table& table, const Stage& stage) {
  return "stage " + std::string(table.node(stage.first).layer.name.view()) + ".." +
         std::string(table.node(stage.last - 1).layer.name.view());
}
}  // namespace detail
/// Ranges of layers between full-height tensors, not cut yet.
constexpr std::vector<Stage> split_stages(const Table& table, const PolicySpec& policy) {
  detail::check_names(table, policy);
  std::vector<Stage> stages;
  Index first = 0;
  bool vector = false;
  for (Index l = 0; l < table.size(); ++l) {
    vector = vector || ends_rows(table.node(l).layer);
    if (!detail::is_barrier(table, l) && (vector || !detail::is_checkpoint(table, policy, l))) continue;
    Stage stage;
    stage.first = first;
    stage.last = l + 1;
    stage.reduces = table.node(l).layer.kind == Kind::global_avg_pool;
    stage.vector = vector;
    stages.push_back(stage);
    first = l + 1;
  }
  return stages;
}
/// The stages of a network under a policy, with all cuts chosen. `images`: how many the step has at once.
/// A count given for all stages alike asks the stage that carries most; stages with fewer rows are cut as finely as
/// they can be. A count given for one stage (Stages<...>) is carried out there or refused.
/// `streams`: the forward pass alone is planned, so slabs that share rows need not reach the stage's top; forward counts alone
/// matter, and whichever way of cutting makes the largest slab smaller is taken.
/// Errors: PlanError naming the stage, the count asked for and the largest feasible count.
constexpr std::vector<Stage> make_stages(const Table& table, const PolicySpec& policy, const Target& target, Index images,
                                         bool streams = false) {
  std::vector<Stage> stages = split_stages(table, policy);
  const bool alike = policy.partition_count == 1;
  Index most = 1, asked = 1, best_stage = 0;
  const char* const rule = streams ? "every slab owns a row of its first layer's output; the largest feasible count is "
                                   : "every slab owns a row of every layer's output; the largest feasible count is ";
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Stage& stage = stages[i];
    stage.partition = policy.partition(static_cast<Index>(i));
    Partition& p = stage.partition;
    if (stage.vector) p.cut = Cut::column;
    p.images = p.images == 0 ? images : std::min(p.images, images);
    const auto rules = detail::row_rules(table, stage, target, policy.arithmetic);
    const Shape& out = table.shape(stage.first + stage.chain_layers());
    const detail::Chain chain{rules, out.h, target.bytes(1, out.c, 1, out.w)};
    if (p.cut == Cut::column) p.forward = 1;
    if (p.cut == Cut::column || streams) p.backward = p.forward;
    const Index wanted = std::max(p.forward, p.backward);
    asked = std::max(asked, wanted);
    const auto refuse = [&](Index largest) {
      throw PlanError(error_text(detail::stage_name(table, stage) + " cannot be cut into " + std::to_string(wanted) +
                                     " slabs by " + to_string(policy.partition(static_cast<Index>(i))),
                                 rule + std::to_string(largest), "ask for at most " + std::to_string(largest) + " in this stage"));
    };
    if (streams && p.cut == Cut::share) {
      const Index largest = max_stream_slabs(chain), count = std::min(wanted, largest);
      if (!alike && wanted > largest) refuse(largest);
      if (count > most) most = count, best_stage = static_cast<Index>(i);
      p.forward = p.backward = count;
      stage.forward = best_stream_schedule(chain, count);
      continue;
    }
    std::vector<Index> finest = choose_cuts(chain, p.cut, wanted);
    if (finest.empty()) {
      const Index largest = max_slabs(chain, p.cut);
      if (!alike) refuse(largest);
      if (largest > most) most = largest, best_stage = static_cast<Index>(i);
      p.forward = std::min(p.forward, largest);
      p.backward = std::min(p.backward, largest);
      finest = choose_cuts(chain, p.cut, std::max(p.forward, p.backward));
    } else if (wanted > most) {
      most = wanted;
    }
    // Passes of a sharing stage must meet at common cuts: the coarser one uses every so many of the finer one's.
    const auto cuts_for = [&](Index count) {
      if (count == static_cast<Index>(finest.size())) return finest;
      if (p.cut == Cut::share) return thin_cuts(finest, count);
      return choose_cuts(chain, p.cut, count);
    };
    stage.forward = make_schedule(chain, p.cut, cuts_for(p.forward));
    stage.backward = make_schedule(chain, p.cut, cuts_for(p.backward));
  }
  if (alike && asked > most)
    throw PlanError(error_text("no stage can be cut into " + std::to_string(asked) + " slabs by " +
                                   to_string(policy.partition(0)) + " on input " + to_string(table.input),
                               rule + std::to_string(most) + ", in " +
                                   detail::stage_name(table, stages[static_cast<std::size_t>(best_stage)]),
                               "ask for at most " + std::to_string(most) + ", or for fewer layers in a stage by more checkpoints"));
  return stages;
}
}  // namespace lrcnn
