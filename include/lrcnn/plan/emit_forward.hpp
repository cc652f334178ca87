#pragma once
// A stage's forward pass, step by step: a run of layers over each slab, and what every pass of a stage has in common with it: how a step
// is made, filters packed, rows brought in and carried on. The backward pass (plan/emit_backward.hpp) makes values again by the same run.
//
// For each slab of images, for each slab of rows: the chain's layers. A stage with extra passes both ways first goes through its slabs for
// the statistics of its norms alone.
#include <lrcnn/plan/storage.hpp>
namespace lrcnn {
class ForwardEmitter {
 public:
  constexpr ForwardEmitter(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                           const std::vector<Stage>& stages, Sink& sink)
      : table_(table), policy_(policy), target_(target), options_(options), stages_(stages), sink_(sink),
        storage_(table, target, stages, sink) {}

 protected:
  using Filter = Storage::Filter;
  const Table& table_;
  const PolicySpec& policy_;
  const Target& target_;
  const PlanOptions& options_;
  const std::vector<Stage>& stages_;
  Sink& sink_;
  Storage storage_;
  std::vector<StageNeeds> needs_{};
  Index workspace_ = -1;
  Range group_{};   ///< images that go through all stages together

  // ---- steps -------------------------------------------------------------------------------------------------------
  constexpr const Stage& stage_at(Index s) const { return stages_[static_cast<std::size_t>(s)]; }
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
    if (is_conv(y)) step.conv_algorithm = policy_.conv_algorithm;
    use_workspace(c, step, y);
    return step;
  }
  constexpr void use_workspace(const StagePass& c, Step& step, const Layer& y) const {
    const LayerRules& rules = rules_of(y);
    const bool uses = rules.uses_workspace || (rules.sums_channels && target_.sums_use_workspace);
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
      if (sink_.every_turn && (cuts[g] <= begin || cuts[g] > end)) continue;
      move(c, Op::copy, with_rows(hold, to.rows), to);
      if (!sink_.every_turn) break;
    }
  }

  // ---- layers ------------------------------------------------------------------------------------------------------
  /// Those of a run, or all. Where a slab of a chain owns no row of a layer's output it owns none above it either, and the next slab
  /// carries in what this one would have.
  constexpr void forward_layers(StagePass& c, const BackwardRun& run) {
    for (Index l = run.first; l < run.last; ++l) {
      if (!run.makes(l)) continue;
      if (sink_.every_turn && c.at(c.out(l)).own.empty()) return;
      const bool activates = l + 1 < run.last && run.makes(l + 1) && activation_joins(c, l);
      forward_layer(c, l, activates);
      if (activates) ++l;
    }
  }
  /// Whether layer l + 1 is an activation that the step of layer l can apply: nobody else wants that layer's output.
  constexpr bool activation_joins(const StagePass& c, Index l) const {
    return target_.activates && rules_of(c.layer(l)).takes_activation && is_activation(c.layer(l + 1)) && c.in(l + 1) == c.out(l) && c.in_place(l + 1) &&
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
      // Not c.n > 0: the first slabs of a chain may reach no row of the norm's input.
      step.accumulate = step.x.rows.begin > 0 || (is_of_batch(node) && c.image_slab > 0);
      sink_.step(step);
    };
    for (const NormAbove& norm : c.stage->norms_above)
      if (norm.tensor == t && c.round == 0) add(norm.node);
    if (c.round == 0) return;
    for (Index l = 0; l < c.layers(); ++l)
      if (c.norm_in_round(l) && c.in(l) == t) add(c.stage->first + l);
  }
  constexpr void use_statistics(const StagePass& c, Step& step, Index node) {
    step.statistics = storage_.statistics(c, node);
    step.set = is_of_batch(node) ? 0 : c.images.begin - c.group.begin;
  }
  constexpr void use_sums(const StagePass& c, Step& step) {
    step.sums = storage_.sums(c, step.layer);
    step.set = c.images.begin - c.group.begin;
  }
  constexpr bool is_of_batch(Index node) const { return table_.node(node).layer.norm.over == Norm::Over::batch; }
  /// Calls `slab` for every slab, images outermost; rows downward or upward.
  template <class F>
  constexpr void for_slabs(StagePass& c, bool upward, F slab) {
    const Index images = c.stage->partition.images, slabs = c.rows->slabs();
    c.image_slab = 0;
    for (Index begin = group_.begin; begin < group_.end; begin += images, ++c.image_slab) {
      c.images = {begin, std::min(begin + images, group_.end)};
      c.written_from.assign(static_cast<std::size_t>(c.tensors()), 0);
      for (Index t = 0; t < c.tensors(); ++t) c.written_from[static_cast<std::size_t>(t)] = c.shape(t).h;
      for (Index k = 0; k < slabs; ++k) {
        c.n = upward ? slabs - 1 - k : k;
        c.input_ready.assign(static_cast<std::size_t>(c.tensors()), 0);
        c.contributions.assign(static_cast<std::size_t>(c.tensors()), 0);
        slab();
        if (!sink_.every_turn) return;
      }
    }
  }
  /// Before what a stage with extra passes writes: passes of slabs for the statistics of its norms alone, a round for those whose inputs
  /// have come through no other, one for those above one of these, and so on.
  constexpr void statistics_passes(StagePass& c) {
    c.norms_under = detail::norms_under(table_, *c.stage);
    const Index rounds = c.norms_under.empty() ? 0 : *std::max_element(c.norms_under.begin(), c.norms_under.end());
    for (c.round = 1; c.round <= rounds; ++c.round) {
      BackwardRun run{false, 0, 0, Flags(static_cast<std::size_t>(c.layers()), 0)};   // what those norms read
      Flags wanted(static_cast<std::size_t>(c.tensors()), 0);
      for (Index l = c.layers() - 1; l >= 0; --l) {
        const bool makes = wanted[static_cast<std::size_t>(c.out(l))] != 0;
        run.made[static_cast<std::size_t>(l)] = makes;
        if (makes && run.last == 0) run.last = l + 1;
        for (const Index t : {c.in(l), c.other(l)})
          if (t >= 0 && (makes || (c.norm_in_round(l) && t == c.in(l)))) wanted[static_cast<std::size_t>(t)] = 1;
      }
      for_slabs(c, false, [&] { forward_layers(c, run); });
    }
    c.round = 0;
  }

  // ---- a stage -----------------------------------------------------------------------------------------------------
  /// `again`: the stage's repeated forward pass, before its segment's backward pass.
  constexpr void forward_stage(Index s, bool again) {
    const Stage& stage = stage_at(s);
    const bool leaves_pieces = options_.training && stage.forward_repeated == again && !stage.replaced_by_extra_passes && stage.passes == 0;
    // Pieces for the backward slabs, now or again.
    const bool keeps = options_.training && !stage.replaced_by_extra_passes && needs_[static_cast<std::size_t>(s)].any_kept;
    StagePass c = stage_pass(s, Pass::forward, keeps ? stage.backward : stage.forward);
    c.training = leaves_pieces;
    c.second = c.again = again;
    const Index since = sink_.now;
    pack_all(c, Filter::forward, 0, c.layers());
    if (stage.passes > 0) statistics_passes(c);
    const bool at_loss = stage.passes > 0 && c.loses_rows;   // its backward pass makes the rest
    if (!at_loss) for_slabs(c, false, [&] {
      forward_layers(c, {false, 0, c.layers(), {}});
      if (sink_.every_turn && c.at(c.top()).own.empty()) return;
      if (stage.reduces) {
        Step step = make(c, Op::forward, c.layers());
        step.x = with_rows(value(c, c.top()), c.at(c.top()).own);
        step.y = storage_.full_value(c, c.tensors(), {0, 1});
        step.accumulate = step.x.rows.begin > 0;
        if (c.cut()) use_sums(c, step);
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
  /// The loss of the slab's rows, and their gradient. `counts`: it is added to the step's; in extra passes it was, or will be.
  constexpr void rows_loss(StagePass& c, bool counts) {
    Step step = make(c, Op::loss);
    step.pass = counts ? Pass::forward : Pass::recompute;
    step.x = with_rows(value(c, c.top()), c.at(c.top()).own);
    if (options_.training) step.dx = with_rows(storage_.gradient(c, c.top()), c.at(c.top()).own);
    sink_.step(step);
  }
};
}  // namespace lrcnn
