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
#include <lrcnn/plan/in_place.hpp>
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
      needs_.push_back(stage_needs(table_, stage, options_.training ? policy_.recompute_in(stage.partition) : Recompute::all,
                                   options_.training && stage.loses_rows(table_, options_),
                                   policy_.gradients_in_place && stage.partition.cut != Cut::share && stage.backward.slabs() > 1));
    first_contribution_.assign(static_cast<std::size_t>(table_.size()), options_.accumulate ? 0 : 1);
    const Index all_stages = static_cast<Index>(stages_.size());
    while (stage_count_ < all_stages && stages_[static_cast<std::size_t>(stage_count_)].passes == 0) ++stage_count_;
    const Index stage_count = stage_count_;
    if (policy_.gradients_in_place && options_.training) storage_.put_gradients_in_place(gradient_lags(table_, stages_, needs_, stage_count));
    group_ = {0, images};
    Index lanes = 1;
    for (Index s = 0; policy_.streams > 1 && s < all_stages; ++s)
      for (const Schedule* rows : {&stages_[static_cast<std::size_t>(s)].forward, &stages_[static_cast<std::size_t>(s)].backward})
        lanes = std::max(lanes, stage_pass(s, Pass::forward, *rows).lanes());
    workspace_ = storage_.declare_workspace(policy_.workspace_bytes, lanes);
    const Index since = sink_.now;
    for (Index begin = 0; begin < batch; begin += images) {
      group_ = {begin, std::min(begin + images, batch)};
      const bool rows = stages_[static_cast<std::size_t>(stage_count - 1)].loses_rows(table_, options_);
      for (Index s = 0; s < stage_count; ++s) {
        const Index over = stages_[static_cast<std::size_t>(s)].covered ? covering(s) : -1;
        if (over >= 0 && stages_[static_cast<std::size_t>(over)].partition.forward_passes) {
          if (stages_[static_cast<std::size_t>(over)].first == stages_[static_cast<std::size_t>(s)].first) forward_stage(over, false);
        } else if (s + 1 < stage_count || !rows || !options_.training) {
          forward_stage(s, false);
        }
      }
      if (!options_.stores_output && !rows) loss();
      if (options_.training) backward();
      if (!Sink::every_turn) break;
    }
    const Range all{0, batch};
    PlanResults results;
    if (!options_.stores_output && !stages_[static_cast<std::size_t>(stage_count - 1)].loses_rows(table_, options_)) {
      StagePass last = stage_pass(stage_count - 1, Pass::forward, stages_[static_cast<std::size_t>(stage_count - 1)].forward);
      last.images = all;
      results.output = storage_.full_value(last, last_tensor(last), {0, table_.shape(table_.size()).h});
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
  Index stage_count_ = 0;   ///< of those that the forward pass has
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
    if (c.again) step.pass = Pass::recompute;
    if (l < 0 || l >= c.layers()) return step;
    const Layer& y = c.layer(l);
    if (is_conv(y)) step.arithmetic = policy_.arithmetic;
    use_workspace(c, step, y);
    return step;
  }
  constexpr void use_workspace(const StagePass& c, Step& step, const Layer& y) const {
    const bool uses = is_conv(y) || y.kind == Kind::linear || y.kind == Kind::conv_transpose || (adds_up_channels(y) && target_.sums_use_workspace);
    if (uses && workspace_ >= 0) step.workspace = workspace_ + c.lane();
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
    const bool there = c.reads_in_full(t) && (t < c.inputs() || (c.cut() && !c.forward() && !c.ends(t)));
    if (!there || c.input_ready[static_cast<std::size_t>(t)] || !storage_.has_input_slab(c, t)) return ref;
    if (c.stage->tensor(t) == 0) move(c, Op::load, {}, ref);
    else move(c, Op::copy, storage_.full_value(c, t, ref.rows), ref);
    c.input_ready[static_cast<std::size_t>(t)] = true;
    return ref;
  }
  /// The rows that layer l reads, dense if the layer wants them so.
  constexpr Ref layer_input(StagePass& c, Index l) {
    const Ref x = value(c, c.in(l));
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
  /// Those of a run, or all. Where a slab of a chain owns no row of a layer's output it owns none above it either, and the next slab
  /// carries in what this one would have.
  constexpr void forward_layers(StagePass& c, const BackwardRun& run) {
    for (Index l = run.first; l < run.last; ++l) {
      if (!run.makes(l)) continue;
      if (Sink::every_turn && c.at(c.out(l)).own.empty()) return;
      const bool activates = l + 1 < run.last && run.makes(l + 1) && activation_joins(c, l);
      forward_layer(c, l, activates);
      if (activates) ++l;
    }
  }
  /// Whether layer l + 1 is an activation that the step of layer l can apply: nobody else wants that layer's output.
  constexpr bool activation_joins(const StagePass& c, Index l) const {
    const Layer& y = c.layer(l);
    const bool can = is_conv(y) || y.kind == Kind::norm || y.kind == Kind::sum;
    return target_.activates && can && c.layer(l + 1).kind == Kind::activation && c.in(l + 1) == c.out(l) && c.in_place(l + 1) &&
           !(c.forward() && c.wants_state(c.out(l)));
  }
  constexpr void forward_layer(StagePass& c, Index l, bool activates) {
    const Index t = c.out(l + (activates ? 1 : 0));
    const auto at = static_cast<std::size_t>(l + (activates ? 1 : 0));   // the layer whose output and saved state the step writes
    const bool makes = c.makes(t);
    const bool carries = !c.ends(t) && c.carries[static_cast<std::size_t>(t)] && makes;
    const bool saves = c.training && c.needs->layer[at].saved && (c.forward() == static_cast<bool>(c.needs->saved_kept[at]));
    const bool conv = is_conv(c.layer(l));
    Step step = make(c, Op::forward, l);
    step.activates = activates;
    step.x = layer_input(c, l);
    if (c.other(l) >= 0) step.other = value(c, c.other(l));
    if (c.norm_waits(l)) use_statistics(c, step, step.layer);
    Ref hold, own;
    if (makes) {
      hold = value(c, t);
      own = with_rows(hold, c.at(t).own);
      if (carries) carry_in(c, t, hold);
      const bool apart = conv && (carries || (c.ends(t) && c.cut()));
      step.y = apart ? storage_.own_value(c, t) : own;
    }
    if (saves) step.saved = storage_.saved(c, static_cast<Index>(at));
    step.packed = packed(c, c.forward() ? Filter::forward : Filter::recompute, l);
    sink_.step(step);
    if (c.forward()) statistics(c, t, step.y);
    if (makes && step.y.buffer != own.buffer) move(c, Op::copy, step.y, own);
    if (makes && c.forward() && c.in_full(t) && !c.ends(t) && c.cut())
      move(c, Op::copy, with_rows(hold, c.at(t).part), storage_.full_value(c, t, c.at(t).part));
    if (makes && !c.ends(t)) carry_out(c, t, hold);
  }
  /// Adds the rows of tensor t that the slab answers for to what norms above know of it: once, in the forward pass proper.
  constexpr void statistics(const StagePass& c, Index t, const Ref& y) {
    if (c.again) return;
    const auto add = [&](Index node) {
      Step step = make(c, Op::statistics);
      step.layer = node;
      step.x = t < c.tensors() ? with_rows(y, c.at(t).part) : y;
      use_statistics(c, step, node);
      use_workspace(c, step, table_.node(node).layer);
      step.accumulate = c.n > 0 || (is_of_batch(node) && c.image_slab > 0);
      sink_.step(step);
    };
    for (const NormAbove& norm : c.stage->norms_above)
      if (norm.tensor == t && c.round == 0) add(norm.node);
    if (c.round == 0) return;
    const auto under = detail::norms_under(table_, *c.stage);
    for (Index l = 0; l < c.layers(); ++l)
      if (c.norm_waits(l) && c.in(l) == t && t >= c.inputs() && under[static_cast<std::size_t>(l)] == c.round) add(c.stage->first + l);
  }
  constexpr void use_statistics(const StagePass& c, Step& step, Index node) {
    step.statistics = storage_.statistics(c, node);
    step.set = is_of_batch(node) ? 0 : c.images.begin - c.group.begin;
  }
  constexpr bool is_of_batch(Index node) const { return table_.node(node).layer.norm.over == Norm::Over::batch; }
  /// Calls `slab` for every slab, images outermost; rows downward or upward.
  template <class F>
  constexpr void for_slabs(StagePass& c, bool upward, F slab) {
    const Index images = c.stage->partition.images, slabs = c.rows->slabs();
    c.image_slab = 0;
    for (Index begin = group_.begin; begin < group_.end; begin += images, ++c.image_slab) {
      c.images = {begin, std::min(begin + images, group_.end)};
      c.covered.assign(static_cast<std::size_t>(c.tensors()), 0);
      for (Index t = 0; t < c.tensors(); ++t) c.covered[static_cast<std::size_t>(t)] = c.shape(t).h;
      for (Index k = 0; k < slabs; ++k) {
        c.n = upward ? slabs - 1 - k : k;
        c.input_ready.assign(static_cast<std::size_t>(c.tensors()), 0);
        c.contributions.assign(static_cast<std::size_t>(c.tensors()), 0);
        slab();
        if (!Sink::every_turn) return;
      }
    }
  }
  /// Before what a stage writes: a pass of slabs for the statistics of those of its norms whose inputs have come through no other, one for
  /// those above one of these, and so on.
  constexpr void statistics_passes(StagePass& c) {
    const auto under = detail::norms_under(table_, *c.stage);
    const auto counts = [&](Index l) { return c.norm_waits(l) && !c.norm_at_bottom(l) && under[static_cast<std::size_t>(l)] == c.round; };
    Index rounds = 0;
    for (const Index norms : under) rounds = std::max(rounds, norms);
    for (c.round = 1; c.round <= rounds; ++c.round) {
      BackwardRun run{false, 0, 0, Flags(static_cast<std::size_t>(c.layers()), 0)};   // what those norms read
      Flags wanted(static_cast<std::size_t>(c.tensors()), 0);
      for (Index l = c.layers() - 1; l >= 0; --l) {
        const bool makes = wanted[static_cast<std::size_t>(c.out(l))] != 0;
        run.made[static_cast<std::size_t>(l)] = makes;
        if (makes && run.last == 0) run.last = l + 1;
        for (const Index t : {c.in(l), c.other(l)})
          if (t >= 0 && (makes || (counts(l) && t == c.in(l)))) wanted[static_cast<std::size_t>(t)] = 1;
      }
      for_slabs(c, false, [&] { forward_layers(c, run); });
    }
    c.round = 0;
  }
  /// `again`: the pass of a stage that is remade, before its segment's backward pass.
  constexpr void forward_stage(Index s, bool again) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    const bool leaves_pieces = options_.training && stage.remade == again && !stage.covered && stage.passes == 0;
    const bool keeps = options_.training && !stage.covered && needs_[static_cast<std::size_t>(s)].any_kept;   // pieces for the backward slabs, now or again
    StagePass c = stage_pass(s, Pass::forward, keeps ? stage.backward : stage.forward);
    c.training = leaves_pieces;
    c.second = c.again = again;
    const Index since = sink_.now;
    pack_all(c, Filter::forward, 0, c.layers());
    if (stage.passes > 0) statistics_passes(c);
    const bool at_loss = stage.passes > 0 && c.loses_rows;   // its backward pass makes the rest
    if (!at_loss) for_slabs(c, false, [&] {
      forward_layers(c, {false, 0, c.layers(), {}});
      if (Sink::every_turn && c.at(c.top()).own.empty()) return;
      if (stage.reduces) {
        Step step = make(c, Op::forward, c.layers());
        step.x = with_rows(value(c, c.top()), c.at(c.top()).own);
        step.y = storage_.full_value(c, c.tensors(), {0, 1});
        step.accumulate = step.x.rows.begin > 0;
        sink_.step(step);
      }
      if (c.stores) store(c, with_rows(value(c, c.top()), c.at(c.top()).own));
      if (c.loses_rows) rows_loss(c, true);
    });
    storage_.outlive_turns(c, since);
    if (!stage.reduces) return;
    c.images = group_, c.image_slab = c.n = 0;
    if (c.norms_above(c.tensors()) > 0) statistics(c, c.tensors(), storage_.full_value(c, c.tensors(), {0, 1}));
    if (options_.stores_output && stage.last == table_.size()) store(c, storage_.full_value(c, c.tensors(), {0, 1}));
  }
  /// Rows of the network's output, done, to whoever takes them.
  constexpr void store(const StagePass& c, const Ref& x) {
    Step step = make(c, Op::store);
    step.x = x;
    sink_.step(step);
  }
  /// The stage's number of the network's output. Pre: the last stage's pass.
  static constexpr Index last_tensor(const StagePass& c) { return c.stage->reduces ? c.tensors() : c.top(); }
  constexpr void loss() {
    StagePass c = stage_pass(stage_count_ - 1, Pass::forward, stages_[static_cast<std::size_t>(stage_count_ - 1)].forward);
    c.images = group_;
    const Range rows{0, table_.shape(table_.size()).h};
    Step step = make(c, Op::loss);
    step.x = storage_.full_value(c, last_tensor(c), rows);
    if (options_.training) step.dx = storage_.full_gradient(c, last_tensor(c), rows);
    sink_.step(step);
  }

  /// The loss of the slab's rows, and their gradient. `counts`: it is added to the step's; in extra passes it was, or will be.
  constexpr void rows_loss(StagePass& c, bool counts) {
    Step step = make(c, Op::loss);
    step.pass = counts ? Pass::forward : Pass::recompute;
    step.x = with_rows(value(c, c.top()), c.at(c.top()).own);
    if (options_.training) step.dx = with_rows(storage_.gradient(c, c.top()), c.at(c.top()).own);
    sink_.step(step);
  }

  // ---- backward ----------------------------------------------------------------------------------------------------
  /// The stage with extra passes that covers stage s.
  constexpr Index covering(Index s) const {
    Index over = stage_count_;
    while (stages_[static_cast<std::size_t>(over)].last <= stages_[static_cast<std::size_t>(s)].first ||
           stages_[static_cast<std::size_t>(over)].first > stages_[static_cast<std::size_t>(s)].first)
      ++over;
    return over;
  }
  /// Stages down, segment by segment: what of a segment was not kept is made again first.
  constexpr void backward() {
    for (Index s = stage_count_ - 1; s >= 0; --s) {
      Index first = s;
      if (stages_[static_cast<std::size_t>(s)].covered) {
        const Index over = covering(s);
        backward_stage(over);
        while (first > 0 && stages_[static_cast<std::size_t>(first - 1)].first >= stages_[static_cast<std::size_t>(over)].first) --first;
        s = first;
        continue;
      }
      while (first > 0 && stages_[static_cast<std::size_t>(first - 1)].remade) --first;
      for (Index k = first; k < s; ++k) forward_stage(k, true);
      for (; s > first; --s) backward_stage(s);
      backward_stage(s);
    }
  }
  constexpr void backward_stage(Index s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
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
    char& count = c.contributions[static_cast<std::size_t>(t)];
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
    char& count = c.contributions[static_cast<std::size_t>(t)];
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
    if (++count == c.stage->use(t).readers + outside(c, t) && t < c.top() && c.carries[static_cast<std::size_t>(t)]) exchange_gradient(c, t, hold);
  }
  /// Gradients of tensor t that come from stages further on.
  static constexpr Index outside(const StagePass& c, Index t) {
    return c.in_full(t) ? (c.stage->use(t).wanted_plain ? 1 : 0) + c.norms_above(t) : 0;
  }
  /// `gives`: to parameters and to inputs of the stage; in passes before the last it does not. `sums`: it is a norm whose sums the pass is for.
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
      else if (needs.input && !reads_for_parameters(y)) step.x = value(c, c.in(l));
      if (needs.output) step.y = with_rows(value(c, t), c.at(t).own);
      if (needs.saved) step.saved = storage_.saved(c, l);
      step.packed = packed(c, Filter::backward, l);
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
    char& count = c.contributions[static_cast<std::size_t>(t)];
    const Range all{0, c.shape(t).h};
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
  /// A slab's gradient rows of tensor t (empty: they are there) into full height, where slabs come from the bottom up: rows that later
  /// slabs have written are added to, and rows that nothing read get zeros.
  template <class F>
  constexpr void deliver(StagePass& c, Index t, const Ref& slab, F full) {
    Index& covered = c.covered[static_cast<std::size_t>(t)];
    const Range rows = slab ? slab.rows : c.at(t).hold;
    const Range seen = rows.empty() ? Range{covered, covered} : rows;
    move(c, Op::zero, {}, full({std::min(seen.end, covered), covered}));
    if (slab) {
      const Range again = intersect(seen, {covered, c.shape(t).h}), fresh = intersect(seen, {0, covered});
      move(c, Op::add, with_rows(slab, again), full(again));
      move(c, Op::copy, with_rows(slab, fresh), full(fresh));
    }
    covered = std::min(covered, seen.begin);
    if (c.n == 0) move(c, Op::zero, {}, full({0, covered}));
  }
  static constexpr bool slabs_meet(const Schedule& rows, Index t) {
    for (Index n = 0; n + 1 < rows.slabs(); ++n)
      if (!intersect(rows.at(n, t).hold, rows.at(n + 1, t).hold).empty()) return true;
    return false;
  }
};
}  // namespace lrcnn
