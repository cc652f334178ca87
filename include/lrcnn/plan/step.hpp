#pragma once
// The step: the one thing that everybody below the plan understands.
//
// A plan is a list of steps. Each names its operation, its layer, the pieces of tensors it reads and writes (Ref), its
// workspace, its stage and its stream. The checker, the printer, the cost model and the executor read steps and
// nothing else; a new policy is a new way to emit them.
#include <lrcnn/policy/policy.hpp>
namespace lrcnn {
enum class Op : std::uint8_t {
  load,                  ///< rows of the input source -> y
  store,                 ///< x -> the sink of the network's output, rows
  copy,                  ///< y = x, rows
  offload,               ///< the same, y in the larger memory
  fetch,                 ///< the same, x in the larger memory
  add,                   ///< y += x, rows
  zero,                  ///< y = 0
  pack_forward,          ///< weights -> packed, as forward wants them
  pack_backward,         ///< weights -> packed, as backward_data wants them
  forward,               ///< x -> y, and saved (pool indices, mask bits) where the step names a buffer for it; a pool or
                         ///< an activation whose output is not wanted again has no y and writes saved alone;
                         ///< global pooling: x's rows -> sums (accumulate: added to those of other rows) where the step has such; y = they
                         ///< divided by H*W, the mean once the last row is in
  statistics,            ///< norm: x's rows are added to the statistics; with the last ones, those of the batch are written to the
                         ///< gradients' place of the running ones
  backward_sums,         ///< norm: dy, x -> sums over dy and dy * normalised x (accumulate: added to those of other rows); with the
                         ///< last rows, gradients of its parameters (accumulate_parameters: added)
  backward_data,         ///< dy (and x, y, saved where the layer needs them) -> dx. The step writes all rows of dx.
                         ///< join: dx is the gradient of input number `operand`
                         ///< scale, operand 0 (the map): dx = dy times the factors, which are `other`
                         ///< scale, operand 1 (the factors): dx = dy times x, added up over dy's rows. If the step names sums, they get
                         ///< these rows (accumulate: added to those of other slabs), and dx is all that they have then.
  backward_parameters,   ///< x, dy -> parameter gradients (accumulate: added, otherwise written)
  loss,                  ///< logits x -> dx, and the loss of images y's range
};
/// Whether `y` and `saved` of a step are read, rather than written.
constexpr bool is_backward(Op op) { return op == Op::backward_data || op == Op::backward_parameters || op == Op::backward_sums; }
/// Whether a step copies rows between the arena and the larger memory.
constexpr bool crosses_memories(Op op) { return op == Op::offload || op == Op::fetch; }
/// Whether a step does y = x, from whichever memory to whichever.
constexpr bool is_move(Op op) { return op == Op::copy || crosses_memories(op); }
/// Whether a step packs a layer's weights.
constexpr bool is_packing(Op op) { return op == Op::pack_forward || op == Op::pack_backward; }
/// Which part of a training step a step belongs to.
enum class Pass : std::uint8_t { forward, recompute, backward };
/// A piece of a tensor, or of a tensor's gradient, in a buffer of the arena.
/// The buffer holds images `held_images` x rows `held_rows` densely from `offset` bytes into the buffer;
/// the piece is images x rows of it. All ranges are absolute.
struct Ref {
  Index buffer = -1;   ///< -1: no operand
  Index offset = 0;
  Index tensor = 0;
  Range held_images{};
  Range held_rows{};
  Range images{};
  Range rows{};
  constexpr explicit operator bool() const { return buffer >= 0; }
  constexpr bool whole() const { return images == held_images && rows == held_rows; }
  friend constexpr bool operator==(const Ref&, const Ref&) = default;
};
struct Step {
  Op op{};
  Pass pass{};
  bool accumulate = false;
  bool accumulate_parameters = false;   ///< backward_sums
  Index operand = 0;                    ///< backward_data of a join: 0 for x, 1 for other
  bool activates = false;   ///< forward of a layer that takes it (LayerRules): the activation that follows is part of the step; y, saved are its own
  ConvAlgorithm conv_algorithm = ConvAlgorithm::direct;   ///< of a convolution, and of the filter packed for it
  Index stage = 0;
  Index slab = 0;
  Index layer = -1;   ///< index into the table; -1 for none
  Ref x{};            ///< value read
  Ref other{};        ///< joins: the second value read
  Ref y{};            ///< value written (forward, load, copy, add, zero) or read (backward)
  Ref dy{};
  Ref dx{};
  Ref saved{};               ///< pool indices or mask bits; Ref::tensor is the layer's output tensor
  Index statistics = -1;     ///< norms over a batch or groups: buffer of statistics (see Statistics)
  Index set = 0;             ///< the first set of statistics and of sums that the step is about
  Index sums = -1;           ///< likewise of the backward pass; of a global pooling and a scale's factors: sums of the slabs so far
  Range part = everywhere;   ///< backward_data with sums: rows of dx that get the sums' share; slabs that overlap give it once
  Index packed = -1;         ///< buffer of packed weights
  Index scratch = -1;        ///< buffer in which a filter gradient is made before it is added
  Index workspace = -1;      ///< buffer for the backend's own scratch
  Index stream = 0;
  friend constexpr bool operator==(const Step&, const Step&) = default;
};
/// Whether a step adds to its sums, rather than reads them.
constexpr bool writes_sums(const Step& step) { return step.op != Op::backward_data || step.operand == 1; }
constexpr std::string_view op_name(Op op) {
  switch (op) {
    case Op::load: return "load";
    case Op::store: return "store";
    case Op::copy: return "copy";
    case Op::offload: return "offload";
    case Op::fetch: return "fetch";
    case Op::add: return "add";
    case Op::zero: return "zero";
    case Op::pack_forward: return "pack_forward";
    case Op::pack_backward: return "pack_backward";
    case Op::forward: return "forward";
    case Op::statistics: return "statistics";
    case Op::backward_sums: return "backward_sums";
    case Op::backward_data: return "backward_data";
    case Op::backward_parameters: return "backward_parameters";
    case Op::loss: return "loss";
  }
  return "?";
}
}   // namespace lrcnn
