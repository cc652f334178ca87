#pragma once
// Sums at the top of stages with extra passes, whose gradient takes the place of the gradient above (GradientsInPlace).
//
// A residual block ends in a sum, perhaps with an activation behind it. Extra passes have the gradient of the block's output in full height; that of
// the skip connection, the block's input, is another map of the same size. But what the activation makes of the former is the latter, until
// the layers below add to it, and the output's own gradient is wanted by nobody else. So the first pass writes the sum's gradient over it. Later
// passes find it there, and neither go through the activation again nor make its output. The gradients of both maps are in one place then, which
// is not that of either map's values (plan/in_place.hpp): stages below may want the one dense, or read the values of the other.
#include <lrcnn/plan/stage.hpp>
#include <lrcnn/plan/stage_rules.hpp>
namespace lrcnn {
/// Of such a sum, the skip connection: an input of the stage.
constexpr Index skip_of(const Stage& stage, Index sum) { return stage.in(sum) < stage.input_count() ? stage.in(sum) : stage.other(sum); }
/// Such a sum of a stage, as a layer of the stage; -1: there is none. One of its inputs is an input of the stage that nothing has been added to, the
/// other is what a norm within the stage makes for it. `loses_rows`: the stage's rows go through the loss slab by slab.
constexpr Index sum_in_place(const Table& table, const Stage& stage, bool loses_rows) {
  const Index inputs = stage.input_count(), top = stage.tensors() - 1;
  if (stage.passes == 0 || stage.reduces || loses_rows || top < inputs || stage.use(top).readers > 0 || !stage.use(top).wanted_plain) return -1;
  for (const NormAbove& norm : stage.norms_above)
    if (norm.tensor == top) return -1;
  const auto layer = [&](Index l) -> const Layer& { return table.node(stage.first + l).layer; };
  const auto for_one = [&](Index t) { return stage.use(t).readers == 1 && !stage.use(t).leaves; };
  Index l = top - inputs;
  if (is_activation(layer(l))) {
    if (!rules_of(layer(l)).overwrites_gradient || stage.in(l) < inputs || stage.in(l) + 1 != top || !for_one(stage.in(l))) return -1;
    --l;
  }
  if (layer(l).kind != Kind::sum) return -1;
  const Index skip = skip_of(stage, l), body = stage.in(l) == skip ? stage.other(l) : stage.in(l);
  if (skip >= inputs || body < inputs || stage.tensor(skip) == 0) return -1;
  if (const TensorUse& use = stage.use(skip); use.readers != 1 || use.plain != 1 || use.given) return -1;
  const Index norm = body - inputs;
  return for_one(body) && detail::waits(table.node(stage.first + norm), true) && stage.in(norm) >= inputs ? l : -1;
}
}   // namespace lrcnn
