#pragma once
// A stage's forward pass, step by step: a run of layers over each slab, and what every pass of a stage has in common with it: how a step
// is made, filters packed, rows brought in and carried on. The backward pass (plan/emit_backward.hpp) makes values again by the same run.
//
// For each slab of images, for each slab of rows: the chain's layers. A stage with extra passes both ways first goes through its slabs for
// the statistics of its norms alone.
#include <lrcnn/plan/storage.hpp>
namespace lrcnn {
/// The first part of Emitter (plan/emit.hpp).
class ForwardEmitter {
 public:
  constexpr ForwardEmitter(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                           const std::vector<Stage>& stages, Sink& sink)
      : ForwardEmitter(table, policy, target, options, stages, own_needs_, sink) {
    own_needs_ = needs_of(table, policy, options, stages);
  }
  /// `needs`: what needs_of() says of the stages. Pre: it outlives the object.
  constexpr ForwardEmitter(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                           const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs, Sink& sink)
      : table_(table),
        policy_(policy),
        target_(target),
        options_(options),
        stages_(stages),
        sink_(sink),
        storage_(table, target, stages, policy.gradients_in_place && options.training, sink),
        needs_(needs) {}
  ForwardEmitter(const ForwardEmitter&) = delete;
  ForwardEmitter& operator=(const ForwardEmitter&) = delete;

 protected:
  using Filter = Storage::Filter;
  const Table& table_;
  const PolicySpec& policy_;
  const Target& target_;
  const PlanOptions& options_;
  const std::vector<Stage>& stages_;
  Sink& sink_;
  Storage storage_;
  std::vector<StageNeeds> own_needs_{};
  const std::vector<StageNeeds>& needs_;
  Index workspace_ = -1;
  Range group_{};   ///< images that go through all stages together

  // ---- steps -------------------------------------------------------------------------------------------------------
  constexpr const Stage& stage_at(Index s) const { return item(stages_, s); }
  constexpr StageWalk walk_of(Index s, const PassKind& kind, const Schedule& rows) const {
    return {table_, stages_, needs_, s, kind, rows, policy_, options_, group_};
  }
  constexpr Step make(const StageWalk& walk, Op op, Index l = -1) {
    Step step;
    step.op = op;
    step.pass = walk.pass;
    step.stage = walk.number;
    step.slab = walk.image_slab * walk.rows->slabs() + walk.slab;
    step.layer = l < 0 ? -1 : walk.stage->first + l;
    step.stream = (op == Op::load || crosses_memories(op)) && walk.prefetch ? policy_.streams : walk.stream();
    if (walk.again()) step.pass = Pass::recompute;
    if (l < 0 || l >= walk.layers()) return step;
    const Layer& y = walk.layer(l);
    if (is_conv(y)) step.conv_algorithm = policy_.conv_algorithm_in(walk.stage->partition);
    use_workspace(walk, step, y);
    return step;
  }
  constexpr void use_workspace(const StageWalk& walk, Step& step, const Layer& y) {
    if (!target_.gives_workspace(y)) return;
    const Index id = walk.stage->partition.workspace_bytes < 0 ? workspace_ : storage_.workspace(walk);
    if (id >= 0) step.workspace = id + walk.stream();
  }
  /// copy, add, zero, load: x may be empty.
  constexpr void move(const StageWalk& walk, Op op, const Ref& x, const Ref& y) {
    Step step = make(walk, op);
    step.x = x;
    step.y = y;
    sink_.step(step);
  }
  // ---- filters -----------------------------------------------------------------------------------------------------
  static constexpr Op pack_op(Filter which) { return which == Filter::backward ? Op::pack_backward : Op::pack_forward; }
  constexpr void pack(const StageWalk& walk, Filter which, Index l) {
    Step step = make(walk, pack_op(which), l);
    step.workspace = -1;
    step.packed = storage_.filter(walk, which, l);
    sink_.step(step);
  }
  /// Before the slabs of a pass: filters in the backend's layout, once for all of them.
  constexpr void pack_all(const StageWalk& walk, Filter which, Index first, Index last) {
    for (Index l = first; l < last; ++l)
      if (packs(walk, l) && !walk.packs_in_slab(l)) pack(walk, which, l);
  }
  constexpr bool packs(const StageWalk& walk, Index l) const { return target_.packs(walk.layer(l)); }
  /// The packed filter of layer l; -1 if the layer wants none.
  constexpr Index packed(const StageWalk& walk, Filter which, Index l) {
    if (!packs(walk, l)) return -1;
    if (walk.packs_in_slab(l)) pack(walk, which, l);   // else pack_all() has
    return storage_.filter(walk, which, l);
  }
  // ---- values ------------------------------------------------------------------------------------------------------
  constexpr Ref value(StageWalk& walk, Index t) {
    const Ref ref = storage_.value(walk, t);
    const bool there = walk.reads_in_full(t) && (t < walk.inputs() || (walk.cut() && !walk.forward() && !walk.ends(t)));
    if (!there || item(walk.input_ready, t) || !storage_.has_input_slab(walk, t)) return ref;
    if (walk.stage->tensor(t) == 0) move(walk, Op::load, {}, ref);
    else move(walk, walk.fetches(t) ? Op::fetch : Op::copy, storage_.full_value(walk, t, ref.rows), ref);
    item(walk.input_ready, t) = true;
    return ref;
  }
  /// The rows that layer l reads, dense if the layer wants them so.
  constexpr Ref layer_input(StageWalk& walk, Index l) {
    const Ref x = value(walk, walk.in(l));
    if (!is_conv(walk.layer(l)) || !item(walk.slabs.need_copy, l)) return x;
    if (!storage_.wants_dense(walk, l)) return with_rows(x, walk.need(l));
    const Ref dense = storage_.needed_value(walk, l);
    move(walk, Op::copy, with_rows(x, dense.rows), dense);
    return dense;
  }
  /// Rows of tensor t from the slab before, into this one's.
  constexpr void carry_in(StageWalk& walk, Index t, const Ref& hold) {
    const bool from_state = !walk.forward() || (walk.wants_state(t) && walk.same_cuts());
    const Ref from = from_state ? storage_.state(walk, t, walk.slab) : storage_.rolling(walk, t, walk.slab);
    move(walk, Op::copy, from, with_rows(hold, walk.rows->carried(walk.slab, t)));
  }
  /// Rows of tensor t for the next slab, and for the backward pass at each of its cuts within this slab.
  constexpr void carry_out(StageWalk& walk, Index t, const Ref& hold) {
    if (!walk.forward()) return;
    const bool keep = walk.wants_state(t);
    if (item(walk.slabs.carries, t) && !(keep && walk.same_cuts())) {
      const Ref to = storage_.rolling(walk, t, walk.slab + 1);
      move(walk, Op::copy, with_rows(hold, to.rows), to);
    }
    if (!keep) return;
    const auto& cuts = walk.stage->backward.cuts;   // in ascending order; the last one is the map's height
    if (cuts.size() < 2) return;
    const Ref first = storage_.state(walk, t, 1);   // declared in the first slab in any case
    if (!sink_.every_turn) return move(walk, Op::copy, with_rows(hold, first.rows), first);
    const Index begin = walk.slab == 0 ? 0 : item(walk.rows->cuts, walk.slab - 1);
    const Index end = item(walk.rows->cuts, walk.slab);
    for (auto cut = std::upper_bound(cuts.begin(), cuts.end() - 1, begin); cut != cuts.end() - 1 && *cut <= end; ++cut) {
      const Ref to = storage_.state(walk, t, cut - cuts.begin() + 1);
      move(walk, Op::copy, with_rows(hold, to.rows), to);
    }
  }

  // ---- layers ------------------------------------------------------------------------------------------------------
  /// Those of a run, or all. Where a slab of a chain owns no row of a layer's output it owns none above it either, and the next slab
  /// carries in what this one would have.
  constexpr void forward_layers(StageWalk& walk, const BackwardRun& run) {
    for (Index l = run.first; l < run.last; ++l) {
      if (!run.makes(l)) continue;
      if (sink_.every_turn && walk.at(walk.out(l)).own.empty()) return;
      const bool activates = l + 1 < run.last && run.makes(l + 1) && activation_joins(walk, l);
      forward_layer(walk, l, activates);
      if (activates) ++l;
    }
  }
  /// Whether layer l + 1 is an activation that the step of layer l can apply: nobody else wants that layer's output.
  constexpr bool activation_joins(const StageWalk& walk, Index l) const {
    return target_.activates && rules_of(walk.layer(l)).takes_activation && is_activation(walk.layer(l + 1)) && walk.in(l + 1) == walk.out(l) &&
           walk.in_place(l + 1) && !(walk.forward() && walk.wants_state(walk.out(l)));
  }
  constexpr void forward_layer(StageWalk& walk, Index l, bool activates) {
    const Index t = walk.out(l + (activates ? 1 : 0));
    const auto at = static_cast<std::size_t>(l + (activates ? 1 : 0));   // the layer whose output and saved state the step writes
    const bool makes = walk.makes(t);
    const bool carries = !walk.ends(t) && item(walk.slabs.carries, t) && makes;
    const bool saves = walk.serves_backward() && walk.needs->layer[at].saved && (walk.forward() == static_cast<bool>(walk.needs->saved_kept[at]));
    const bool dense = storage_.wants_dense(walk, l);
    Step step = make(walk, Op::forward, l);
    step.activates = activates;
    step.x = layer_input(walk, l);
    if (walk.other(l) >= 0) step.other = value(walk, walk.other(l));
    if (walk.norm_waits(l)) use_statistics(walk, step, step.layer);
    Ref hold, own;
    if (makes) {
      hold = value(walk, t);
      own = with_rows(hold, walk.at(t).own);
      if (carries) carry_in(walk, t, hold);
      const bool apart = dense && (carries || (walk.ends(t) && walk.cut()));
      step.y = apart ? storage_.own_value(walk, t) : own;
    }
    if (saves) step.saved = storage_.saved(walk, static_cast<Index>(at));
    step.packed = packed(walk, walk.forward() ? Filter::forward : Filter::recompute, l);
    sink_.step(step);
    if (walk.forward()) statistics(walk, t, step.y);
    if (makes && step.y.buffer != own.buffer) move(walk, Op::copy, step.y, own);
    if (makes && walk.forward() && walk.in_full(t) && !walk.ends(t) && walk.cut())
      move(walk, Op::copy, with_rows(hold, walk.at(t).part), storage_.full_value(walk, t, walk.at(t).part));
    if (makes && !walk.ends(t)) carry_out(walk, t, hold);
  }
  /// Adds the rows of tensor t that the slab answers for to what norms above know of it: once, in the forward pass proper.
  constexpr void statistics(const StageWalk& walk, Index t, const Ref& y) {
    if (walk.again()) return;
    const auto add = [&](Index node) {
      Step step = make(walk, Op::statistics);
      step.layer = node;
      step.x = t < walk.tensors() ? with_rows(y, walk.at(t).part) : y;
      use_statistics(walk, step, node);
      use_workspace(walk, step, table_.node(node).layer);
      // Not walk.slab > 0: the first slabs of a chain may reach no row of the norm's input.
      step.accumulate = step.x.rows.begin > 0 || (is_of_batch(node) && walk.image_slab > 0);
      sink_.step(step);
    };
    for (const NormAbove& norm : walk.stage->norms_above)
      if (norm.tensor == t && walk.round == 0) add(norm.node);
    if (walk.round == 0) return;
    for (Index l = 0; l < walk.layers(); ++l)
      if (walk.norm_in_round(l) && walk.in(l) == t) add(walk.stage->first + l);
  }
  constexpr void use_statistics(const StageWalk& walk, Step& step, Index node) {
    step.statistics = storage_.statistics(walk, node);
    step.set = is_of_batch(node) ? 0 : walk.images.begin - walk.group.begin;
  }
  constexpr void use_sums(const StageWalk& walk, Step& step) {
    step.sums = storage_.sums(walk, step.layer);
    step.set = walk.images.begin - walk.group.begin;
  }
  constexpr bool is_of_batch(Index node) const { return table_.node(node).layer.norm.over == Norm::Over::batch; }
  /// Calls `slab` for every slab, images outermost; rows downward or upward.
  template <class F>
  constexpr void for_slabs(StageWalk& walk, bool upward, F slab) {
    const Index images = walk.stage->partition.images, slabs = walk.rows->slabs();
    const double whole = sink_.weight;
    const Index since = sink_.now;   // all turns have the first one's time
    Index until = since;
    walk.image_slab = 0;
    for (Index begin = group_.begin; begin < group_.end; begin += images, ++walk.image_slab) {
      walk.images = {begin, std::min(begin + images, group_.end)};
      const double of_images = sink_.every_turn ? whole * sink_.slabs_of_images(walk.image_slab, group_.size(), images) : 1;
      if (of_images == 0) continue;
      walk.written_from.assign(static_cast<std::size_t>(walk.tensors()), 0);
      for (Index t = 0; t < walk.tensors(); ++t) item(walk.written_from, t) = walk.shape(t).h;
      for (Index k = 0; k < slabs; ++k) {
        walk.slab = upward ? slabs - 1 - k : k;
        sink_.weight = sink_.every_turn ? of_images * sink_.slabs_of_rows(walk.slab, walk.rows->cuts) : 1;
        if (sink_.weight == 0) {
          for (Index t = 0; t < walk.tensors(); ++t) item(walk.written_from, t) = std::min(item(walk.written_from, t), walk.at(t).hold.begin);
          continue;
        }
        walk.input_ready.assign(static_cast<std::size_t>(walk.tensors()), 0);
        walk.contributions.assign(static_cast<std::size_t>(walk.tensors()), 0);
        sink_.now = since;
        slab();
        if (!sink_.every_turn) {
          if (walk.turns() > 1) sink_.loop(since);
          return;
        }
        if (until == since) until = sink_.now;
      }
    }
    sink_.now = until;
    sink_.weight = whole;
  }
  /// Before what a stage with extra passes writes: passes of slabs for the statistics of its norms alone, a round for those whose inputs
  /// have come through no other, one for those above one of these, and so on.
  constexpr void statistics_passes(StageWalk& walk) {
    walk.norms_under = detail::norms_under(table_, *walk.stage);
    const Index rounds = walk.norms_under.empty() ? 0 : *std::max_element(walk.norms_under.begin(), walk.norms_under.end());
    for (walk.round = 1; walk.round <= rounds; ++walk.round) {
      BackwardRun run{false, 0, 0, Flags(static_cast<std::size_t>(walk.layers()), 0)};   // what those norms read
      Flags wanted(static_cast<std::size_t>(walk.tensors()), 0);
      for (Index l = walk.layers() - 1; l >= 0; --l) {
        const bool makes = item(wanted, walk.out(l)) != 0;
        item(run.made, l) = makes;
        if (makes && run.last == 0) run.last = l + 1;
        for (const Index t : {walk.in(l), walk.other(l)})
          if (t >= 0 && (makes || (walk.norm_in_round(l) && t == walk.in(l)))) item(wanted, t) = 1;
      }
      for_slabs(walk, false, [&] { forward_layers(walk, run); });
    }
    walk.round = 0;
  }

  // ---- a stage -----------------------------------------------------------------------------------------------------
  constexpr void forward_stage(Index s, ForwardRun run) {
    const Stage& stage = stage_at(s);
    const ForwardRun last_run = stage.forward_repeated ? ForwardRun::again : stage.supplies ? ForwardRun::for_above : ForwardRun::first;
    const bool leaves_pieces = options_.training && run == last_run && !stage.replaced_by_extra_passes && stage.passes == 0;
    // Pieces for the backward slabs, now or again.
    const bool keeps = options_.training && !stage.replaced_by_extra_passes && item(needs_, s).any_kept;
    const Schedule& slabs = keeps ? stage.backward : run == ForwardRun::again ? stage.again() : stage.forward;
    StageWalk walk = walk_of(s, {Pass::forward, leaves_pieces, run}, slabs);
    const Index since = sink_.now;
    pack_all(walk, Filter::forward, 0, walk.layers());
    if (stage.passes > 0 && run == ForwardRun::first) statistics_passes(walk);
    const bool at_loss = stage.passes > 0 && walk.loses_rows;   // its backward pass makes the rest
    if (!at_loss)
      for_slabs(walk, false, [&] {
        forward_layers(walk, {false, 0, walk.layers(), {}});
        if (sink_.every_turn && walk.at(walk.top()).own.empty()) return;
        if (stage.reduces) {
          Step step = make(walk, Op::forward, walk.layers());
          step.x = with_rows(value(walk, walk.top()), walk.at(walk.top()).own);
          step.y = storage_.full_value(walk, walk.tensors(), {0, 1});
          step.accumulate = step.x.rows.begin > 0;
          if (walk.cut()) use_sums(walk, step);
          sink_.step(step);
        }
        if (walk.stores) store(walk, with_rows(value(walk, walk.top()), walk.at(walk.top()).own));
        if (walk.loses_rows) rows_loss(walk, true);
      });
    storage_.outlive_turns(walk, since);
    if (!stage.reduces) return;
    walk.stand_before_slabs();
    if (walk.norms_above(walk.tensors()) > 0) statistics(walk, walk.tensors(), storage_.full_value(walk, walk.tensors(), {0, 1}));
    if (options_.stores_output && stage.last == table_.size()) store(walk, storage_.full_value(walk, walk.tensors(), {0, 1}));
  }
  /// Rows of the network's output, done, to whoever takes them.
  constexpr void store(const StageWalk& walk, const Ref& x) {
    Step step = make(walk, Op::store);
    step.x = x;
    sink_.step(step);
  }
  /// The loss of the slab's rows, and their gradient. `counts`: it is added to the step's; in extra passes it was, or will be.
  constexpr void rows_loss(StageWalk& walk, bool counts) {
    Step step = make(walk, Op::loss);
    step.pass = counts ? Pass::forward : Pass::recompute;
    step.x = with_rows(value(walk, walk.top()), walk.at(walk.top()).own);
    if (options_.training) step.dx = with_rows(storage_.gradient(walk, walk.top()), walk.at(walk.top()).own);
    sink_.step(step);
  }
};
}   // namespace lrcnn
