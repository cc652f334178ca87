#pragma once
// What a plan may be asked for, and what it gives its caller.
#include <lrcnn/plan/step.hpp>
namespace lrcnn {
/// What a plan is made for.
struct PlanOptions {
  bool training = true;          ///< false: forward pass and loss only
  bool accumulate = false;       ///< parameter gradients are added to what is there, rather than written
  bool input_gradient = false;   ///< the gradient of the network's input too, in full
  bool rows_loss = false;        ///< the loss is local to rows: the last stage's slabs go forward, through the loss and backward at once,
                                 ///< and the output is kept nowhere
  bool stores_output = false;    ///< the output's rows go to a RowSink as they are done and are kept nowhere; no loss, no training
  friend constexpr bool operator==(const PlanOptions&, const PlanOptions&) = default;
};
/// The forward pass alone, its output handed on row by row: what a Predictor does.
inline constexpr PlanOptions predicting{.training = false, .stores_output = true};
/// Buffers that the caller of a plan reads when a step is done.
struct PlanResults {
  Ref output{};           ///< the network's output (logits), whole batch; empty if its rows are handed on, or gone with the loss
  Ref input_gradient{};   ///< empty unless asked for
  friend constexpr bool operator==(const PlanResults&, const PlanResults&) = default;
};
}   // namespace lrcnn
