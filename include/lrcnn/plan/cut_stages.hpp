#pragma once
// Stages get their partitions and are cut into slabs.
#include <lrcnn/plan/stage_graph.hpp>
#include <optional>
#include <string>
namespace lrcnn::detail {
/// The most slabs of a stage: each brings rows in and works on them, and a plan has no more steps than that (plan.hpp).
inline constexpr Index most_slabs = Index{1} << 18;
/// A stage's partition as it is asked for, less what the stage cannot have; whether its rows carry the counts is not looked at.
constexpr Partition partition_of(const Table& table, const PolicySpec& policy, const Stage& stage, Index images, const PlanOptions& options) {
  Partition p = policy.partition(stage.partition_number);
  if (p.passes != NormPasses::none && p.cut == Cut::share)
    throw PlanError(error_text(stage_name(table, stage) + " is to be run by " + to_string(p),
                               "slabs of extra passes make all their rows "
                               "themselves, and hand none on",
                               "use Overlap there"));
  if (stage.vector || stage.behind_means) p.cut = Cut::column;
  // Until choose_recomputed_inputs() and others have found that it need not be kept.
  p.input = SectionInput::keep;
  if (options.training && p.cut == Cut::share && stage.loses_rows(table, options)) p.cut = Cut::overlap;   // no forward pass hands rows on
  p.images = p.images == 0 ? images : std::min(p.images, images);
  if (p.cut == Cut::column) p.forward = 1;
  if (p.cut == Cut::column || options.stores_output) p.backward = p.forward;
  return p;
}
/// Cuts a stage's rows as its partition says, or, where they carry fewer slabs, into as many as they do. Returns 0, or how many these are.
constexpr Index cut_stage(const Table& table, const PolicySpec& policy, const Target& target, bool streams, Stage& stage) {
  Partition& p = stage.partition;
  RowRules rules = row_rules(table, stage, target, policy.conv_algorithm_in(p));
  const RowGraph graph = rules.graph();
  const Index wanted = std::max(p.forward, p.backward);
  if (streams && p.cut == Cut::share) {
    const Index largest = std::min(max_stream_slabs(graph), most_slabs);
    p.forward = p.backward = std::min(wanted, largest);
    stage.forward = best_stream_schedule(graph, p.forward);
    return wanted > largest ? largest : 0;
  }
  std::vector<Index> finest;
  if (wanted <= most_slabs) finest = choose_cuts(graph, p.cut, wanted);
  const Index fewer = finest.empty() ? std::min(max_slabs(graph, p.cut), most_slabs) : 0;
  if (fewer > 0) {
    p.forward = std::min(p.forward, fewer);
    p.backward = std::min(p.backward, fewer);
    finest = choose_cuts(graph, p.cut, std::max(p.forward, p.backward));
  }
  // Passes of a sharing stage must meet at common cuts: the coarser one uses every so many of the finer one's.
  const auto cuts_for = [&](Index count) {
    if (count == static_cast<Index>(finest.size())) return finest;
    if (p.cut == Cut::share) return thin_cuts(finest, count);
    return choose_cuts(graph, p.cut, count);
  };
  stage.forward = make_schedule(graph, p.cut, cuts_for(p.forward));
  if (p.backward == p.forward) stage.backward = stage.forward;
  else stage.backward = make_schedule(graph, p.cut, cuts_for(p.backward));
  return fewer;
}
/// How many slabs stages were asked for, and how many their rows carry.
struct SlabCounts {
  Index asked = 1;   ///< of any stage, at most
  Index most = 1;    ///< that any stage has got
  Index best = 0;    ///< the number of the stage that has got most of those that have got fewer than they were asked for
};
/// Gives each stage its partition and cuts it. For training, extra passes are added before that, and repeated forward passes are chosen after it.
/// If a stage's rows carry only `largest` of the `wanted` slabs, the function asks fewer(stage, wanted, largest): true has the stage cut into
/// `largest` slabs; after false it returns nothing, and the stages are of no use.
template <class Fewer>
constexpr std::optional<SlabCounts> cut_stages(const Table& table, const PolicySpec& policy, const Target& target, Index images,
                                               const PlanOptions& options, std::vector<Stage>& stages, const Fewer& fewer) {
  const bool streams = options.stores_output, goes_backward = options.training && !streams;
  SlabCounts counts;
  if (goes_backward) add_passes(table, policy, stages);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Stage& stage = stages[i];
    stage.partition = partition_of(table, policy, stage, images, options);
    const Index wanted = std::max(stage.partition.forward, stage.partition.backward);
    const Index largest = cut_stage(table, policy, target, streams, stage);
    counts.asked = std::max(counts.asked, wanted);
    if (largest == 0) counts.most = std::max(counts.most, wanted);
    else if (!fewer(stage, wanted, largest)) return std::nullopt;
    else if (largest > counts.most) counts.most = largest, counts.best = static_cast<Index>(i);
  }
  if (goes_backward) choose_repeated(table, policy, stages);
  return counts;
}
}   // namespace lrcnn::detail
