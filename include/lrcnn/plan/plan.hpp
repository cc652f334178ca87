#pragma once
// A plan: everything about a training step that is known before it runs.
//
// Table and policy become stages, stages become buffers with offsets in one arena and a list of steps. The size of the arena is
// the same computation without the steps, cheap enough for a constant expression; the two agree by construction,
// because buffers are sized and placed from the measured turn alone (plan/emit.hpp). make_plan() is in plan/make_plan.hpp.
#include <lrcnn/plan/emit.hpp>
#include <lrcnn/plan/make_stages.hpp>
#include <lrcnn/plan/moved_steps.hpp>
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
  /// Bytes of the larger memory in which offloaded tensors lie (OffloadInput): not part of the arena.
  constexpr Index offloaded_bytes() const { return arena.offloaded; }
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
inline constexpr Index most_steps = 2 * most_slabs;
/// Whether a step moves no rows.
constexpr bool is_nothing(const Step& s) {
  return (s.op == Op::copy || s.op == Op::fetch || s.op == Op::add || s.op == Op::zero || s.op == Op::load) && s.y.rows.empty();
}
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
  place_offloaded(result.buffers, result.arena);
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
Plan recorded_plan(Table&& table, const PolicySpec& policy, const Target& target, const PlanOptions& options);
}   // namespace detail
}   // namespace lrcnn
#if !defined(LRCNN_PRECOMPILED) || defined(LRCNN_PRECOMPILES_TRAINING)   // else it is in a library
#include <lrcnn/plan/recorded_plan.hpp>
#endif
