#pragma once
// Sums at the top of stages with extra passes, whose gradient takes the place of the gradient above (GradientsInPlace).
//
// A residual block ends in a sum, perhaps with an activation behind it. Extra passes have the gradient of the block's output in full height, which
// nobody else wants. So the first pass writes the gradient of the sum over it. Later passes find that there: they neither go through the activation
// again nor make its output. If the sum has a skip connection, the block's input, the gradient of that is the same map, until the layers below add to
// it, and lies there, too, rather than behind the values of the skip connection (plan/in_place.hpp). If the shortcut ends in a norm
// whose input another stage makes, the gradient of that norm's output lies there, too, and the norm's step turns it into that of its input.
#include <lrcnn/plan/stage.hpp>
#include <lrcnn/plan/stage_rules.hpp>
namespace lrcnn {
/// Of such a sum, the skip connection: an input of the stage. -1: both of its inputs are made within the stage.
constexpr Index skip_of(const Stage& stage, Index sum) {
  for (const Index t : {stage.in(sum), stage.other(sum)})
    if (t < stage.input_count()) return t;
  return -1;
}
/// Of such a sum, the input of the stage to which its gradient goes where it lies: the skip connection, or what a norm at the bottom reads. -1: none.
constexpr Index input_of_sum(const Stage& stage, Index sum) {
  for (const Index t : {stage.in(sum), stage.other(sum)})
    if (t >= stage.input_count() && stage.in(t - stage.input_count()) < stage.input_count()) return stage.in(t - stage.input_count());
  return skip_of(stage, sum);
}
/// Such a sum of a stage, as a layer of the stage; -1: there is none. Its inputs are what norms make for it, one at least within the stage; the other
/// may be an input of the stage that nothing has been added to. `loses_rows`: the stage's rows go through the loss slab by slab.
constexpr Index sum_in_place(const Table& table, const Stage& stage, bool loses_rows) {
  const Index inputs = stage.input_count(), top = stage.tensors() - 1;
  if (stage.passes == 0 || stage.reduces || loses_rows || top < inputs || stage.use(top).readers > 0 || !stage.use(top).wanted_plain) return -1;
  if (stage.count_norms_above(top) > 0) return -1;
  const auto layer = [&](Index l) -> const Layer& { return table.node(stage.first + l).layer; };
  const auto for_one = [&](Index t) { return stage.use(t).readers == 1 && !stage.use(t).leaves; };
  Index l = top - inputs;
  if (is_activation(layer(l))) {
    if (!rules_of(layer(l)).overwrites_gradient || stage.in(l) < inputs || stage.in(l) + 1 != top || !for_one(stage.in(l))) return -1;
    --l;
  }
  if (layer(l).kind != Kind::sum) return -1;
  Index normed = 0;
  for (const Index t : {stage.in(l), stage.other(l)}) {
    if (t >= inputs) {
      const Index norm = t - inputs;
      if (!for_one(t) || !detail::waits(table.node(stage.first + norm), true)) return -1;
      normed += stage.in(norm) >= inputs;
    } else if (const TensorUse& use = stage.use(t); stage.tensor(t) == 0 || use.readers != 1 || use.plain != 1 || use.given) {
      return -1;
    }
  }
  return normed > 0 ? l : -1;
}
}   // namespace lrcnn
