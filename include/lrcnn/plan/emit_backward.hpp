#pragma once
// A stage's backward pass, step by step.
//
// Slabs come from the bottom up. Each goes through the stage's runs (plan/needs.hpp): layers again, for values that were not kept, or one
// layer backward. A layer's gradient of what it reads goes where that tensor's gradient is added up: a slab's, or one in full height.
#include <lrcnn/plan/emit_forward.hpp>
namespace lrcnn {
class BackwardEmitter : protected ForwardEmitter {
 protected:
  using ForwardEmitter::ForwardEmitter;
  /// A slab's gradient rows of tensor t (empty: they are there) into full height, where slabs come from the bottom up: rows that later
  /// slabs have written are added to, and rows that nothing read get zeros.
  template <class F>
  constexpr void deliver(StagePass& c, Index t, const Ref& slab, F full) {
    Index& written_from = c.written_from[static_cast<std::size_t>(t)];
    const Range rows = slab ? slab.rows : c.at(t).hold;
    const Range seen = rows.empty() ? Range{written_from, written_from} : rows;
    move(c, Op::zero, {}, full({std::min(seen.end, written_from), written_from}));
    if (slab) {
      const Range again = intersect(seen, {written_from, c.shape(t).h}), fresh = intersect(seen, {0, written_from});
      move(c, Op::add, with_rows(slab, again), full(again));
      move(c, Op::copy, with_rows(slab, fresh), full(fresh));
    }
    written_from = std::min(written_from, seen.begin);
    if (c.n == 0) move(c, Op::zero, {}, full({0, written_from}));
  }
  constexpr void backward_stage(Index s) {
    const Stage& stage = stage_at(s);
    StagePass c = stage_pass(s, Pass::backward, stage.backward);
    const Index since = sink_.now;
    for (const BackwardRun& run : c.needs->runs)
      if (run.recompute)
        for (Index l = run.first; l < run.last; ++l)
          if (run.makes(l)) pack_all(c, Filter::recompute, l, l + 1);
    for (Index l = 0; l < c.layers(); ++l)
      if (wants_input_gradient(c, l, c.in(l))) pack_all(c, Filter::backward, l, l + 1);
    if (stage.reduces) pooled_gradient(c);
    begin_input_gradients(c);
    const auto over = detail::norms_over(table_, stage);
    for (Index number = 1; number <= stage.passes + 1; ++number) {
      const bool last = number > stage.passes;
      Index end = 0;   // of the runs that this pass has
      for (std::size_t i = 0; i < c.needs->runs.size(); ++i)
        if (const BackwardRun& run = c.needs->runs[i]; !run.recompute && (last || over[static_cast<std::size_t>(run.first)] < number))
          end = static_cast<Index>(i) + 1;
      for_slabs(c, true, [&] {
        if (stage.reduces) backward_reduction(c);
        for (const NormAbove& norm : stage.norms_above)   // before anything is made again: what they read may be gone then
          if (norm.tensor < c.tensors() && c.ends(norm.tensor)) open_gradient(c, norm.tensor);
        for (Index i = 0; i < end; ++i) {
          const BackwardRun& run = c.needs->runs[static_cast<std::size_t>(i)];
          c.pass = run.recompute ? Pass::recompute : Pass::backward;
          if (run.recompute) {
            c.wanted = c.made_by(run);
            forward_layers(c, run);
            c.wanted.clear();
            if (c.loses_rows && i == 0) rows_loss(c, last);
          } else if (last || over[static_cast<std::size_t>(run.first)] < number) {
            const bool sums = !last && over[static_cast<std::size_t>(run.first)] + 1 == number && c.norm_waits(run.first) &&
                              !c.norm_at_bottom(run.first);
            backward_layer(c, run.first, last, sums);
          }
        }
        c.pass = Pass::backward;
      });
    }
    storage_.outlive_turns(c, since);
  }

 private:
  Flags first_contribution_ = Flags(static_cast<std::size_t>(table_.size()), options_.accumulate ? 0 : 1);   ///< of each layer's parameters
  constexpr bool wants_input_gradient(const StagePass& c, Index l, Index t) const {
    return t >= c.inputs() || (c.wants_gradient(c.stage->tensor(t)) && !c.norm_at_bottom(l));
  }
  /// Before slabs go: full-height gradients to which several layers add are zero.
  constexpr void begin_input_gradients(StagePass& c) {
    if (!c.cut()) return;
    for (Index t = 0; t < c.inputs(); ++t) {
      const TensorUse& use = c.stage->use(t);
      if (use.plain == 0 || use.given || !c.wants_gradient(c.stage->tensor(t)) || is_sole(c, t)) continue;
      c.images = group_, c.n = c.image_slab = 0;
      move(c, Op::zero, {}, storage_.full_gradient(c, t, {0, c.shape(t).h}));
    }
  }
  /// Whether an input's gradient comes from one layer alone.
  static constexpr bool is_sole(const StagePass& c, Index t) { return c.stage->use(t).plain == 1 && !c.stage->use(t).given; }
  /// What norms above make of the gradient of a closing global pooling's output.
  constexpr void pooled_gradient(StagePass& c) {
    const Index t = c.tensors();
    c.images = group_, c.n = c.image_slab = 0;
    bool has = c.stage->use(t).wanted_plain;
    for (const NormAbove& norm : c.stage->norms_above) {
      if (norm.tensor != t) continue;
      const Ref dy = storage_.norm_gradient(c, norm.node, {0, 1});
      Ref dx = dy;
      dx.tensor = c.stage->tensor(t);
      norm_backward(c, norm.node, dy, storage_.full_value(c, t, {0, 1}), dx);
      move(c, has ? Op::add : Op::copy, dx, storage_.full_gradient(c, t, {0, 1}));
      has = true;
    }
  }
  constexpr void backward_reduction(StagePass& c) {
    const Index t = c.top();
    const bool input = t < c.inputs();
    if (input && !c.wants_gradient(c.stage->tensor(t))) return;   // Pre: a stage with extra passes has layers
    Step step = make(c, Op::backward_data, c.layers());
    step.dy = storage_.full_gradient(c, c.tensors(), {0, 1});
    if (!input) {
      contribute(c, step, t, c.at(t).hold);
      return;
    }
    if (c.stage->use(t).given) {
      step.dx = storage_.another_gradient(c, t);
      sink_.step(step);
      move(c, Op::add, with_rows(step.dx, c.at(t).own), storage_.full_gradient(c, t, c.at(t).own));
      return;
    }
    step.dx = storage_.full_gradient(c, t, c.at(t).own);
    sink_.step(step);
  }
  /// The step of a norm above: dx of what it reads.
  constexpr void norm_backward(const StagePass& c, Index node, const Ref& dy, const Ref& x, const Ref& dx) {
    Step step = make(c, Op::backward_data);
    step.layer = node;
    step.x = x;
    step.dy = dy;
    step.dx = dx;
    use_statistics(c, step, node);
    use_workspace(c, step, table_.node(node).layer);
    step.sums = storage_.sums(c, node);
    sink_.step(step);
  }
  /// The gradient of tensor t begins with what stages further on have left of it.
  constexpr void open_gradient(StagePass& c, Index t) {
    Index& count = c.contributions[static_cast<std::size_t>(t)];
    if (count > 0 || !c.in_full(t)) return;
    const TensorUse& use = c.stage->use(t);
    const Range part = c.at(t).part;
    const Ref dx = storage_.gradient(c, t);
    const auto begin = [&] {
      if (dx.rows != part) move(c, Op::zero, {}, dx);
    };
    if (use.wanted_plain) {
      if (!storage_.is_given(c, t)) {
        begin();
        move(c, Op::copy, storage_.full_gradient(c, t, part), with_rows(dx, part));
      }
      ++count;
    }
    for (const NormAbove& norm : c.stage->norms_above) {
      if (norm.tensor != t) continue;
      const Ref to = count > 0 ? storage_.another_gradient(c, t) : dx;
      if (count == 0) begin();
      norm_backward(c, norm.node, storage_.norm_gradient(c, norm.node, part), storage_.full_value(c, t, part), with_rows(to, part));
      if (count++ > 0) move(c, Op::add, with_rows(to, part), with_rows(dx, part));
    }
  }
  /// Gives the step its dx, rows `rows` of the gradient of tensor t, and adds that to what others gave.
  constexpr void contribute(StagePass& c, Step step, Index t, Range rows) {
    open_gradient(c, t);
    Index& count = c.contributions[static_cast<std::size_t>(t)];
    const Ref hold = storage_.gradient(c, t);
    const bool dense = step.layer - c.stage->first < c.layers() && is_conv(c.layer(step.layer - c.stage->first)) &&
                       c.need_copy[static_cast<std::size_t>(step.layer - c.stage->first)];
    step.dx = dense ? storage_.needed_gradient(c, step.layer - c.stage->first) : count > 0 ? storage_.another_gradient(c, t) : hold;
    sink_.step(step);
    if (dense && count == 0) {
      move(c, Op::zero, {}, hold);
      move(c, Op::copy, step.dx, with_rows(hold, rows));
    } else if (count > 0) {
      move(c, Op::add, with_rows(step.dx, rows), with_rows(hold, rows));
    }
    const bool complete = ++count == c.stage->use(t).readers + outside(c, t);
    if (complete && t < c.top() && c.carries[static_cast<std::size_t>(t)]) exchange_gradient(c, t, hold);
  }
  /// How many gradients of tensor t later stages have written or will write.
  static constexpr Index outside(const StagePass& c, Index t) {
    return c.in_full(t) ? (c.stage->use(t).wanted_plain ? 1 : 0) + c.norms_above(t) : 0;
  }
  /// `gives`: the layer writes gradients of its parameters and of the stage's inputs; only the last pass does. `sums`: the layer is a norm, and
  /// this pass adds up its sums.
  constexpr void backward_layer(StagePass& c, Index l, bool gives, bool sums) {
    const Index t = c.out(l);
    const Layer& y = c.layer(l);
    const LayerNeeds& needs = c.needs->layer[static_cast<std::size_t>(l)];
    open_gradient(c, t);
    Ref dy = with_rows(storage_.gradient(c, t), c.at(t).own);
    const bool scattered = storage_.is_given(c, t) ? c.cut() : c.carries[static_cast<std::size_t>(t)] != 0;
    if (is_conv(y) && scattered) {
      const Ref dense = storage_.own_gradient(c, t);
      move(c, Op::copy, dy, dense);
      dy = dense;
    }
    if (c.norm_at_bottom(l) || sums) {
      if (gives || sums) norm_sums(c, l, dy, !sums);
      return;
    }
    if (gives && !c.norm_waits(l) && trains(y, c.shape(c.in(l)))) backward_parameters(c, l, dy);
    for (Index operand = c.other(l) >= 0 ? 1 : 0; operand >= 0; --operand) {   // the first last: it may work in place
      const Index from = operand == 0 ? c.in(l) : c.other(l);
      if (!wants_input_gradient(c, l, from) || (!gives && from < c.inputs())) continue;
      Step step = make(c, Op::backward_data, l);
      step.operand = operand;
      if (c.norm_waits(l)) {   // on the way through
        use_statistics(c, step, step.layer);
        step.sums = storage_.sums(c, step.layer);
        step.part = c.at(t).part;
      }
      step.dy = dy;
      if (y.kind == Kind::scale && operand == 0) step.other = value(c, c.other(l));
      else if (needs.input && !backward_reads(y).for_parameters) step.x = value(c, c.in(l));
      if (needs.output) step.y = with_rows(value(c, t), c.at(t).own);
      if (needs.saved) step.saved = storage_.saved(c, l);
      step.packed = packed(c, Filter::backward, l);
      if (y.kind == Kind::scale && operand == 1 && from < c.inputs() && c.cut()) {
        use_sums(c, step);
        step.accumulate = c.n + 1 < c.rows->slabs();   // they go upward
      }
      if (from < c.inputs()) input_gradient_step(c, step, l, from);
      else contribute(c, step, from, is_join(y) ? c.at(t).own : is_conv(y) ? c.need(l) : c.at(from).hold);
    }
  }
  constexpr void backward_parameters(StagePass& c, Index l, const Ref& dy) {
    Step step = make(c, Op::backward_parameters, l);
    const LayerNeeds& needs = c.needs->layer[static_cast<std::size_t>(l)];
    if (needs.input) step.x = layer_input(c, l);
    if (needs.output) step.y = with_rows(value(c, c.out(l)), c.at(c.out(l)).own);
    step.dy = dy;
    step.accumulate = !is_first(c, l);
    if (packs(c, l)) step.scratch = storage_.filter_gradient(c, l);
    sink_.step(step);
  }
  /// Whether a layer's parameters get their first gradient of the step.
  constexpr bool is_first(const StagePass& c, Index l) {
    char& fresh = first_contribution_[static_cast<std::size_t>(c.stage->first + l)];
    const bool first = fresh;
    fresh = 0;
    return first;
  }
  /// A norm at the bottom adds up what its gradient wants to know of all rows, and hands the gradient of its output down as it is: the
  /// stage that makes its input goes on.
  constexpr void norm_sums(StagePass& c, Index l, const Ref& dy, bool hands_down) {
    const Index t = c.out(l), node = c.stage->first + l;
    Step step = make(c, Op::backward_sums, l);
    step.x = value(c, c.in(l));
    step.dy = dy;
    use_statistics(c, step, node);
    step.sums = storage_.sums(c, node);
    const bool first_rows = c.n + 1 == c.rows->slabs();   // they go upward
    step.accumulate = !(first_rows && (!is_of_batch(node) || c.image_slab == 0));
    step.accumulate_parameters = !is_first(c, l);
    sink_.step(step);
    if (!hands_down || !c.wants_gradient(c.stage->tensor(c.in(l)))) return;
    storage_.keep_norm_gradient(c, node, dy);
    const Ref full = storage_.norm_gradient(c, node, dy.rows);
    if (full.buffer != dy.buffer) deliver(c, t, dy, [&](Range rows) { return storage_.norm_gradient(c, node, rows); });
  }
  /// Gradient rows of earlier slabs' rows go down; those that the later slabs sent for these rows are added.
  constexpr void exchange_gradient(StagePass& c, Index t, const Ref& hold) {
    const Ref in = storage_.carried_gradient(c, t, c.n + 1), out = storage_.carried_gradient(c, t, c.n);
    move(c, Op::add, in, with_rows(hold, in.rows));
    move(c, Op::copy, with_rows(hold, out.rows), out);
  }
  /// The gradient of an input of the stage. From one layer alone: straight into the full-height gradient where slabs do not meet, else by
  /// way of a slab whose rows are added to those that later slabs have written. From several: added to what is there.
  constexpr void input_gradient_step(StagePass& c, Step step, Index l, Index t) {
    Index& count = c.contributions[static_cast<std::size_t>(t)];
    const Range all{0, c.shape(t).h};
    if (step.operand == 1 && step.sums >= 0 && c.n > 0 && sink_.every_turn) {   // factors' gradient: what it is so far, which goes nowhere
      step.dx = is_sole(c, t) ? storage_.gradient(c, t) : storage_.another_gradient(c, t);
      sink_.step(step);
      static_cast<void>(storage_.full_gradient(c, t, all));   // buffers are declared in the first turn
      return;
    }
    if (!c.cut() && count == 0 && !c.stage->use(t).given) {
      ++count;
      step.dx = storage_.full_gradient(c, t, all);
      sink_.step(step);
      return;
    }
    if (!is_sole(c, t)) {
      const bool dense = is_conv(c.layer(l)) && c.need_copy[static_cast<std::size_t>(l)];
      step.dx = dense ? storage_.needed_gradient(c, l) : storage_.another_gradient(c, t);
      sink_.step(step);
      move(c, Op::add, step.dx, storage_.full_gradient(c, t, step.dx.rows));
      return;
    }
    const bool apart = is_conv(c.layer(l)) || slabs_meet(*c.rows, t);
    if (apart) {
      step.dx = storage_.gradient(c, t);
      sink_.step(step);
      deliver(c, t, step.dx, [&](Range rows) { return storage_.full_gradient(c, t, rows); });
      return;
    }
    step.dx = storage_.full_gradient(c, t, c.at(t).hold);
    sink_.step(step);
    deliver(c, t, {}, [&](Range rows) { return storage_.full_gradient(c, t, rows); });
  }
  static constexpr bool slabs_meet(const Schedule& rows, Index t) {
    for (Index n = 0; n + 1 < rows.slabs(); ++n)
      if (!intersect(rows.at(n, t).hold, rows.at(n + 1, t).hold).empty()) return true;
    return false;
  }
};
}  // namespace lrcnn
