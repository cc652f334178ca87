#pragma once
// Gradients in full height that take their values' places.
//
// Slabs of a backward pass go upward. Each reads its rows of a tensor and then adds to their gradient; if nobody reads the tensor
// afterwards, a row's gradient may lie where rows further down had their values. The two share a buffer in which row r of the values is
// at place r, row r of the gradient at place r + lag. With a lag of as many rows as a slab holds at most, what a slab writes lies behind
// all that it and the slabs above it read.
#include <lrcnn/plan/needs.hpp>
namespace lrcnn {
namespace detail {
/// Whether a stage's backward pass reads the values of its tensor t in full height.
constexpr bool reads_values(const Stage& stage, const StageNeeds& needs, Index t) {
  if (item(needs.remade_in_slabs, t)) return false;
  for (const NormAbove& norm : stage.norms_above)
    if (norm.tensor == t) return true;
  if (item(needs.value, t)) return true;
  for (const BackwardRun& run : needs.runs)
    for (Index l = run.first; run.recompute && l < run.last; ++l)
      if (run.makes(l) && (stage.in(l) == t || stage.other(l) == t)) return true;
  return false;
}
/// The rows that the gradient of a table's tensor lies behind its values; 0 if it has a place of its own. `stages`: those of the forward
/// pass first, `forward_count` of them.
constexpr Index gradient_lag(const Table& table, const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs, Index forward_count,
                             Index tensor) {
  const Stage* last = nullptr;   // the one that reads values
  Index lag = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    const bool forward = static_cast<Index>(s) < forward_count;
    for (Index t = 0; t < stage.tensors(); ++t) {
      if (stage.tensor(t) != tensor) continue;
      const bool written = t >= stage.input_count();
      if (written && !stage.use(t).leaves) return 0;
      // Pieces of slabs are dense; a stage that is not cut would have its kernels work on what is not.
      if (stage.use(t).discarded || ((forward || stage.partition.forward_passes) && stage.forward.slabs() < 2) ||
          (!stage.replaced_by_extra_passes && stage.backward.slabs() < 2))
        return 0;
      if (forward && stage.forward_repeated) return 0;   // reads or writes it again
      if (stage.replaced_by_extra_passes || !reads_values(stage, needs[s], t)) continue;
      const TensorUse& use = stage.use(t);
      if (last != nullptr || written || use.plain != 1 || use.given) return 0;
      last = &stage;
      lag = stage.backward.most(t, &SlabRows::hold);
    }
    if (stage.reduces && stage.last == tensor) return 0;
  }
  return last != nullptr && 2 * lag <= table.shape(tensor).h ? lag : 0;
}
}   // namespace detail
/// Of each tensor of the table. `stages`, `forward_count`: as the emitter has them.
constexpr std::vector<Index> gradient_lags(const Table& table, const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs,
                                           Index forward_count) {
  std::vector<Index> lags(static_cast<std::size_t>(table.tensors()), 0);
  for (Index g = 1; g < table.size(); ++g) item(lags, g) = detail::gradient_lag(table, stages, needs, forward_count, g);
  return lags;
}
}   // namespace lrcnn
