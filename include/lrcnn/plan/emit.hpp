#pragma once
// From stages to steps.
//
// One emitter writes every plan. It walks   for each group of images: stages up, loss, stages down   and, within a
// stage,   for each slab of images, for each slab of rows: the chain's layers,   and tells a sink which buffers exist
// (plan/storage.hpp) and which step comes next. Two sinks listen:
//   Measure   counts time and notes when buffers are used, through one turn of each loop (plan/measure.hpp).
//   Record    keeps every step of every slab (plan/plan.hpp).
// Both see the same calls in the same order within a turn, so a buffer has the same number for both, and the offsets
// found for the measured turn hold for all of them. The checker (plan/checker.hpp) proves that, plan by plan.
//
// Names are those of a pass: plan/stage_pass.hpp.
#include <lrcnn/plan/measure.hpp>
#include <lrcnn/plan/storage.hpp>
namespace lrcnn {
template <class Sink>
class Emitter {
 public:
  constexpr Emitter(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                    const std::vector<Stage>& stages, Sink& sink)
      : table_(table), policy_(policy), target_(target), options_(options), stages_(stages), sink_(sink),
        storage_(table, target, stages, sink) {}
  /// Emits the whole step: forward, loss, backward, for every group of images; or forward and the output's rows handed on.
  constexpr PlanResults run() {
    const Index batch = table_.input.n, images = policy_.images > 0 ? std::min(policy_.images, batch) : batch;
    for (const Stage& stage : stages_)
      needs_.push_back(stage_needs(table_, stage, !options_.training ? Recompute::all : stage.partition.keep ? Recompute::none : policy_.recompute));
    first_contribution_.assign(static_cast<std::size_t>(table_.size()), options_.accumulate ? 0 : 1);
    const Index stage_count = static_cast<Index>(stages_.size());
    group_ = {0, images};
    Index lanes = 1;
    for (Index s = 0; policy_.streams > 1 && s < stage_count; ++s)
      for (const Schedule* rows : {&stages_[static_cast<std::size_t>(s)].forward, &stages_[static_cast<std::size_t>(s)].backward})
        lanes = std::max(lanes, stage_pass(s, Pass::forward, *rows).lanes());
    workspace_ = storage_.declare_workspace(policy_.workspace_bytes, lanes);
    const Index since = sink_.now;
    for (Index begin = 0; begin < batch; begin += images) {
      group_ = {begin, std::min(begin + images, batch)};
      for (Index s = 0; s < stage_count; ++s) forward_stage(s);
      if (!options_.stores_output) loss();
      if (options_.training)
        for (Index s = stage_count - 1; s >= 0; --s) backward_stage(s);
      if (!Sink::every_turn) break;
    }
    const Range all{0, batch};
    PlanResults results;
    if (!options_.stores_output) {
      StagePass last = stage_pass(stage_count - 1, Pass::forward, stages_.back().forward);
      last.images = all;
      results.output = storage_.stage_value(last, {0, table_.shape(table_.size()).h});
    }
    if (options_.training && options_.input_gradient)
      results.input_gradient = storage_.network_input_gradient(all, {0, table_.input.h});
    for (const Index buffer : {results.output.buffer, results.input_gradient.buffer}) {   // the caller reads them at the end
      if (images < batch) sink_.span(buffer, since);
      sink_.touch(buffer);
    }
    ++sink_.now;
    return results;
  }

 private:
  using Store = Storage<Sink>;
  using Filter = typename Store::Filter;
  const Table& table_;
  const PolicySpec& policy_;
  const Target& target_;
  const PlanOptions& options_;
  const std::vector<Stage>& stages_;
  Sink& sink_;
  Store storage_;
  std::vector<StageNeeds> needs_{};
  Flags first_contribution_{};
  Index workspace_ = -1;
  Range group_{};

  // ---- steps -------------------------------------------------------------------------------------------------------
  constexpr StagePass stage_pass(Index s, Pass pass, const Schedule& rows) const {
    StagePass c{table_, stages_, needs_, s, pass, rows, options_, group_};
    c.streams = policy_.streams;
    c.prefetch = policy_.prefetch;
    return c;
  }
  constexpr Step make(const StagePass& c, Op op, Index l = -1) const {
    Step step;
    step.op = op;
    step.pass = c.pass;
    step.stage = c.s;
    step.slab = c.image_slab * c.rows->slabs() + c.n;
    step.layer = l < 0 ? -1 : c.stage->first + l;
    step.stream = op == Op::load && c.prefetch ? policy_.streams : c.lane();
    if (l < 0 || l >= c.layers()) return step;
    const Layer& y = c.layer(l);
    if (is_conv(y)) step.arithmetic = policy_.arithmetic;
    if ((is_conv(y) || y.kind == Kind::linear) && workspace_ >= 0) step.workspace = workspace_ + c.lane();
    return step;
  }
  /// copy, add, zero, load: x may be empty.
  constexpr void move(const StagePass& c, Op op, const Ref& x, const Ref& y) {
    Step step = make(c, op);
    step.x = x;
    step.y = y;
    sink_.step(step);
  }
  // ---- filters -----------------------------------------------------------------------------------------------------
  static constexpr Op pack_op(Filter which) { return which == Filter::backward ? Op::pack_backward : Op::pack_forward; }
  constexpr void pack(const StagePass& c, Filter which, Index l) {
    Step step = make(c, pack_op(which), l);
    step.workspace = -1;
    step.packed = storage_.filter(c, which, l);
    sink_.step(step);
  }
  /// Before the slabs of a pass: filters in the backend's layout, once for all of them.
  constexpr void pack_all(const StagePass& c, Filter which, Index first, Index last) {
    for (Index l = first; l < last; ++l)
      if (packs(c, l) && !c.packs_in_slab(l)) pack(c, which, l);
  }
  constexpr bool packs(const StagePass& c, Index l) const { return target_.packs(c.layer(l)); }
  /// The packed filter of layer l; -1 if the layer wants none.
  constexpr Index packed(const StagePass& c, Filter which, Index l) {
    if (!packs(c, l)) return -1;
    if (c.packs_in_slab(l)) pack(c, which, l);   // else pack_all() has
    return storage_.filter(c, which, l);
  }
  // ---- values ------------------------------------------------------------------------------------------------------
  constexpr Ref value(StagePass& c, Index t) {
    const Ref ref = storage_.value(c, t);
    if (t > 0 || c.input_ready || !storage_.has_input_slab(c)) return ref;
    if (c.s == 0) move(c, Op::load, {}, ref);
    else move(c, Op::copy, storage_.stage_input_value(c, ref.rows), ref);
    c.input_ready = true;
    return ref;
  }
  /// The rows that layer l reads, dense if the layer wants them so.
  constexpr Ref layer_input(StagePass& c, Index l) {
    const Ref x = value(c, l);
    if (!is_conv(c.layer(l)) || !c.need_copy[static_cast<std::size_t>(l)]) return x;
    const Ref dense = storage_.needed_value(c, l);
    move(c, Op::copy, with_rows(x, dense.rows), dense);
    return dense;
  }
  /// Rows of tensor t from the slab before, into this one's.
  constexpr void carry_in(StagePass& c, Index t, const Ref& hold) {
    const bool from_state = !c.forward() || (c.wants_state(t) && c.same_cuts());
    const Ref from = from_state ? storage_.state(c, t, c.n) : storage_.rolling(c, t, c.n);
    move(c, Op::copy, from, with_rows(hold, c.rows->carried(c.n, t)));
  }
  /// Rows of tensor t for the next slab, and for the backward pass at each of its cuts within this slab.
  constexpr void carry_out(StagePass& c, Index t, const Ref& hold) {
    if (!c.forward()) return;
    const bool keep = c.wants_state(t);
    if (c.carries[static_cast<std::size_t>(t)] && !(keep && c.same_cuts())) {
      const Ref to = storage_.rolling(c, t, c.n + 1);
      move(c, Op::copy, with_rows(hold, to.rows), to);
    }
    if (!keep) return;
    const auto& cuts = c.stage->backward.cuts;
    const Index begin = c.n == 0 ? 0 : c.rows->cuts[static_cast<std::size_t>(c.n - 1)];
    const Index end = c.rows->cuts[static_cast<std::size_t>(c.n)];
    for (std::size_t g = 0; g + 1 < cuts.size(); ++g) {
      const Ref to = storage_.state(c, t, static_cast<Index>(g) + 1);   // declared in the first slab in any case
      if (Sink::every_turn && (cuts[g] <= begin || cuts[g] > end)) continue;
      move(c, Op::copy, with_rows(hold, to.rows), to);
      if (!Sink::every_turn) break;
    }
  }

  // ---- forward -----------------------------------------------------------------------------------------------------
  /// Up to the first layer of whose output the slab owns no row: it owns none above it either, and the next slab carries in what
  /// this one would have.
  constexpr void forward_layers(StagePass& c, Index first, Index last) {
    c.top_run = last;
    for (Index l = first; l < last; ++l) {
      if (Sink::every_turn && c.at(l + 1).own.empty()) return;
      const bool activates = l + 1 < last && activation_joins(c, l);
      forward_layer(c, l, activates);
      if (activates) ++l;
    }
  }
  /// Whether layer l + 1 is an activation that the step of convolution l can apply: nobody else wants the convolution's output.
  constexpr bool activation_joins(const StagePass& c, Index l) const {
    return target_.activates && is_conv(c.layer(l)) && c.layer(l + 1).kind == Kind::activation && c.in_place(l + 1) &&
           !(c.forward() && c.wants_state(l + 1));
  }
  constexpr void forward_layer(StagePass& c, Index l, bool activates) {
    const Index t = l + (activates ? 2 : 1);
    const auto at = static_cast<std::size_t>(t - 1);   // the layer whose output and saved state the step writes
    const bool makes = t < c.top_run || c.makes_top();
    const bool carries = t < c.layers() && c.carries[at + 1] && makes;
    const bool saves = options_.training && c.needs->layer[at].saved && (c.forward() == static_cast<bool>(c.needs->saved_kept[at]));
    const bool conv = is_conv(c.layer(l));
    Step step = make(c, Op::forward, l);
    step.activates = activates;
    step.x = layer_input(c, l);
    Ref hold, own;
    if (makes) {
      hold = value(c, t);
      own = with_rows(hold, c.at(t).own);
      if (carries) carry_in(c, t, hold);
      const bool apart = conv && (carries || (t == c.layers() && c.top_in_full() && c.cut()));
      step.y = apart ? storage_.own_value(c, t) : own;
    }
    if (saves) step.saved = storage_.saved(c, t - 1);
    step.packed = packed(c, c.forward() ? Filter::forward : Filter::recompute, l);
    sink_.step(step);
    if (makes && step.y.buffer != own.buffer) move(c, Op::copy, step.y, own);
    if (makes && t < c.layers()) carry_out(c, t, hold);
  }
  /// Calls `slab` for every slab, images outermost; rows downward or upward.
  template <class F>
  constexpr void for_slabs(StagePass& c, bool upward, F slab) {
    const Index images = c.stage->partition.images, slabs = c.rows->slabs();
    c.image_slab = 0;
    for (Index begin = group_.begin; begin < group_.end; begin += images, ++c.image_slab) {
      c.images = {begin, std::min(begin + images, group_.end)};
      c.covered = c.shape(0).h;
      for (Index k = 0; k < slabs; ++k) {
        c.n = upward ? slabs - 1 - k : k;
        c.input_ready = false;
        slab();
        if (!Sink::every_turn) return;
      }
    }
  }
  constexpr void forward_stage(Index s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    const bool keeps = options_.training && needs_[static_cast<std::size_t>(s)].any_kept;
    StagePass c = stage_pass(s, Pass::forward, keeps ? stage.backward : stage.forward);
    const Index since = sink_.now;
    pack_all(c, Filter::forward, 0, c.layers());
    for_slabs(c, false, [&] {
      forward_layers(c, 0, c.layers());
      if (Sink::every_turn && c.at(c.layers()).own.empty()) return;
      if (stage.reduces) {
        Step step = make(c, Op::forward, c.layers());
        step.x = with_rows(value(c, c.layers()), c.at(c.layers()).own);
        step.y = storage_.stage_value(c, {0, 1});
        step.accumulate = step.x.rows.begin > 0;
        sink_.step(step);
      }
      if (c.stores) store(c, with_rows(value(c, c.layers()), c.at(c.layers()).own));
    });
    storage_.outlive_turns(c, since);
    if (!options_.stores_output || !stage.reduces || stage.last != table_.size()) return;
    c.images = group_, c.image_slab = c.n = 0;
    store(c, storage_.stage_value(c, {0, 1}));
  }
  /// Rows of the network's output, done, to whoever takes them.
  constexpr void store(const StagePass& c, const Ref& x) {
    Step step = make(c, Op::store);
    step.x = x;
    sink_.step(step);
  }
  constexpr void loss() {
    StagePass c = stage_pass(static_cast<Index>(stages_.size()) - 1, Pass::forward, stages_.back().forward);
    c.images = group_;
    const Range rows{0, table_.shape(table_.size()).h};
    Step step = make(c, Op::loss);
    step.x = storage_.stage_value(c, rows);
    if (options_.training) step.dx = storage_.stage_gradient(c, rows);
    sink_.step(step);
  }

  // ---- backward ----------------------------------------------------------------------------------------------------
  constexpr void backward_stage(Index s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    StagePass c = stage_pass(s, Pass::backward, stage.backward);
    const Index since = sink_.now;
    for (const BackwardRun& run : c.needs->runs)
      if (run.recompute) pack_all(c, Filter::recompute, run.first, run.last);
    pack_all(c, Filter::backward, c.wants_input_gradient() ? 0 : 1, c.layers());
    for_slabs(c, true, [&] {
      if (stage.reduces) backward_reduction(c);
      for (const BackwardRun& run : c.needs->runs) {
        c.pass = run.recompute ? Pass::recompute : Pass::backward;
        if (run.recompute) forward_layers(c, run.first, run.last);
        else backward_layer(c, run.first);
      }
      c.pass = Pass::backward;
    });
    storage_.outlive_turns(c, since);
  }
  constexpr void backward_reduction(StagePass& c) {
    const Index t = c.layers();
    if (t == 0 && !c.wants_input_gradient()) return;
    Step step = make(c, Op::backward_data, t);
    step.dy = storage_.stage_gradient(c, {0, 1});
    step.dx = t == 0 ? storage_.input_gradient(c, c.at(0).own) : storage_.gradient(c, t);
    sink_.step(step);
  }
  constexpr void backward_layer(StagePass& c, Index l) {
    const Index t = l + 1;
    const Layer& y = c.layer(l);
    const LayerNeeds& needs = c.needs->layer[static_cast<std::size_t>(l)];
    c.top_run = c.layers();
    Ref dy = with_rows(storage_.gradient(c, t), c.at(t).own);
    const bool in_full = t == c.layers() && !c.stage->reduces;
    if (is_conv(y) && (in_full ? c.cut() : static_cast<bool>(c.carries[static_cast<std::size_t>(t)]))) {
      const Ref dense = storage_.own_gradient(c, t);
      move(c, Op::copy, dy, dense);
      dy = dense;
    }
    if (parameter_shapes(y, c.shape(l)).count > 0) backward_parameters(c, l, dy);
    if (l == 0 && !c.wants_input_gradient()) return;
    Step step = make(c, Op::backward_data, l);
    step.dy = dy;
    if (needs.input && y.kind != Kind::conv && y.kind != Kind::linear) step.x = value(c, l);
    if (needs.output) step.y = with_rows(value(c, t), c.at(t).own);
    if (needs.saved) step.saved = storage_.saved(c, l);
    step.packed = packed(c, Filter::backward, l);
    if (l == 0) {
      input_gradient_step(c, step);
      return;
    }
    const Ref hold = storage_.gradient(c, l);
    const bool apart = is_conv(y) && c.need_copy[static_cast<std::size_t>(l)];
    step.dx = apart ? storage_.needed_gradient(c, l) : hold;
    sink_.step(step);
    if (apart) {
      move(c, Op::zero, {}, hold);
      move(c, Op::copy, step.dx, with_rows(hold, c.at(l).need));
    }
    if (c.carries[static_cast<std::size_t>(l)]) exchange_gradient(c, l, hold);
  }
  constexpr void backward_parameters(StagePass& c, Index l, const Ref& dy) {
    Step step = make(c, Op::backward_parameters, l);
    const LayerNeeds& needs = c.needs->layer[static_cast<std::size_t>(l)];
    if (needs.input) step.x = layer_input(c, l);
    if (needs.output) step.y = with_rows(value(c, l + 1), c.at(l + 1).own);
    step.dy = dy;
    char& fresh = first_contribution_[static_cast<std::size_t>(c.stage->first + l)];
    step.accumulate = !fresh;
    fresh = 0;
    if (packs(c, l)) step.scratch = storage_.filter_gradient(c, l);
    sink_.step(step);
  }
  /// Gradient rows of earlier slabs' rows go down; those that the later slabs sent for these rows are added.
  constexpr void exchange_gradient(StagePass& c, Index t, const Ref& hold) {
    const Ref in = storage_.carried_gradient(c, t, c.n + 1), out = storage_.carried_gradient(c, t, c.n);
    move(c, Op::add, in, with_rows(hold, in.rows));
    move(c, Op::copy, with_rows(hold, out.rows), out);
  }
  /// The first layer's data gradient: straight into the full-height gradient where slabs do not meet, else by way of a
  /// slab whose rows are added to those that later slabs have written. Rows that nothing read get zeros.
  constexpr void input_gradient_step(StagePass& c, Step step) {
    const Range rows = c.at(0).hold;
    if (!c.cut()) {
      step.dx = storage_.input_gradient(c, {0, c.shape(0).h});
      sink_.step(step);
      return;
    }
    const bool apart = is_conv(c.layer(0)) || slabs_meet(*c.rows);
    step.dx = apart ? storage_.gradient(c, 0) : storage_.input_gradient(c, rows);
    sink_.step(step);
    const Index h = c.shape(0).h;
    const Range seen = rows.empty() ? Range{c.covered, c.covered} : rows;
    move(c, Op::zero, {}, storage_.input_gradient(c, {std::min(seen.end, c.covered), c.covered}));
    if (apart) {
      const Range again = intersect(seen, {c.covered, h}), fresh = intersect(seen, {0, c.covered});
      move(c, Op::add, with_rows(step.dx, again), storage_.input_gradient(c, again));
      move(c, Op::copy, with_rows(step.dx, fresh), storage_.input_gradient(c, fresh));
    }
    c.covered = std::min(c.covered, seen.begin);
    if (c.n == 0) move(c, Op::zero, {}, storage_.input_gradient(c, {0, c.covered}));
  }
  static constexpr bool slabs_meet(const Schedule& rows) {
    for (Index n = 0; n + 1 < rows.slabs(); ++n)
      if (!intersect(rows.at(n, 0).hold, rows.at(n + 1, 0).hold).empty()) return true;
    return false;
  }
};
}  // namespace lrcnn
