#pragma once
// Where the gradients of what norms write lie in full height, until the stages that make what the norms read have gone backward.
#include <lrcnn/plan/stage_walk.hpp>
#include <lrcnn/plan/step.hpp>
namespace lrcnn {
/// Each list has a place for each tensor of the table, of which those that norms write are used.
struct NormGradients {
  std::vector<Index> buffers{};   ///< -1: there is none yet
  std::vector<Index> lags{};      ///< how many rows behind the values of another tensor a gradient lies, in whose place it is
  std::vector<Index> shared{};    ///< the buffer of a gradient that is one with others, which a norm's step must not change; -1: it is none
  Flags done{};                   ///< finish() was called: there is the gradient of the norm's input instead
  constexpr explicit NormGradients(std::size_t tensors) : buffers(tensors, -1), lags(tensors, 0), shared(tensors, -1), done(tensors, 0) {}
  /// The stage of norm `node` has the gradient of its output, of shape `shape`, in `dy`. Where slabs are not cut and that is in full height, it stays
  /// there. So does the gradient of a sum that lies over the gradient of the stage's output (sum_in_place.hpp).
  constexpr void keep(const StageWalk& walk, Index node, const Shape& shape, const Ref& dy) {
    const Index sum = walk.needs->sum_in_place, t = walk.inputs() + node - walk.stage->first;
    const bool of_sum = sum >= 0 && (walk.in(sum) == t || walk.other(sum) == t);
    if (item(buffers, node + 1) >= 0 || dy.held_images != walk.group) return;
    if (of_sum || (!walk.cut() && dy.held_rows == Range{0, shape.h})) item(buffers, node + 1) = dy.buffer, item(lags, node + 1) = -dy.held_rows.begin;
  }
  /// Where the step of norm `node` writes the gradient of its input: over that of its output, `dy`, or, if that is one with others, over the input's
  /// values, `x`. The stage that makes x finds it there.
  constexpr Ref finish(Index node, const Ref& dy, const Ref& x) {
    item(done, node + 1) = 1;
    Ref dx = item(shared, node + 1) < 0 ? dy : x;
    dx.tensor = x.tensor;
    return dx;
  }
  constexpr bool is_done(const NormAbove& norm) const { return item(done, norm.node + 1) != 0; }
  /// Whether a norm above this stage still has to read tensor t.
  constexpr bool reads(const StageWalk& walk, Index t) const {
    for (const NormAbove& norm : walk.stage->norms_above)
      if (norm.tensor == t && !is_done(norm)) return true;
    return false;
  }
};
}   // namespace lrcnn
