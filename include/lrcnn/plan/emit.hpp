#pragma once
// From stages to steps.
//
// One emitter writes every plan. It walks   for each group of images: stages up, loss, stages down   and, within a stage
// (plan/emit_forward.hpp, plan/emit_backward.hpp),   for each slab of images, for each slab of rows: the chain's layers,   and tells a
// sink which buffers exist (plan/storage.hpp) and which step comes next. Four sinks listen:
//   Measure   counts time and notes when buffers are used, through one turn of each loop (plan/measure.hpp).
//   Record    keeps every step of every slab (plan/recorded_plan.hpp).
//   AddUp     adds up what the steps of all slabs cost, or of some that stand for the others (plan/profile.hpp).
//   EmissionTimes  tells when recorded steps run in the measured time (plan/memory_over_time.hpp).
// All see the same calls in the same order within a turn, so a buffer has the same number for all of them, and the offsets
// found for the measured turn hold for all turns. The checker (plan/replay.hpp) proves that, plan by plan.
//
// Names are those of a pass and of the walk through it: plan/stage_pass.hpp, plan/stage_walk.hpp.
#include <lrcnn/plan/emit_backward.hpp>
#include <lrcnn/plan/in_place.hpp>
#include <lrcnn/plan/measure.hpp>
namespace lrcnn {
/// Steps of a section: all, or those of the slabs that its forward pass is cut into, made again or not, or those of its backward pass alone.
enum class SectionSteps : std::uint8_t { all, of_forward_slabs, of_backward_slabs };
/// One class in three files: ForwardEmitter and BackwardEmitter are its parts. They are base classes only for that; nothing is virtual.
class Emitter : BackwardEmitter {
 private:
  /// Calls f() for each group of images that go through all stages together; only for the first where one turn stands for all.
  template <class F>
  constexpr void for_groups(const F& f) {
    const Index batch = table_.input.n, images = group_images(table_, policy_), since = sink_.now;
    for (Index begin = 0; begin < batch; begin += images) {
      sink_.now = since;
      group_ = {begin, std::min(begin + images, batch)};
      sink_.weight = sink_.every_turn ? sink_.slabs_of_images(begin / images, batch, images) : 1;
      if (sink_.weight > 0) f();
      if (!sink_.every_turn) break;
    }
    if (images < batch) sink_.loop(since);
    sink_.weight = 1;
  }

 public:
  using BackwardEmitter::BackwardEmitter;
  /// Emits the whole step: forward, loss, backward, for every group of images; or forward and the output's rows handed on.
  constexpr PlanResults run() {
    prepare();
    storage_.put_gradients_in_place(lags());
    const Index since = sink_.now;
    for_groups([&] {
      forward();
      if (keeps_output()) loss();
      if (options_.training) backward();
    });
    const PlanResults results = find_results();
    for (const Index buffer : {results.output.buffer, results.input_gradient.buffer}) {   // the caller reads them at the end
      if (group_images(table_, policy_) < table_.input.n) sink_.span(buffer, since);
      sink_.touch(buffer);
    }
    ++sink_.now;
    return results;
  }
  /// The same of some stages alone, those of one section: `between()` is called after the forward pass (and the loss) of each group of images.
  /// Buffers that other sections use, too, are declared at their first use here; for_shared() names them. `lags`: of the whole plan.
  /// `steps`: others are left out.
  template <class F>
  constexpr void run_section(std::vector<Index> lags, const F& between, SectionSteps steps = SectionSteps::all) {
    prepare();
    storage_.put_gradients_in_place(std::move(lags));
    for_groups([&] {
      if (steps != SectionSteps::of_backward_slabs) {
        forward();
        if (last_stage().last == table_.size() && keeps_output()) loss();
      }
      between();
      if (options_.training) backward(steps);
    });
  }
  /// Emits the passes of the stages that make inputs again, without the sections that these are for.
  constexpr void run_makers() {
    prepare();
    for_groups([&] {
      for (Index maker = stage_count_; maker < static_cast<Index>(stages_.size()); ++maker)
        if (stage_at(maker).makes_input) forward_stage(maker, ForwardRun::for_above);
    });
  }
  /// How many rows each tensor's gradient lies behind its values: see in_place.hpp. Nothing is emitted.
  constexpr std::vector<Index> plan_lags() {
    prepare();
    return lags();
  }
  /// Whether the network's output is there when the step is done. Pre: the last section's stages are here.
  constexpr bool keeps_output() const { return !options_.stores_output && !loses_rows(); }
  /// Calls f(kind, number, buffer) for the buffers that sections share; of tensors and layers of the table by their number.
  template <class F>
  constexpr void for_shared(const F& f) const {
    storage_.for_shared(f);
    if (workspace_ >= 0) f(SharedBuffer::workspace, 0, workspace_);
  }

 private:
  Index stage_count_ = 0;   ///< of those that the forward pass has
  /// What stages need of each other, and the buffers that all of them use.
  constexpr void prepare() {
    group_ = {0, group_images(table_, policy_)};
    const Index all_stages = static_cast<Index>(stages_.size());
    stage_count_ = static_cast<Index>(forward_stage_count(stages_));
    Index copies = 0;   // of the workspace that sections share
    for (Index s = 0; s < all_stages; ++s) {
      if (stage_at(s).partition.workspace_bytes >= 0) continue;
      copies = std::max(copies, stage_at(s).slabs_at_once(group_.size(), policy_.streams));
    }
    if (copies > 0) workspace_ = storage_.declare_workspace(target_.workspace(policy_.workspace_bytes), copies);
  }
  /// How far gradients lie behind their values. Pre: all stages of the plan are here.
  constexpr std::vector<Index> lags() const {
    if (!policy_.gradients_in_place || !options_.training) return {};
    return gradient_lags(table_, stages_, needs_);
  }
  constexpr const Stage& last_stage() const { return stage_at(stage_count_ - 1); }
  /// Whether the output's rows go through the loss slab by slab.
  constexpr bool loses_rows() const { return last_stage().loses_rows(table_, options_); }
  /// The stage with extra passes that does the backward pass of stage s.
  constexpr Index stage_instead_of(Index s) const {
    Index over = stage_count_;
    while (stage_at(over).last <= stage_at(s).first || stage_at(over).first > stage_at(s).first) ++over;
    return over;
  }
  /// Stages up. Where rows go through the loss slab by slab, the last one's backward pass makes them.
  constexpr void forward() {
    for (Index s = 0; s < stage_count_; ++s) {
      if (options_.training && (s == 0 || stage_at(s).section != stage_at(s - 1).section)) offload_inputs(s);
      const Index over = stage_at(s).replaced_by_extra_passes ? stage_instead_of(s) : -1;
      if (over >= 0 && stage_at(over).partition.forward_passes) {
        if (stage_at(over).first == stage_at(s).first) forward_stage(over, ForwardRun::first);
      } else if (s + 1 < stage_count_ || !loses_rows() || !options_.training) {
        forward_stage(s, ForwardRun::first);
      }
    }
  }
  /// Before the section that begins with stage s goes forward: what it reads and does not keep is copied to the larger memory, if that is its way.
  constexpr void offload_inputs(Index s) {
    std::vector<Index> done;
    for (Index k = s; k < stage_count_ && stage_at(k).section == stage_at(s).section; ++k) {
      StageWalk walk = walk_of(k, {}, stage_at(k).forward);
      walk.stand_before_slabs();
      for (Index t = 0; t < walk.inputs(); ++t) {
        const Index g = walk.stage->tensor(t);
        const bool from_below = g <= stage_at(s).first, is_new = std::find(done.begin(), done.end(), g) == done.end();
        if (!walk.stage->use(t).offloaded || !from_below || !is_new) continue;
        const Range all{0, walk.shape(t).h};
        move(walk, Op::offload, storage_.full_value(walk, t, all), storage_.offloaded_value(walk, t, all));
        done.push_back(g);
      }
    }
  }
  /// Whether stage s is the last one of the topmost of sections whose inputs are made again, or of those of them that are here.
  constexpr bool tops_recomputed(Index s) const {
    const Stage& stage = stage_at(s);
    if (stage.input_alone) return false;
    if (s + 1 == stage_count_) return stage.recomputes_input || stage.supplies;
    return stage.recomputes_input && !stage.supplies && stage_at(s + 1).section != stage.section;
  }
  /// The sections below stage s of its group, as far as they are here, go forward again, for their outputs alone. Those with extra passes need none
  /// for statistics now: they go through their norms slab by slab.
  constexpr void forward_for_above(Index s) {
    while (s >= 0 && !stage_at(s).supplies) --s;
    if (s < 0) return;
    Index first = s;
    while (first > 0 && (stage_at(first).recomputes_input || stage_at(first - 1).section == stage_at(first).section)) --first;
    for (Index k = first; k <= s; ++k) {
      const Index over = stage_at(k).replaced_by_extra_passes ? stage_instead_of(k) : k;
      if (stage_at(over).first == stage_at(k).first) forward_stage(over, ForwardRun::for_above);
    }
  }
  /// Before the section that ends with stage s goes backward: its input is made again, if that is done for it alone.
  constexpr void make_input_alone(Index s) {
    if (!stage_at(s).input_alone || (s + 1 < stage_count_ && stage_at(s + 1).section == stage_at(s).section)) return;
    for (Index maker = stage_count_; maker < static_cast<Index>(stages_.size()); ++maker)
      if (stage_at(maker).makes_input && stage_at(maker).section == stage_at(s).section) forward_stage(maker, ForwardRun::for_above);
  }
  constexpr void loss() {
    StageWalk walk = walk_of(stage_count_ - 1, {}, last_stage().forward);
    walk.images = group_;
    const Range rows{0, table_.shape(table_.size()).h};
    Step step = make(walk, Op::loss);
    step.x = storage_.full_value(walk, last_tensor(walk), rows);
    if (options_.training) step.dx = storage_.full_gradient(walk, last_tensor(walk), rows);
    sink_.step(step);
  }
  /// Stages down, segment by segment: what of a segment was not kept is made again first, and before the topmost of a group what those below it
  /// hand up.
  constexpr void backward(SectionSteps steps = SectionSteps::all) {
    const bool again = steps != SectionSteps::of_backward_slabs, down = steps != SectionSteps::of_forward_slabs;
    for (Index s = stage_count_ - 1; s >= 0; --s) {
      if (again && tops_recomputed(s)) forward_for_above(s);
      if (again) make_input_alone(s);
      const Index top = stage_at(s).replaced_by_extra_passes ? stage_instead_of(s) : s;
      while (s > 0 && stage_at(s - 1).first >= stage_at(top).first) --s;   // those that extra passes cover
      Index first = s;
      while (first > 0 && stage_at(first - 1).forward_repeated) --first;
      for (Index k = first; k < s; ++k)
        if (stage_at(k).partition.again_as_backward ? down : again) forward_stage(k, ForwardRun::again);
      if (down) backward_stage(top);
      for (; s > first; --s)
        if (down) backward_stage(s - 1);
    }
  }
  /// What the caller reads when all is done.
  constexpr PlanResults find_results() {
    const Range all{0, table_.input.n};
    PlanResults results;
    if (keeps_output()) {
      StageWalk last = walk_of(stage_count_ - 1, {}, last_stage().forward);
      last.images = all;
      results.output = storage_.full_value(last, last_tensor(last), {0, table_.shape(table_.size()).h});
    }
    if (options_.training && options_.input_gradient) results.input_gradient = storage_.network_input_gradient(all, {0, table_.input.h});
    return results;
  }
  /// The stage's number of the network's output. Pre: the last stage's pass.
  static constexpr Index last_tensor(const StageWalk& walk) { return walk.stage->reduces ? walk.tensors() : walk.top(); }
};
}   // namespace lrcnn
