#pragma once
// The stages of a network under a policy, with all cuts chosen, or why it cannot be carried out.
#include <lrcnn/plan/offloaded_inputs.hpp>
#include <lrcnn/policy/check_policy.hpp>
#include <optional>
#include <string>
namespace lrcnn {
namespace detail {
/// What to ask for where a stage carries `largest` slabs: what all stages of its section do, since these have one count.
inline std::string fewer_slabs(const Table& table, const PolicySpec& policy, const Target& target, const std::vector<Stage>& stages,
                               const Stage& stage, Index largest, bool streams) {
  Index first = stage.first, last = stage.last;
  for (const Stage& other : stages) {
    if (other.section != stage.section || other.vector) continue;
    first = std::min(first, other.first), last = std::max(last, other.last);
    const Partition& partition = policy.partition(stage.partition_number);
    const Cut cut = partition.cut;
    RowRules rules = row_rules(table, other, target, policy.conv_algorithm_in(partition));
    largest = std::min(largest, streams && cut == Cut::share ? max_stream_slabs(rules.graph()) : max_slabs(rules.graph(), cut));
  }
  const std::string most = "ask for at most " + std::to_string(largest);
  if (first == stage.first && last == stage.last) return most + " in this stage";
  return most + " in " + layers_name(table, first, last) + ", which norms divide, or part it by a checkpoint";
}
/// What a norm that waits cannot work with.
constexpr void check_norms(const Table& table, const PolicySpec& policy, bool training) {
  for (const Node& node : table.nodes) {
    if (!waits(node, training)) continue;
    const auto layer = [&] { return "layer '" + std::string(node.layer.name.view()) + "' (" + std::string(norm_name(node.layer.norm)) + ")"; };
    const bool batch = node.layer.norm.over == Norm::Over::batch;
    if (training && has_one_value(node.layer, node.in)) {
      const FaultText text = fault_text(Fault::one_value);
      throw PlanError(error_text(layer() + " has one value in each " + (batch ? "channel" : "group") + " of input " + to_string(node.in), text.rule,
                                 text.change));
    }
    if (node.input == 0)
      throw PlanError(error_text(layer() + " reads the network's input",
                                 "its statistics need the whole input before its first row "
                                 "is used, and the input is read row by row",
                                 "normalise the data when it is loaded, or put a convolution first"));
    if (batch && policy.images > 0 && policy.images < table.input.n)
      throw PlanError(error_text(layer() + " is run by " + to_string(policy),
                                 "statistics of a batch need all of its images before the "
                                 "first is normalised, and Images<n> takes groups of them through the whole network",
                                 "cut the batch within stages instead: ByImages<" + std::to_string(policy.images) + ", ...>"));
  }
}
/// In a constant expression the text is lost. There an array of the slabs that fit is read at the number asked for, since both compilers show
/// the numbers of such an error.
template <class Text>
constexpr void throw_if_more_slabs_than_fit(Index asked, Index largest_feasible, const Text& text) {
  if (asked <= largest_feasible) return;
  if (std::is_constant_evaluated()) {
    const char* const slabs_that_fit = new char[static_cast<std::size_t>(largest_feasible)]{};
    if (slabs_that_fit[asked] != 0) return;
  }
  throw PlanError(text());
}
/// Whether a stage that begins with layer `begin` has a global pooling before it, with layers of one row at most between.
constexpr bool follows_means(const Table& table, Index begin) {
  for (Index l = begin - 1; l >= 0; --l) {
    if (rules_of(table.node(l).layer).reduces) return true;
    if (table.node(l).in.h > 1 || table.node(l).out.h > 1) return false;
  }
  return false;
}
/// The stages of layers [begin, end), not cut yet; `ends_by_policy(l)` tells whether the policy ends a section behind layer l. Sections and
/// their partitions are numbered from 0. Pre: sections begin with layers `begin` and `end`.
template <class EndsByPolicy>
constexpr std::vector<Stage> split_layers(const Table& table, Index begin, Index end, bool training, const EndsByPolicy& ends_by_policy) {
  std::vector<Stage> stages;
  Index first = begin, section = 0, number = 0, section_first = begin;   // number: of the policy's partition
  bool behind = follows_means(table, begin);
  const VectorLayers vectors(table);
  for (Index l = begin; l < end; ++l) {
    const bool vector = item(vectors.are, l);
    const bool scaled = l + 1 < table.size() && table.node(l + 1).layer.kind == Kind::scale && table.node(l + 1).other > section_first;
    const bool waited = l + 1 < table.size() && waits(table.node(l + 1), training) && table.node(l + 1).input > first;
    const bool apart = l + 1 < table.size() && rules_of(table.node(l + 1).layer).reduces && table.node(l + 1).input != l + 1;
    const bool ends_section = l + 1 == end || apart || scaled || is_barrier(table, l) || vectors.part(l) || (!vector && ends_by_policy(l));
    if (!waited && !ends_section) continue;
    Stage stage;
    stage.first = first;
    stage.last = l + 1;
    stage.behind_means = behind && has_one_row(table, stage);
    stage.section = section;
    stage.partition_number = stage.behind_means && !stages.empty() ? stages.back().partition_number : number;
    section += ends_section, number += ends_section && !stage.behind_means;
    if (ends_section) section_first = l + 1;
    stage.reduces = rules_of(table.node(l).layer).reduces;
    stage.vector = vector;
    behind = stage.reduces || stage.behind_means;
    stages.push_back(stage);
    first = l + 1;
  }
  connect(table, stages, training);
  return stages;
}
/// Where a section that begins with layer `begin` must end at the latest. Pre: a section may begin there.
constexpr Index section_end(const Table& table, Index begin, bool training) {
  const std::vector<Stage> stages = split_layers(table, begin, table.size(), training, [](Index) { return false; });
  for (const Stage& stage : stages)
    if (stage.section > 0) return stage.first;
  return table.size();
}
}   // namespace detail
/// Ranges of layers between full-height tensors, not cut yet. `training`: statistics of batches are taken, not running ones.
constexpr std::vector<Stage> split_stages(const Table& table, const PolicySpec& policy, bool training = true) {
  detail::check_names(table, policy);
  return detail::split_layers(table, 0, table.size(), training, [&](Index l) { return detail::is_checkpoint(table, policy, l); });
}
/// The stages of a network under a policy, with all cuts chosen. `images`: how many the step has at once.
/// A count given for all stages alike asks the stage that carries most; stages with fewer rows are cut as finely as
/// they can be. A count given for one stage (Stages<...> of several) is carried out there or refused.
/// Where the output is handed on, the forward pass alone is planned, so slabs that share rows need not reach the stage's top; forward counts alone
/// matter, and whichever way of cutting makes the largest slab smaller is taken.
/// Errors: PlanError naming the stage, the count asked for and the largest feasible count; PlanError as check_policy().
constexpr std::vector<Stage> make_stages(const Table& table, const PolicySpec& policy, const Target& target, Index images,
                                         const PlanOptions& options = {}) {
  check_policy(policy);
  const bool streams = options.stores_output, training = options.training;
  detail::check_norms(table, policy, training);
  std::vector<Stage> stages = split_stages(table, policy, training);
  const bool alike = policy.partition_count == 1;
  const char* const rule = streams ? "every slab owns a row of its first layer's output; the largest feasible count is "
                                   : "every slab owns a row of every layer's output; the largest feasible count is ";
  const auto counts = detail::cut_stages(table, policy, target, images, options, stages, [&](const Stage& stage, Index wanted, Index largest) {
    if (!alike)
      detail::throw_if_more_slabs_than_fit(wanted, largest, [&] {
        return error_text(detail::stage_name(table, stage) + " cannot be cut into " + std::to_string(wanted) + " slabs by " +
                              to_string(policy.partition(stage.partition_number)),
                          rule + std::to_string(largest), detail::fewer_slabs(table, policy, target, stages, stage, largest, streams));
      });
    return true;
  });
  if (alike)
    detail::throw_if_more_slabs_than_fit(counts->asked, counts->most, [&] {
      return error_text("no stage can be cut into " + std::to_string(counts->asked) + " slabs by " + to_string(policy.partition(0)) + " on input " +
                            to_string(table.input),
                        rule + std::to_string(counts->most) + ", in " + detail::stage_name(table, item(stages, counts->best)),
                        "ask for at most " + std::to_string(counts->most) + ", or for fewer layers in a stage by more checkpoints");
    });
  if (!training || streams) return stages;
  const auto refuse = [&](const detail::RefusedInput& refused, const char* why_possible, const char* change, const char* what = "made again") {
    const bool mixed = refused.why == detail::other_way_below;
    if (refused.is_one && !alike)
      throw PlanError(error_text("the section of " + detail::stage_name(table, stages[refused.first]) + " is to have its input " + what + " by " +
                                     to_string(policy.partition(stages[refused.first].partition_number)) + ", and " + refused.why,
                                 mixed ? "inputs of sections that follow each other are made again all at once or each alone" : why_possible,
                                 mixed ? "use one of RecomputeInput and RecomputeInputAlone in both" : change));
  };
  refuse(detail::choose_lone_inputs(table, policy, target, images, stages),
         "all sections from the nearest one below whose input is kept can go forward again for it if they make the same maps again",
         "take RecomputeInputAlone away there");
  refuse(detail::choose_recomputed_inputs(table, policy, stages),
         "a section below that recomputes all, or goes through its norms by ExtraPasses, and makes a map can go forward again for it",
         "take RecomputeInput away there, or, if the section below makes a map, give it RecomputeAll");
  refuse(detail::choose_offloaded_inputs(table, policy, options, stages), "a tensor that no other section further up reads can be offloaded",
         "take OffloadInput away there", "offloaded");
  return stages;
}
/// The stages of layers [begin, end) as one section, without those of other sections, not cut yet.
/// Pre: sections may begin with layers `begin` and `end`; no section must end between.
constexpr std::vector<Stage> split_section(const Table& table, Index begin, Index end, bool training) {
  return detail::split_layers(table, begin, end, training, [](Index) { return false; });
}
/// These stages of one section, as split_section() has them, cut by the partition `section`: as make_stages() has them.
/// `policy` says the rest, and has no checkpoints. Empty if the rows of a stage carry fewer slabs; if the section is `alone`, the policy's only
/// partition being its own, only if those of all stages do.
constexpr std::vector<Stage> make_section_stages(const Table& table, std::vector<Stage> stages, PolicySpec policy, const Partition& section,
                                                 const Target& target, Index images, const PlanOptions& options = {}, bool alone = false) {
  policy.partitions[0] = section;
  policy.partition_count = 1;
  const auto counts = detail::cut_stages(table, policy, target, images, options, stages, [&](const Stage&, Index, Index) { return alone; });
  if (!counts || counts->most < counts->asked) return {};
  return stages;
}
/// A section of several that follow each other: where it ends, and its partition.
struct SectionPart {
  Index end = 0;
  Partition partition{};
};
/// The stages of sections that follow each other from layer `begin` on, without those of others, each cut by its partition: as make_stages() has
/// them where sections end so. `policy` says the rest. Empty if the rows of a stage carry fewer slabs, or an input cannot be made again. Pre: for
/// training; sections may begin and end there.
inline std::vector<Stage> make_group_stages(const Table& table, Index begin, const std::vector<SectionPart>& parts, PolicySpec policy,
                                            const Target& target, Index images, const PlanOptions& options) {
  policy.checkpoints = {.rule = Checkpoints::Rule::named};
  policy.partition_count = static_cast<Index>(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    policy.partitions[i] = parts[i].partition, policy.checkpoints.names[i] = table.node(parts[i].end - 1).layer.name;
  std::vector<Stage> stages =
      detail::split_layers(table, begin, parts.back().end, true, [&](Index l) { return detail::is_checkpoint(table, policy, l); });
  if (!detail::cut_stages(table, policy, target, images, options, stages, [](const Stage&, Index, Index) { return false; })) return {};
  if (detail::choose_lone_inputs(table, policy, target, images, stages).is_one) return {};
  if (detail::choose_recomputed_inputs(table, policy, stages).is_one) return {};
  if (detail::choose_offloaded_inputs(table, policy, options, stages).is_one) return {};
  return stages;
}
}   // namespace lrcnn
