#pragma once
// What the backward pass of every layer of a stage reads, where it comes from, and in which order it is had.
//
// A layer's backward step may read its input, its output, or saved state (pool indices, mask bits). Each of those is
// either kept from the forward pass or made again from the nearest tensor below that is at hand. The policy only says
// what is kept; the order of re-runs follows: walking down from the stage's end, a re-run is made just before the
// first layer that lacks something, and makes all that the layers down to its start will need.
#include <lrcnn/plan/cut_stages.hpp>
#include <lrcnn/plan/sum_in_place.hpp>
namespace lrcnn {
/// What one layer's backward step reads.
struct LayerNeeds {
  bool input = false;
  bool output = false;
  bool saved = false;            ///< pool indices or mask bits
  bool sign = false;             ///< of the output: then `output` or `saved`, too
  bool for_parameters = false;   ///< BackwardReads::for_parameters
  friend constexpr bool operator==(const LayerNeeds&, const LayerNeeds&) = default;
};
/// A run of a stage's backward pass: layers [first, last) of the chain again, or one layer backward.
struct BackwardRun {
  bool recompute = false;
  Index first = 0;
  Index last = 0;
  std::vector<char> made{};   ///< of these layers, those that the re-run makes; empty: all
  constexpr bool makes(Index l) const { return made.empty() || item(made, l - first) != 0; }
  friend constexpr bool operator==(const BackwardRun&, const BackwardRun&) = default;
};
/// One truth value per tensor or layer. (Plain chars: compilers evaluate them cheaply in constant expressions.)
using Flags = std::vector<char>;
/// Needs and decisions for one stage. Tensors and layers are numbered as the stage numbers them.
struct StageNeeds {
  std::vector<LayerNeeds> layer;
  Flags value;                     ///< tensor t is read by a backward step
  Flags kept;                      ///< tensor t is kept from the forward pass, or from the first of extra passes, slab by slab
  Flags keeps_needs;               ///< RecomputeCheap: what the layers around tensor t need is kept, rather than made again
  Flags remade_in_slabs;           ///< tensor t lies in full height, but the backward pass computes it again in each slab instead of reading it
  Flags saved_kept;                ///< saved state of layer l is kept from the forward pass
  std::vector<BackwardRun> runs;   ///< in execution order
  /// Runs of the second and later extra passes, which can reuse what the first one kept, or what it made of a gradient. Empty: all passes have the
  /// same runs, `runs`.
  std::vector<BackwardRun> later_runs;
  Index sum_in_place = -1;   ///< sum_in_place(), with gradients in place
  bool any_kept = false;     ///< the forward pass leaves pieces for the backward slabs: both use the same cuts
  friend constexpr bool operator==(const StageNeeds&, const StageNeeds&) = default;
};
constexpr bool is_conv(const Layer& layer) { return layer.kind == Kind::conv; }
/// Multiply-adds for an element of a convolution's output up to which RecomputeLight makes it again: 3x3 filters from 64 channels.
/// Source:  VGG-16: its first convolution and those from 64 channels are 6.6 % of a forward pass; what they make for conv2 and conv4 to
///          read is half of all that KeepAll keeps at 224x224
inline constexpr Index light_products = 9 * 64;
constexpr BackwardReads backward_reads(const Layer& layer) { return rules_of(layer).backward(layer); }
/// Whether the sign of a layer's output is that of its input, where its backward step reads that: LeakyReLU's may have a slope below 0.
constexpr bool keeps_sign(const Layer& layer) { return layer.activation.slope >= 0; }
namespace detail {
/// Whether tensor t is the output of a convolution or a norm, or that of activations behind it, that takes few products to make.
constexpr bool is_light(const Table& table, const Stage& stage, Index t) {
  Index l = t - stage.input_count();
  while (l >= 0 && is_activation(table.node(stage.first + l).layer)) l = stage.in(l)-stage.input_count();
  if (l < 0) return false;
  const Node& node = table.node(stage.first + l);
  if (node.layer.kind == Kind::norm) return true;
  return is_conv(node.layer) && node.layer.window.kernel.h * node.layer.window.kernel.w * (node.in.c / node.layer.groups) <= light_products;
}
/// RecomputeCheap. What follows a convolution up to the next one, or to a join, is a run of cheap layers; all of it can be made again
/// from one tensor, the convolution's output or, where its activation may overwrite that, the activation's. Keeping
/// what the run's backward steps need may take less than that tensor (a pooled map, its indices, mask bits): then that.
constexpr void choose_bases(const Table& table, const Stage& stage, StageNeeds& needs) {
  const Index inputs = stage.input_count(), top = stage.tensors() - 1;
  const auto layer = [&](Index l) -> const Layer& { return table.node(stage.first + l).layer; };
  const auto bits = [&](Index t, Index each) { return table.shape(stage.tensor(t)).count() * each; };
  // The layer that alone reads tensor t, and comes next; -1 if there is none.
  const auto next = [&](Index t) {
    const Index l = t - inputs + 1;
    return t < top && stage.in(l) == t && stage.other(l) < 0 && stage.use(t).readers == 1 && !stage.use(t).leaves ? l : Index{-1};
  };
  for (Index t = inputs; t < top; ++t) {
    if (rules_of(layer(t - inputs)).cheap || stage.use(t).leaves) continue;
    Index end = t, kept = 0;   // tensors t .. end
    for (Index l = next(end); l >= 0 && rules_of(layer(l)).cheap; l = next(end)) ++end;
    for (Index u = t; u <= end; ++u) {
      if (u < top && item(needs.value, u)) kept += bits(u, 32);
      if (u == end) continue;
      const LayerNeeds& reader = item(needs.layer, u - inputs + 1);
      if (reader.saved) kept += bits(u + 1, 8);
      if (reader.sign && !(u + 1 < top && item(needs.value, u + 1))) kept += bits(u + 1, 1);
    }
    const Index l = t - inputs + 1;
    const bool overwrites = t + 1 < top && t < end && item(needs.layer, l).sign && keeps_sign(layer(l)) && !stage.use(t + 1).leaves;
    const Index base = overwrites ? t + 1 : t;
    if (kept <= bits(base, 32)) {
      for (Index u = t; u <= end; ++u) item(needs.keeps_needs, u) = 1;
      continue;
    }
    item(needs.kept, base) = 1;
    if (overwrites) item(needs.value, base) = 1;   // the sign is read from it
  }
}
/// What the layers' rules say that their backward steps read. Where a sign is read from is not decided yet.
constexpr void note_reads(const Table& table, const Stage& stage, StageNeeds& needs) {
  for (Index l = 0; l < stage.chain_layers(); ++l) {
    const BackwardReads reads = backward_reads(table.node(stage.first + l).layer);
    LayerNeeds& n = item(needs.layer, l);
    n = {reads.input, reads.output, reads.indices, reads.sign, reads.for_parameters};
    if (reads.other) item(needs.value, stage.other(l)) = true;   // in full height, and at hand
    if (n.input) item(needs.value, stage.in(l)) = true;
    if (n.output) item(needs.value, stage.out(l)) = true;
  }
}
/// The forward layers to run again before layer l's backward pass, from the nearest tensors below that are in memory (`at_hand`). They make
/// layer l's own output or saved state if `its_own` asks for it, and `tensor`, another one that the pass reads (-1: none).
constexpr BackwardRun rerun_for(const Stage& stage, const Flags& at_hand, Index l, bool its_own, Index tensor) {
  BackwardRun run{true, l, its_own ? l + 1 : l, {}};
  Flags wanted(static_cast<std::size_t>(stage.tensors()), 0), made(static_cast<std::size_t>(l + 1), 0);
  if (tensor >= 0) item(wanted, tensor) = 1;
  for (Index k = its_own ? l : l - 1; k >= 0; --k) {
    const Index t = stage.out(k);
    if (!(its_own && k == l) && !(item(wanted, t) && !item(at_hand, t))) continue;
    item(made, k) = 1;
    run.first = k;
    item(wanted, stage.in(k)) = 1;
    if (stage.other(k) >= 0) item(wanted, stage.other(k)) = 1;
  }
  while (!item(made, run.last - 1)) --run.last;
  bool whole = true;
  for (Index k = run.first; k < run.last; ++k) whole = whole && item(made, k);
  if (!whole) run.made.assign(made.begin() + run.first, made.begin() + run.last);
  return run;
}
/// The runs of a stage's backward pass. Tensors that are not `in_slabs` are at hand, as is what `needs` says is kept; the others are made again.
/// `first_made`: a tensor that is made before all others; `end`: layers from there on do not go backward.
constexpr std::vector<BackwardRun> find_runs(const Stage& stage, const StageNeeds& needs, const Flags& in_slabs, Index first_made, Index end) {
  const Index count = stage.chain_layers(), inputs = stage.input_count();
  Flags at_hand = needs.kept, saved_at_hand = needs.saved_kept;
  for (Index t = 0; t < stage.tensors(); ++t)
    if (!item(in_slabs, t)) item(at_hand, t) = true;
  std::vector<BackwardRun> runs;
  const auto add = [&](BackwardRun run) {
    for (Index k = run.first; k < run.last; ++k) {
      if (!run.makes(k)) continue;
      item(at_hand, inputs + k) = item(at_hand, inputs + k) || item(needs.value, inputs + k);
      item(saved_at_hand, k) = true;
    }
    runs.push_back(std::move(run));
  };
  if (first_made >= 0) add(rerun_for(stage, at_hand, count, false, first_made));
  for (Index l = end - 1; l >= 0; --l) {
    const LayerNeeds& n = item(needs.layer, l);
    const bool lacks_top = (n.saved && !item(saved_at_hand, l)) || (n.output && !item(at_hand, inputs + l));
    const bool lacks_input = n.input && !item(at_hand, stage.in(l));
    if (lacks_top || lacks_input) add(rerun_for(stage, at_hand, l, lacks_top, lacks_input ? stage.in(l) : -1));
    runs.push_back({false, l, l + 1, {}});
  }
  return runs;
}
/// How many of a stage's runs, from the first, one of its passes has: those down to the last layer that the pass leads backward. Those of extra
/// passes, the first of which has number 1, are the layers with fewer norms below them than that (`over`, of norms_over()); the `last` pass has all.
constexpr std::size_t runs_of_pass(const std::vector<BackwardRun>& runs, const std::vector<Index>& over, Index number, bool last) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].recompute && (last || item(over, runs[i].first) < number)) end = i + 1;
  return end;
}
/// Has the first of a stage's extra passes keep what norms within the stage read, as far as that pass makes it. Pre: `needs.runs` are those of a
/// pass that finds nothing kept.
constexpr void keep_between_passes(const Table& table, const Stage& stage, StageNeeds& needs, const Flags& in_slabs) {
  const std::size_t end = runs_of_pass(needs.runs, norms_over(table, stage), 1, false);
  for (Index l = 0; l < stage.chain_layers(); ++l) {
    const Index t = stage.in(l);
    if (!waits(table.node(stage.first + l), true) || !item(in_slabs, t)) continue;
    const Index maker = t - stage.input_count();
    for (std::size_t i = 0; i < end; ++i)
      if (const BackwardRun& run = needs.runs[i]; run.recompute && run.first <= maker && maker < run.last && run.makes(maker))
        item(needs.kept, t) = 1;
  }
}
}   // namespace detail
/// A stage with extra passes has no forward pass that could keep anything for it, nor has one whose rows end in the loss (`loses_rows`):
/// its first run makes them. With RecomputeCheap the first of extra passes keeps what its norms read. `frees`: what the stage writes in full height
/// is not to be read there by its own backward pass, if that is cheap. `in_place`: gradients take the places of others where they can.
constexpr StageNeeds stage_needs(const Table& table, const Stage& stage, Recompute recompute, bool loses_rows = false, bool frees = false,
                                 bool in_place = false) {
  const bool no_forward = stage.passes > 0 || loses_rows, keeps_between = stage.passes > 0 && recompute == Recompute::cheap;
  if (no_forward) recompute = Recompute::all;
  const Index count = stage.chain_layers(), inputs = stage.input_count(), tensors = stage.tensors();
  const auto layer = [&](Index l) -> const Layer& { return table.node(stage.first + l).layer; };
  StageNeeds needs;
  needs.layer.assign(static_cast<std::size_t>(count), LayerNeeds{});
  needs.value.assign(static_cast<std::size_t>(tensors), 0);
  needs.kept.assign(static_cast<std::size_t>(tensors), 0);
  needs.keeps_needs.assign(static_cast<std::size_t>(tensors), 0);
  needs.remade_in_slabs.assign(static_cast<std::size_t>(tensors), 0);
  for (Index t = inputs; frees && recompute == Recompute::all && t < tensors; ++t)
    item(needs.remade_in_slabs, t) = stage.use(t).leaves && stage.use(t).readers > 0 && rules_of(layer(t - inputs)).cheap;
  needs.saved_kept.assign(static_cast<std::size_t>(count), 0);
  detail::note_reads(table, stage, needs);
  if (recompute == Recompute::cheap) detail::choose_bases(table, stage, needs);
  // A sign comes from the output if that is kept anyway, else from mask bits: what is made again is gone sooner.
  for (Index l = 0; l < count; ++l) {
    if (!item(needs.layer, l).sign) continue;
    const Index t = inputs + l;
    const bool ends = t + 1 == tensors || (stage.use(t).leaves && stage.use(t).readers == 0);
    const bool from_output = !ends && item(needs.value, t) && keeps_sign(layer(l)) && recompute != Recompute::all;
    (from_output ? item(needs.layer, l).output : item(needs.layer, l).saved) = true;
    if (!from_output && !no_forward && (ends || stage.use(t).leaves)) item(needs.saved_kept, l) = true;   // one bit, instead of a re-run
  }
  Flags in_slabs(static_cast<std::size_t>(tensors), 0);   // what leaves the stage exists in full height: it is read there and never kept in slabs
  for (Index t = inputs; t < tensors; ++t)
    item(in_slabs, t) = !stage.use(t).leaves || item(needs.remade_in_slabs, t) || (loses_rows && t + 1 == tensors);
  const bool keeps_all = recompute == Recompute::none || recompute == Recompute::light;
  for (Index t = inputs; t < tensors; ++t) {
    const Index l = t - inputs;
    const bool keeps_saved = keeps_all || (recompute == Recompute::cheap && item(needs.keeps_needs, t));
    const bool keeps = keeps_saved && !(recompute == Recompute::light && detail::is_light(table, stage, t));
    if (keeps && item(in_slabs, t)) item(needs.kept, t) = item(needs.value, t);
    if (keeps_saved && item(needs.layer, l).saved) item(needs.saved_kept, l) = 1;
  }
  for (Index t = inputs; t < tensors; ++t)   // the last layer's saved state lies in full height, not in pieces
    needs.any_kept = needs.any_kept || item(needs.kept, t) || (t + 1 < tensors && item(needs.saved_kept, t - inputs));
  const Index first_made = loses_rows && tensors > inputs ? tensors - 1 : -1;   // the loss reads it
  if (first_made >= 0) item(needs.value, first_made) = 1;
  needs.runs = detail::find_runs(stage, needs, in_slabs, first_made, count);
  if (in_place) needs.sum_in_place = sum_in_place(table, stage, loses_rows);
  const bool in_first_pass = needs.sum_in_place >= 0;   // the sum, and what lies above it
  if (keeps_between) detail::keep_between_passes(table, stage, needs, in_slabs);
  if (keeps_between || in_first_pass)
    needs.later_runs = detail::find_runs(stage, needs, in_slabs, first_made, in_first_pass ? needs.sum_in_place : count);
  return needs;
}
/// What each of these stages needs under a policy.
constexpr std::vector<StageNeeds> needs_of(const Table& table, const PolicySpec& policy, const PlanOptions& options,
                                           const std::vector<Stage>& stages) {
  std::vector<StageNeeds> needs;
  for (const Stage& stage : stages)
    needs.push_back(stage_needs(
        table, stage, options.training ? policy.recompute_in(stage.partition) : Recompute::all, options.training && stage.loses_rows(table, options),
        policy.gradients_in_place && stage.partition.cut != Cut::share && stage.backward.slabs() > 1, policy.gradients_in_place && options.training));
  return needs;
}
}   // namespace lrcnn
