#pragma once
// A plan: everything about a training step that is known before it runs.
//
// Table and policy become stages, stages become buffers with offsets in one arena and a list of steps. The size of the arena is
// the same computation without the steps, cheap enough for a constant expression; the two agree by construction,
// because buffers are sized and placed from the measured turn alone (plan/emit.hpp). make_plan() is in plan/make_plan.hpp.
#include <lrcnn/plan/emit.hpp>
#include <lrcnn/plan/packed_filters.hpp>
#include <optional>
namespace lrcnn {
struct Plan {
  Table table;
  PolicySpec policy;
  Target target;
  PlanOptions options;
  std::vector<Stage> stages;
  std::vector<Buffer> buffers;   ///< with offsets; live intervals are of emission time
  std::vector<Step> steps;
  std::vector<LeftOutStep> left_out;   ///< steps that pack filters which stay packed; nobody runs them
  std::vector<MovedStep> moved;        ///< steps that pack filters ahead of their use, together with others
  ArenaSize arena;
  PlanResults results;
  /// Bytes of the arena: everything beyond parameters, their gradients and optimizer state.
  constexpr Index peak_bytes() const { return arena.bytes; }
  /// Steps that it has lists of: as many as its sections' profiles say.
  Index listed_steps() const { return static_cast<Index>(steps.size() + left_out.size()); }
  friend bool operator==(const Plan&, const Plan&) = default;
};
/// A Ref names some images and rows of a tensor; the buffer holds these and perhaps more. The bytes of everything that the buffer holds of that
/// tensor: of its values, or, if `saved`, of its saved state.
inline Index piece_bytes(const Plan& plan, const Ref& ref, bool saved) {
  const Shape& s = plan.table.shape(ref.tensor);
  if (!saved) return plan.target.bytes(ref.held_images.size(), s.c, ref.held_rows.size(), s.w);
  return plan.target.saved_bytes(plan.table.node(ref.tensor - 1).layer, ref.held_images.size(), s.c, ref.held_rows.size(), s.w);
}
namespace detail {
/// The most steps that a plan may have: some 400 MB.
inline constexpr Index most_steps = 1 << 19;
/// Whether a step moves no rows.
constexpr bool is_nothing(const Step& s) { return (s.op == Op::copy || s.op == Op::add || s.op == Op::zero || s.op == Op::load) && s.y.rows.empty(); }
/// Sink that keeps every step. Buffers are the measured ones, found again by their order.
class Record final : public Sink {
 public:
  Record(const std::vector<Buffer>& measured, std::vector<Step>& steps) : Sink(true), measured_(measured), steps_(steps) {}
  Index declare(Role role, Index stage, Index tensor, Index bytes, Index copies = 1) override {
    const Index id = static_cast<Index>(declared_);
    declared_ += static_cast<std::size_t>(copies);
    if (declared_ > measured_.size() || item(measured_, id).copies != copies || item(measured_, id).role != role ||
        item(measured_, id).stage != stage || item(measured_, id).tensor != tensor || item(measured_, id).bytes != bytes)
      throw PlanError(error_text("the recorded plan declares other buffers than the measured one (" + std::string(role_name(role)) + " of tensor " +
                                     std::to_string(tensor) + ")",
                                 "both follow one emitter", "report this network and policy as a defect"));
    return id;
  }
  void touch(Index) override {}
  void span(Index, Index) override {}
  void step(const Step& s) override {
    if (is_nothing(s)) return;
    if (static_cast<Index>(steps_.size()) == most_steps)
      throw PlanError(error_text("the plan would have more than " + std::to_string(most_steps) + " steps",
                                 "each slab of rows of each group of images has steps of its own",
                                 "use larger groups of images, fewer slabs, or a smaller batch"));
    steps_.push_back(s);
  }

 private:
  const std::vector<Buffer>& measured_;
  std::vector<Step>& steps_;
  std::size_t declared_ = 0;
};
struct Measured {
  std::vector<Buffer> buffers;
  ArenaSize arena;
  std::vector<Range> loops;
};
constexpr Measured measure(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                           const std::vector<Stage>& stages) {
  if (options.stores_output && options.training)
    throw PlanError(error_text("a plan for training is to hand its output over row by row",
                               "a loss wants the whole output, so it stays until the step is done",
                               "plan with the options `predicting`, or without stores_output"));
  Measure sink;
  Emitter(table, policy, target, options, stages, sink).run();
  Measured result{std::move(sink.buffers), {}, std::move(sink.loops)};
  result.arena = place(result.buffers);
  return result;
}
constexpr ArenaSize measured_arena(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options) {
  const auto stages = make_stages(table, policy, target, group_images(table, policy), options);
  return measure(table, policy, target, options, stages).arena;
}
/// The same, compiled where LRCNN_PRECOMPILED says (precompiled/training.hpp).
template <class = void>
ArenaSize arena_at_run_time(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options) {
  return measured_arena(table, policy, target, options);
}
/// The same; nothing if there is no such plan.
inline std::optional<ArenaSize> arena_if_possible(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options) {
  try {
    return arena_at_run_time<>(table, policy, target, options);
  } catch (const PlanError&) {
    return std::nullopt;
  }
}
/// make_plan(), compiled where LRCNN_PRECOMPILED says.
template <class = void>
Plan recorded_plan(Table&& table, const PolicySpec& policy, const Target& target, const PlanOptions& options) {
  Plan plan{std::move(table), policy, target, options, {}, {}, {}, {}, {}, {}, {}};
  plan.stages = make_stages(plan.table, policy, target, group_images(plan.table, policy), options);
  auto measured = measure(plan.table, policy, target, options, plan.stages);
  plan.buffers = std::move(measured.buffers);
  plan.arena = measured.arena;
  Record sink{plan.buffers, plan.steps};
  plan.results = Emitter(plan.table, policy, target, options, plan.stages, sink).run();
  if (target.packs_weights || target.packs_transposed || target.packs_linear) {
    auto packed = PackedFilters(plan.buffers, plan.steps, measured.loops, plan.arena, target).run();
    plan.left_out = std::move(packed.left_out), plan.moved = std::move(packed.moved);
  }
  return plan;
}
}   // namespace detail
}   // namespace lrcnn
