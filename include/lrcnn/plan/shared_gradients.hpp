#pragma once
// Sums whose inputs get one gradient (GradientsInPlace).
//
// A sum gives both of its inputs the same gradient. Usually one of them gets a copy, since each changes later: a norm writes its own input's
// gradient over that of its output, and other layers add to that of a skip connection. Where the norm writes over the values that it
// read instead, which nobody wants any more, one gradient serves both, and goes on as that of the skip connection. So a residual block
// goes backward with one tensor less in full height, and without the copy.
#include <lrcnn/plan/stage_walk.hpp>
namespace lrcnn {
/// Number of the stage of this stage's section that makes input t for a norm of this stage and for no other layer; -1: there is none.
constexpr Index maker_for_norm(const std::vector<Stage>& stages, const StageWalk& walk, Index t) {
  const Index s = walk.stage->use(t).readers == 1 ? walk.maker_in_section(t) : -1;
  if (s < 0) return -1;
  const Stage& below = item(stages, s);
  const Index made = below.made(walk.stage->tensor(t));
  if (below.replaced_by_extra_passes || made >= below.tensors()) return -1;   // or a global pooling at its end makes it
  return below.count_norms_above(made) == 1 && below.use(made).readers == 0 && !below.use(made).wanted_plain ? s : -1;
}
/// Whether such a stage makes input t whole and at once, and needs it for nothing else. `images`: the most that go through all stages together, so
/// that all groups of images have the same answer.
constexpr bool is_for_norm_alone(const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs, const StageWalk& walk, Index t,
                                 Index images) {
  const Index s = maker_for_norm(stages, walk, t);
  if (s < 0) return false;
  const Stage& below = item(stages, s);
  return below.passes == 0 && below.turns(below.backward, images) == 1 && !item(item(needs, s).value, below.made(walk.stage->tensor(t)));
}
/// Whether layer l of a stage that is not cut is a sum whose inputs may have one gradient. Each is either an input of the stage to which nothing has
/// been added yet, or what a norm at the bottom makes, which is_for_norm_alone(); not both are inputs, since other layers add to those.
/// `images`: as above.
constexpr bool gives_one_gradient(const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs, const StageWalk& walk, Index l,
                                  Index images) {
  if (walk.layer(l).kind != Kind::sum || walk.stage->turns(*walk.rows, images) > 1 || walk.stage->passes > 0 || walk.in(l) == walk.other(l))
    return false;
  Index inputs = 0;
  for (const Index t : {walk.in(l), walk.other(l)}) {
    const TensorUse& use = walk.stage->use(t);
    if (use.readers != 1 || use.plain != 1) return false;
    if (t < walk.inputs() ? use.given : use.leaves || !walk.norm_at_bottom(t - walk.inputs())) return false;
    if (t >= walk.inputs() && !is_for_norm_alone(stages, needs, walk, walk.in(t - walk.inputs()), images)) return false;
    inputs += t < walk.inputs();
  }
  return inputs < 2;
}
/// Whether inputs of any sum of these stages may have one gradient, as far as that is seen at once: some may not, after all.
inline bool may_share_gradients(const Table& table, const std::vector<Stage>& stages) {
  return std::any_of(stages.begin(), stages.end(), [&](const Stage& stage) {
    if (sum_in_place(table, stage, false) >= 0) return true;
    if (stage.passes > 0 || stage.replaced_by_extra_passes || stage.backward.slabs() > 1) return false;
    bool normed = false, added = false;
    for (Index l = 0; l < stage.chain_layers(); ++l) {
      const Node& node = table.node(stage.first + l);
      normed |= stage.in(l) < stage.input_count() && detail::waits(node, true), added |= node.layer.kind == Kind::sum;
    }
    return normed && added;
  });
}
}   // namespace lrcnn
