#pragma once
// A stage's backward pass, step by step.
//
// Slabs come from the bottom up. Each goes through the stage's runs (plan/needs.hpp): layers again, for values that were not kept, or one
// layer backward. A layer's gradient of what it reads goes where that tensor's gradient is added up: a slab's, or one in full height.
#include <lrcnn/plan/emit_forward.hpp>
#include <lrcnn/plan/shared_gradients.hpp>
namespace lrcnn {
/// The second part of Emitter (plan/emit.hpp): the class is divided among files by inheritance, and nobody else makes one of these.
class BackwardEmitter : protected ForwardEmitter {
 protected:
  using ForwardEmitter::ForwardEmitter;
  /// Moves a slab's gradient rows of tensor t to the gradient in full height; without a `slab` they are there already. full(rows) names rows of that
  /// gradient. Slabs come from the bottom up. Rows that a lower slab has written are added to; new rows are copied; rows between that no layer reads
  /// are set to zero.
  template <class F>
  constexpr void deliver(StageWalk& walk, Index t, const Ref& slab, F full) {
    Index& written_from = item(walk.written_from, t);
    const Range rows = slab ? slab.rows : walk.at(t).hold;
    const Range seen = rows.empty() ? Range{written_from, written_from} : rows;
    move(walk, Op::zero, {}, full({std::min(seen.end, written_from), written_from}));
    if (slab) {
      const Range again = intersect(seen, {written_from, walk.shape(t).h}), fresh = intersect(seen, {0, written_from});
      move(walk, Op::add, with_rows(slab, again), full(again));
      move(walk, Op::copy, with_rows(slab, fresh), full(fresh));
    }
    written_from = std::min(written_from, seen.begin);
    move(walk, Op::zero, {}, full({0, walk.slab == 0 ? written_from : 0}));   // a step of no rows elsewhere: all turns have the same steps
  }
  constexpr void backward_stage(Index s) {
    const Stage& stage = stage_at(s);
    StageWalk walk = walk_of(s, {Pass::backward}, stage.backward);
    const Index since = sink_.now;
    for (const BackwardRun& run : walk.needs->runs)
      if (run.recompute)
        for (Index l = run.first; l < run.last; ++l)
          if (run.makes(l)) pack_all(walk, Filter::recompute, l, l + 1);
    for (Index l = 0; l < walk.layers(); ++l)
      if (wants_input_gradient(walk, l, walk.in(l))) pack_all(walk, Filter::backward, l, l + 1);
    if (stage.reduces) pooled_gradient(walk);
    const auto over = detail::norms_over(table_, stage);
    for (Index number = 1; number <= stage.passes + 1; ++number) {
      const bool last = number > stage.passes;
      const std::vector<BackwardRun>& runs = number > 1 && !walk.needs->later_runs.empty() ? walk.needs->later_runs : walk.needs->runs;
      const std::size_t end = detail::runs_of_pass(runs, over, number, last);
      std::vector<Flags> made(end);
      for (std::size_t i = 0; i < end; ++i)
        if (runs[i].recompute) made[i] = walk.made_by(runs[i]);
      for_slabs(walk, true, [&] {
        if (stage.reduces) backward_reduction(walk);
        for (const NormAbove& norm : stage.norms_above)   // before anything is made again: what they read may be gone then
          if (norm.tensor < walk.tensors() && walk.ends(norm.tensor)) open_gradient(walk, norm.tensor);
        for (std::size_t i = 0; i < end; ++i) {
          const BackwardRun& run = runs[i];
          walk.pass = run.recompute ? Pass::recompute : Pass::backward;
          if (run.recompute) {
            walk.wanted = made[i];
            forward_layers(walk, run);
            walk.wanted.clear();
            if (walk.loses_rows && i == 0) rows_loss(walk, last);
          } else if (last || item(over, run.first) < number) {
            const bool sums = !last && item(over, run.first) + 1 == number && walk.norm_waits(run.first) && !walk.norm_at_bottom(run.first);
            backward_layer(walk, run.first, last, sums);
          }
        }
        walk.pass = Pass::backward;
      });
    }
    storage_.outlive_turns(walk, since);
    if (policy_.gradients_in_place) finish_norms(walk);
  }

 private:
  Flags first_contribution_ = Flags(static_cast<std::size_t>(table_.size()), options_.accumulate ? 0 : 1);   ///< of each layer's parameters
  constexpr bool wants_input_gradient(const StageWalk& walk, Index l, Index t) const {
    return t >= walk.inputs() || (walk.wants_gradient(walk.stage->tensor(t)) && !walk.norm_at_bottom(l));
  }
  /// Whether an input's gradient comes from one layer alone.
  static constexpr bool is_sole(const StageWalk& walk, Index t) { return walk.stage->use(t).plain == 1 && !walk.stage->use(t).given; }
  /// What norms above make of the gradient of a closing global pooling's output.
  constexpr void pooled_gradient(StageWalk& walk) {
    const Index t = walk.tensors();
    walk.stand_before_slabs();
    bool has = walk.stage->use(t).wanted_plain;
    for (const NormAbove& norm : walk.stage->norms_above) {
      if (norm.tensor != t) continue;
      const Ref dy = storage_.norm_gradient(walk, norm.node, {0, 1});
      Ref dx = dy;
      dx.tensor = walk.stage->tensor(t);
      norm_backward(walk, norm.node, dy, storage_.full_value(walk, t, {0, 1}), dx);
      move(walk, has ? Op::add : Op::copy, dx, storage_.full_gradient(walk, t, {0, 1}));
      has = true;
    }
  }
  constexpr void backward_reduction(StageWalk& walk) {
    const Index t = walk.top();
    const bool input = t < walk.inputs();
    if (input && !walk.wants_gradient(walk.stage->tensor(t))) return;   // Pre: a stage with extra passes has layers
    Step step = make(walk, Op::backward_data, walk.layers());
    step.dy = storage_.full_gradient(walk, walk.tensors(), {0, 1});
    if (!input) {
      contribute(walk, step, t, walk.at(t).hold);
      return;
    }
    if (walk.stage->use(t).given) {
      step.dx = storage_.another_gradient(walk, t);
      sink_.step(step);
      move(walk, Op::add, with_rows(step.dx, walk.at(t).own), storage_.full_gradient(walk, t, walk.at(t).own));
      return;
    }
    step.dx = storage_.full_gradient(walk, t, walk.at(t).own);
    sink_.step(step);
  }
  /// GradientsInPlace. Norms at the bottom make the gradient of their input as soon as that of their output is there, all rows at once: in its place,
  /// or, where others share it, over the values of the input. So either the values or that gradient are gone before the stage below goes backward.
  /// This is for inputs that a stage of this section makes for the norm alone: other sections make theirs again later, other readers add to the
  /// gradient, and offloaded values come slab by slab. There the stage below does it (open_gradient).
  constexpr void finish_norms(StageWalk& walk) {
    walk.stand_before_slabs();
    for (Index l = 0; l < walk.layers(); ++l) {
      const Index t = walk.in(l), node = walk.stage->first + l;
      if (!walk.norm_at_bottom(l) || walk.stage->tensor(t) == 0 || walk.fetches(t) || maker_for_norm(stages_, walk, t) < 0) continue;
      const Range all{0, walk.shape(t).h};
      const Ref dy = storage_.norm_gradient(walk, node, all), x = storage_.full_value(walk, t, all);
      norm_backward(walk, node, dy, x, storage_.norms.finish(node, dy, x));
    }
  }
  /// The step of a norm above: dx of what it reads.
  constexpr void norm_backward(const StageWalk& walk, Index node, const Ref& dy, const Ref& x, const Ref& dx) {
    Step step = make(walk, Op::backward_data);
    step.layer = node;
    step.x = x;
    step.dy = dy;
    step.dx = dx;
    use_statistics(walk, step, node);
    use_workspace(walk, step, table_.node(node).layer);
    step.sums = storage_.sums(walk, node);
    sink_.step(step);
  }
  /// The gradient of tensor t begins with what stages further on have left of it.
  constexpr void open_gradient(StageWalk& walk, Index t) {
    Index& count = item(walk.contributions, t);
    if (count > 0 || !walk.in_full(t)) return;
    if (walk.norms_above(t) > 0 && !storage_.norms.reads(walk, t)) {   // finish_norms() has made it
      ++count;
      return;
    }
    const TensorUse& use = walk.stage->use(t);
    const Range part = walk.at(t).part;
    const Ref dx = storage_.gradient(walk, t);
    const auto begin = [&] {
      if (dx.rows != part) move(walk, Op::zero, {}, dx);
    };
    if (use.wanted_plain) {
      if (!storage_.is_given(walk, t)) {
        begin();
        move(walk, Op::copy, storage_.full_gradient(walk, t, part), with_rows(dx, part));
      }
      ++count;
    }
    for (const NormAbove& norm : walk.stage->norms_above) {
      if (norm.tensor != t) continue;
      const Ref to = count > 0 ? storage_.another_gradient(walk, t) : dx;
      if (count == 0) begin();
      Ref x = storage_.full_value(walk, t, part);
      if (walk.fetches(t)) {
        move(walk, Op::fetch, x, storage_.fetched_value(walk, t));
        x = storage_.fetched_value(walk, t);
      }
      norm_backward(walk, norm.node, storage_.norm_gradient(walk, norm.node, part), x, with_rows(to, part));
      if (count++ > 0) move(walk, Op::add, with_rows(to, part), with_rows(dx, part));
    }
  }
  /// Copies a gradient of some rows to a place among those of all rows that the slab holds; the others are zeros.
  constexpr void put_among_zeros(StageWalk& walk, const Ref& some, const Ref& place, const Ref& all) {
    move(walk, Op::zero, {}, all);
    move(walk, Op::copy, some, place);
  }
  /// Gives the step its dx, rows `rows` of the gradient of tensor t, and adds that to what others gave.
  constexpr void contribute(StageWalk& walk, Step step, Index t, Range rows) {
    open_gradient(walk, t);
    Index& count = item(walk.contributions, t);
    const Ref hold = storage_.gradient(walk, t);
    const bool dense = step.layer - walk.stage->first < walk.layers() && is_conv(walk.layer(step.layer - walk.stage->first)) &&
                       item(walk.slabs.need_copy, step.layer - walk.stage->first);
    step.dx = dense ? storage_.needed_gradient(walk, step.layer - walk.stage->first) : count > 0 ? storage_.another_gradient(walk, t) : hold;
    sink_.step(step);
    if (dense && count == 0) {
      put_among_zeros(walk, step.dx, with_rows(hold, rows), hold);
    } else if (count > 0) {
      move(walk, Op::add, with_rows(step.dx, rows), with_rows(hold, rows));
    }
    const bool complete = ++count == walk.stage->use(t).readers + outside(walk, t);
    if (complete && t < walk.top() && item(walk.slabs.carries, t)) exchange_gradient(walk, t, hold);
  }
  /// How many gradients of tensor t later stages have written or will write.
  static constexpr Index outside(const StageWalk& walk, Index t) {
    return walk.in_full(t) ? (walk.stage->use(t).wanted_plain ? 1 : 0) + walk.norms_above(t) : 0;
  }
  /// `gives`: the layer writes gradients of its parameters and of the stage's inputs; only the last pass does. `sums`: the layer is a norm, and
  /// this pass adds up its sums.
  constexpr void backward_layer(StageWalk& walk, Index l, bool gives, bool sums) {
    const Index t = walk.out(l);
    const Layer& y = walk.layer(l);
    const LayerNeeds& needs = item(walk.needs->layer, l);
    open_gradient(walk, t);
    Ref dy = with_rows(storage_.gradient(walk, t), walk.at(t).own);
    const bool scattered = storage_.is_in_full(walk, t) ? walk.cut() : item(walk.slabs.carries, t) != 0;
    if (storage_.wants_dense(walk, l) && scattered) {
      const Ref dense = storage_.own_gradient(walk, t);
      move(walk, Op::copy, dy, dense);
      dy = dense;
    }
    if (walk.norm_at_bottom(l) || sums) {
      if (gives || sums) norm_sums(walk, l, dy, !sums);
      return;
    }
    if (gives && !walk.norm_waits(l) && trains(y, walk.shape(walk.in(l)))) backward_parameters(walk, l, dy);
    const bool shares = (gives || walk.needs->sum_in_place == l) && shares_gradient(walk, l, dy);
    for (Index operand = walk.other(l) >= 0 ? 1 : 0; operand >= 0; --operand) {   // the first last: it may work in place
      const Index from = operand == 0 ? walk.in(l) : walk.other(l);
      if (!wants_input_gradient(walk, l, from) || (!gives && from < walk.inputs())) continue;
      if (shares && from != (walk.in(l) >= walk.inputs() ? walk.in(l) : walk.other(l))) continue;   // the same as that one's
      Step step = make(walk, Op::backward_data, l);
      step.operand = operand;
      if (walk.norm_waits(l)) {   // on the way through
        use_statistics(walk, step, step.layer);
        step.sums = storage_.sums(walk, step.layer);
        step.part = walk.at(t).part;
      }
      step.dy = dy;
      if (y.kind == Kind::scale && operand == 0) step.other = value(walk, walk.other(l));
      else if (needs.input && !needs.for_parameters) step.x = value(walk, walk.in(l));
      if (needs.output) step.y = with_rows(value(walk, t), walk.at(t).own);
      if (needs.saved) step.saved = storage_.saved(walk, l);
      step.packed = packed(walk, Filter::backward, l);
      if (y.kind == Kind::scale && operand == 1 && from < walk.inputs() && walk.cut()) {
        use_sums(walk, step);
        step.accumulate = walk.slab + 1 < walk.rows->slabs();   // they go upward
      }
      if (from < walk.inputs()) input_gradient_step(walk, step, l, from);
      else contribute(walk, step, from, is_join(y) ? walk.at(t).own : is_conv(y) ? walk.need(l) : walk.at(from).hold);
    }
  }
  /// GradientsInPlace. Whether layer l is a sum whose inputs get one gradient, which is dy where it lies; then that is noted.
  constexpr bool shares_gradient(const StageWalk& walk, Index l, const Ref& dy) {
    if (walk.needs->sum_in_place == l) {
      if (const Index skip = skip_of(*walk.stage, l); skip >= 0) storage_.share_gradient(walk, skip, dy);
      return true;
    }
    const bool wanted = policy_.gradients_in_place && is_whole(walk, walk.out(l), dy);
    if (!wanted || !gives_one_gradient(stages_, needs_, walk, l, group_images(table_, policy_))) return false;
    for (const Index t : {walk.in(l), walk.other(l)})
      if (walk.stage->tensor(t) == 0) return false;
    for (const Index t : {walk.in(l), walk.other(l)}) storage_.share_gradient(walk, t, dy);
    return true;
  }
  static constexpr bool is_whole(const StageWalk& walk, Index t, const Ref& ref) {
    return ref.whole() && ref.held_images == walk.group && ref.held_rows == Range{0, walk.shape(t).h};
  }
  constexpr void backward_parameters(StageWalk& walk, Index l, const Ref& dy) {
    Step step = make(walk, Op::backward_parameters, l);
    const LayerNeeds& needs = item(walk.needs->layer, l);
    if (needs.input) step.x = layer_input(walk, l);
    if (needs.output) step.y = with_rows(value(walk, walk.out(l)), walk.at(walk.out(l)).own);
    step.dy = dy;
    step.accumulate = !is_first(walk, l);
    if (packs(walk, l)) step.scratch = storage_.filter_gradient(walk, l);
    sink_.step(step);
  }
  /// Whether a layer's parameters get their first gradient of the step.
  constexpr bool is_first(const StageWalk& walk, Index l) {
    char& fresh = item(first_contribution_, walk.stage->first + l);
    const bool first = fresh;
    fresh = 0;
    return first;
  }
  /// A norm at the bottom adds up what its gradient wants to know of all rows, and hands the gradient of its output down as it is: the
  /// stage that makes its input goes on.
  constexpr void norm_sums(StageWalk& walk, Index l, const Ref& dy, bool hands_down) {
    const Index t = walk.out(l), node = walk.stage->first + l;
    Step step = make(walk, Op::backward_sums, l);
    step.x = value(walk, walk.in(l));
    step.dy = dy;
    use_statistics(walk, step, node);
    step.sums = storage_.sums(walk, node);
    const bool first_rows = walk.slab + 1 == walk.rows->slabs();   // they go upward
    step.accumulate = !(first_rows && (!is_of_batch(node) || walk.image_slab == 0));
    step.accumulate_parameters = !is_first(walk, l);
    sink_.step(step);
    if (!hands_down || !walk.wants_gradient(walk.stage->tensor(walk.in(l)))) return;
    storage_.norms.keep(walk, node, walk.shape(t), dy);
    const Ref full = storage_.norm_gradient(walk, node, dy.rows);
    if (full.buffer != dy.buffer) deliver(walk, t, dy, [&](Range rows) { return storage_.norm_gradient(walk, node, rows); });
  }
  /// Gradient rows of earlier slabs' rows go down; those that the later slabs sent for these rows are added.
  constexpr void exchange_gradient(StageWalk& walk, Index t, const Ref& hold) {
    const Ref in = storage_.carried_gradient(walk, t, walk.slab + 1), out = storage_.carried_gradient(walk, t, walk.slab);
    move(walk, Op::add, in, with_rows(hold, in.rows));
    move(walk, Op::copy, with_rows(hold, out.rows), out);
  }
  /// The gradient of an input of the stage. What the first layer gives goes straight into the full-height gradient where slabs do not meet; else, and
  /// from other layers, it goes by way of a slab whose rows are added to those that have been written. What later stages have begun is added to.
  constexpr void input_gradient_step(StageWalk& walk, Step step, Index l, Index t) {
    Index& count = item(walk.contributions, t);
    const Range all{0, walk.shape(t).h};
    if (step.operand == 1 && step.sums >= 0 && walk.slab > 0 && sink_.every_turn) {   // factors' gradient: what it is so far, which goes nowhere
      step.dx = is_sole(walk, t) ? storage_.gradient(walk, t) : storage_.another_gradient(walk, t);
      sink_.step(step);
      static_cast<void>(storage_.full_gradient(walk, t, all));   // buffers are declared in the first turn
      return;
    }
    const bool given = walk.stage->use(t).given, first = !given && count++ == 0;
    if (first && !walk.cut()) {
      step.dx = storage_.full_gradient(walk, t, all);
      sink_.step(step);
      return;
    }
    const bool dense = is_conv(walk.layer(l)) && item(walk.slabs.need_copy, l);   // others read more rows of the input
    const auto full = [&](Range rows) { return storage_.full_gradient(walk, t, rows); };
    if (first && !dense && !storage_.wants_dense(walk, l) && !slabs_meet(*walk.rows, t)) {
      step.dx = full(walk.at(t).hold);
      sink_.step(step);
      deliver(walk, t, {}, full);
      return;
    }
    if (!is_sole(walk, t)) {
      step.dx = dense ? storage_.needed_gradient(walk, l) : storage_.another_gradient(walk, t);
      sink_.step(step);
      if (given || !walk.cut()) move(walk, Op::add, step.dx, full(step.dx.rows));
      else deliver(walk, t, step.dx, full);
      return;
    }
    const Ref hold = storage_.gradient(walk, t);
    step.dx = dense ? storage_.needed_gradient(walk, l) : hold;
    sink_.step(step);
    if (dense) put_among_zeros(walk, step.dx, with_rows(hold, step.dx.rows), hold);
    deliver(walk, t, hold, full);
  }
  static constexpr bool slabs_meet(const Schedule& rows, Index t) {
    for (Index n = 0; n + 1 < rows.slabs(); ++n)
      if (!intersect(rows.at(n, t).hold, rows.at(n + 1, t).hold).empty()) return true;
    return false;
  }
};
}   // namespace lrcnn
