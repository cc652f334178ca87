#pragma once
// One pass of one stage: what does not change while it goes on, and every question that can be answered from that without knowing where
// tensors lie. Where in the pass the emitter is, plan/stage_walk.hpp says.
//
// Tensors and layers are numbered as the stage numbers them: inputs, then what each layer writes; the last is the top. A slab's rows of
// tensor t are own, made here, hold, own and carried, and part, those that it answers for outside the stage (slab_schedule.hpp).
#include <lrcnn/plan/needs.hpp>
#include <lrcnn/plan/options.hpp>
namespace lrcnn {
/// What the slabs of a schedule have in common, worked out once for a pass.
struct SlabFacts {
  Flags carries{};     ///< tensor t has carried rows in some slab
  Flags same_rows{};   ///< slabs hold the same rows of the tensors that layer l reads and writes, none of them carried
  Flags need_copy{};   ///< layer l reads fewer rows of its input than the slab holds, by a stride or more, so it gets a dense copy
};
/// Which of a stage's forward passes it is.
enum class ForwardRun : std::uint8_t {
  first,
  for_above,   ///< for the sections above, whose inputs were not kept (Stage::supplies)
  again        ///< before its segment's backward pass
};
/// Which pass of a stage it is.
struct PassKind {
  Pass pass = Pass::forward;
  bool leaves_pieces = false;           ///< a forward pass leaves what the backward pass wants
  ForwardRun run = ForwardRun::first;   ///< of a forward pass
};
class StagePass {
 public:
  const Table* const table;
  const std::vector<Stage>* const all_stages;   ///< of the plan, or of a section
  const Stage* const stage;
  const StageNeeds* const needs;
  const Schedule* const rows;
  const Index number;   ///< of the stage
  const PassKind kind;
  const bool loses_rows;   ///< they go through the loss slab by slab
  const bool stores;       ///< the chain's last rows are handed on slab by slab, rather than gathered in full height
  const Range group;       ///< images that go through all stages together
  const Index streams;     ///< of the policy
  const bool prefetch;     ///< likewise
  const SlabFacts slabs;
  constexpr StagePass(const Table& whole, const std::vector<Stage>& stages, const std::vector<StageNeeds>& all_needs, Index stage_number,
                      const PassKind& which, const Schedule& schedule, const PolicySpec& policy, const PlanOptions& options, Range images_together)
      : table(&whole),
        all_stages(&stages),
        stage(&item(stages, stage_number)),
        needs(&item(all_needs, stage_number)),
        rows(&schedule),
        number(stage_number),
        kind(which),
        loses_rows(stage->loses_rows(whole, options)),
        stores(options.stores_output && stage->last == whole.size() && !stage->reduces),
        group(images_together),
        streams(policy.streams),
        prefetch(policy.prefetch),
        slabs(facts()),
        for_training_(options.training),
        wants_first_gradient_(options.input_gradient) {}
  /// A forward pass; else it is a backward pass, which makes some values again.
  constexpr bool forward() const { return kind.pass == Pass::forward; }
  /// A forward pass that is not the stage's first.
  constexpr bool again() const { return kind.run != ForwardRun::first; }
  /// A forward pass for the sections above alone.
  constexpr bool for_above() const { return kind.run == ForwardRun::for_above; }
  /// The pass leaves what the stage's backward pass wants, or is that pass.
  constexpr bool serves_backward() const { return !forward() || kind.leaves_pieces; }
  /// The pass works on values that are made once more: tensors that were discarded are those of a repeated forward pass.
  constexpr bool remakes_values() const { return !forward() || again(); }
  constexpr const Node& node(Index l) const { return table->node(stage->first + l); }
  constexpr const Layer& layer(Index l) const { return node(l).layer; }
  constexpr const Shape& shape(Index t) const { return table->shape(stage->tensor(t)); }
  constexpr Index layers() const { return stage->chain_layers(); }
  constexpr Index inputs() const { return stage->input_count(); }
  constexpr Index tensors() const { return stage->tensors(); }
  constexpr Index top() const { return tensors() - 1; }
  constexpr Index in(Index l) const { return stage->in(l); }
  constexpr Index other(Index l) const { return stage->other(l); }
  constexpr Index out(Index l) const { return stage->out(l); }
  constexpr bool cut() const { return rows->slabs() > 1; }
  /// Rows of its first input that layer l reads in slab k.
  constexpr Range need(Index k, Index l) const {
    if (!cut() || stage->use(in(l)).readers == 1) return rows->at(k, in(l)).need;
    return in_rows(row_axis_of(node(l)), rows->at(k, out(l)).own, shape(in(l)).h);
  }
  constexpr Index most_needed(Index l) const {
    Index count = 0;
    for (Index k = 0; k < rows->slabs(); ++k)
      if (const Index size = need(k, l).size(); size > count) count = size;
    return count;
  }
  /// Slabs of rows times slabs of images.
  constexpr Index turns() const { return stage->turns(*rows, group.size()); }
  /// Copies of a slab's buffers that slabs take in turn, one for each stream that they are on.
  constexpr Index copies() const { return streams == 1 ? 1 : std::min(streams, turns()); }
  /// The same of input rows that come from outside the arena.
  constexpr Index input_copies() const {
    bool ahead = number == 0 && stage->first == 0;
    for (Index t = 0; t < inputs(); ++t) ahead = ahead || fetches(t);
    return prefetch && ahead ? std::max(copies(), std::min<Index>(2, turns())) : copies();
  }
  /// Whether this pass fetches rows of a tensor from the larger memory.
  constexpr bool fetches(Index t) const { return stage->use(t).offloaded && remakes_values(); }
  /// Whether rows of an input come from outside the arena: the network's, and what is fetched.
  constexpr bool comes_from_outside(Index t) const { return stage->tensor(t) == 0 || fetches(t); }
  constexpr bool same_cuts() const { return rows->cuts == stage->backward.cuts; }
  /// Whether a tensor lies in full height.
  constexpr bool in_full(Index t) const { return t < inputs() || (stage->use(t).leaves && !((stores || loses_rows) && t == top())); }
  /// Whether this pass finds the values of a tensor there, rather than making them again.
  constexpr bool reads_in_full(Index t) const { return in_full(t) && (forward() || !item(needs->remade_in_slabs, t)); }
  /// Whether it does and no layer of the stage reads it: its rows are written where they stay.
  constexpr bool ends(Index t) const { return in_full(t) && stage->use(t).readers == 0; }
  /// Whether the gradient of the table's tensor is wanted by anybody.
  constexpr bool wants_gradient(Index table_tensor) const { return table_tensor > 0 || wants_first_gradient_; }
  /// Whether layer l is a norm that waits, at the bottom of the stage.
  constexpr bool norm_at_bottom(Index l) const { return in(l) < inputs() && detail::waits(node(l), for_training_); }
  constexpr bool norm_waits(Index l) const { return detail::waits(node(l), for_training_); }
  /// Whether tensor t is what a norm at the bottom writes.
  constexpr bool from_norm(Index t) const { return t >= inputs() && norm_at_bottom(t - inputs()); }
  /// Number of the stage of this stage's section whose forward pass makes input t; -1: there is none.
  constexpr Index maker_in_section(Index t) const {
    const Index g = stage->tensor(t);
    for (Index s = number - 1; s >= 0; --s) {
      const Stage& below = item(*all_stages, s);
      if (below.section > stage->section || below.passes > 0 || below.makes_input) continue;   // this stage stands behind those that go forward
      if (below.section < stage->section) break;
      if (g > below.first && g <= below.last) return s;
    }
    return -1;
  }
  /// Norms above that normalise tensor t.
  constexpr Index norms_above(Index t) const { return stage->count_norms_above(t); }
  /// The layer that may write over tensor t: the one that follows, where it reads it. -1: none.
  constexpr Index overwriter(Index t) const {
    for (Index l = std::max<Index>(0, t - inputs() + 1); l < layers(); ++l)
      if (in(l) == t) return l;
    return -1;
  }
  /// Whether the gradient of a layer's first input overwrites the one it is made of: nobody needs that any more.
  constexpr bool gradient_in_place(Index l) const {
    if (const Index sum = needs->sum_in_place; sum >= 0) {   // its gradient takes the place of that of the stage's output
      if (l > sum) return true;
      if (out(l) == in(sum) || out(l) == other(sum)) return false;
    }
    return rules_of(layer(l)).overwrites_gradient && other(l) != in(l) && in(l) >= inputs() && read_once(in(l)) && same_memory(l) &&
           !(stage->passes > 0 && ends(out(l)));
  }
  /// Whether the backward pass computes tensor t again and so needs the rows carried into each of its slabs.
  constexpr bool wants_state(Index t) const {
    if (!serves_backward() || t < inputs()) return false;
    const auto place = static_cast<std::size_t>(t);
    for (const BackwardRun& run : needs->runs) {
      if (!run.recompute || t < out(run.first) || t > out(run.last - 1) || !run.makes(t - inputs())) continue;
      if (reads_in(run, t) || (needs->value[place] && !needs->kept[place] && !in_full(t))) return stage->backward.most_carried(t) > 0;
    }
    return false;
  }
  /// Whether a re-run of the backward pass reads tensor t.
  constexpr bool reads_again(Index t) const {
    for (const BackwardRun& run : needs->runs)
      if (run.recompute && reads_in(run, t)) return true;
    return false;
  }
  /// Tensors that a re-run writes.
  constexpr Flags made_by(const BackwardRun& run) const {
    Flags flags(static_cast<std::size_t>(tensors()), 0);
    for (Index l = run.first; l < run.last; ++l) {
      const Index t = out(l);
      const auto place = static_cast<std::size_t>(t);
      const bool leaves = needs->value[place] && (!needs->kept[place] || stage->passes > 0);   // the first of extra passes makes what is kept
      flags[place] = run.makes(l) && !reads_in_full(t) && (reads_in(run, t) || leaves);
    }
    return flags;
  }
  /// Whether a filter is packed where a slab uses it, rather than once before all slabs, which keeps every filter of the
  /// stage in memory. Packing moves 8 bytes per weight; a convolution does 2 operations per weight and pixel: at 8 GB/s
  /// and 230 Gop/s packing costs 115 / pixels of the convolution's time (docs/benchmarks.md), 6 % at this bound.
  constexpr bool packs_in_slab(Index l) const {
    constexpr Index enough_pixels = 2048;
    return turns() == 1 || shape(out(l)).h / rows->slabs() * shape(out(l)).w * stage->partition.images >= enough_pixels;
  }

 protected:
  constexpr bool read_once(Index t) const { return stage->use(t).readers == 1 && !stage->use(t).leaves; }
  constexpr bool same_memory(Index l) const { return item(slabs.same_rows, l) && !(ends(out(l)) && cut()); }
  /// Whether a forward pass may write over the values of input t, which it finds in full height: one layer of this stage reads them, and nobody
  /// else. It is a tensor of the stage's own section: those between sections have other readers.
  constexpr bool is_input_read_once(Index t) const {
    const TensorUse& use = stage->use(t);
    if (kind.run == ForwardRun::again) return false;                             // it is for the backward pass
    if (use.readers != 1 || !use.read_once || stage->passes > 0) return false;   // extra passes may go through their slabs several times
    const Index maker = maker_in_section(t);
    if (maker < 0 || !for_training_) return maker >= 0;
    // A discarded tensor is made again for the backward pass, by a later pass than the first, or than the one for the sections above.
    // Others are made again by extra passes, where these go through the stages of both.
    return use.discarded ? kind.run == ForwardRun::first || !use.made_for_above : item(*all_stages, maker).replaced_by_extra_passes;
  }

 private:
  const bool for_training_;
  const bool wants_first_gradient_;
  constexpr bool reads_in(const BackwardRun& run, Index t) const {
    for (Index l = run.first; l < run.last; ++l)
      if (run.makes(l) && (in(l) == t || other(l) == t)) return true;
    return false;
  }
  constexpr SlabFacts facts() const {
    SlabFacts found;
    auto& [carries, same_rows, need_copy] = found;
    carries.assign(static_cast<std::size_t>(tensors()), 0);
    same_rows.assign(static_cast<std::size_t>(layers()), 1);
    need_copy.assign(static_cast<std::size_t>(layers()), 0);
    const Index count = rows->slabs(), width = rows->tensors;
    for (Index l = 0; cut() && l < layers(); ++l) {
      const Index t = in(l), y = out(l), stride = row_axis(layer(l).window).stride;
      const bool input = t < inputs(), sole = stage->use(t).readers == 1;
      const bool alone = sole && !stage->use(t).leaves;   // no norm of another stage wants rows, too
      const SlabRows* all = rows->rows.data();
      for (Index k = 0; k < count; ++k) {
        const SlabRows *r = all + k * width + t, *o = all + k * width + y;
        if (!input && r->hold.begin < r->own.begin) item(carries, t) = 1;
        if (r->hold != o->own || o->hold != o->own) item(same_rows, l) = 0;
        if ((input && sole) || o->own.empty()) continue;   // an input is what its only reader reads; or the layer is left out
        const Range wants = alone ? r->need : need(k, l);
        if (wants.empty() ? !r->hold.empty() : wants.begin != r->hold.begin || r->hold.end - wants.end >= stride) item(need_copy, l) = 1;
      }
      if (const Index u = other(l); u >= inputs())
        for (Index k = 0; k < count; ++k)
          if (rows->at(k, u).hold.begin < rows->at(k, u).own.begin) item(carries, u) = 1;
    }
    return found;
  }
};
}   // namespace lrcnn
