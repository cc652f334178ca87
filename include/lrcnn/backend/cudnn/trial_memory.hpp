#pragma once
// Where a convolution is tried: in the memory of its step. What is the caller's there, parameters and their gradients, has stand-ins in the
// workspace, which are aligned as it is.
#include <lrcnn/backend/cudnn/library.hpp>
#include <lrcnn/backend/cudnn/pieces.hpp>
#include <optional>
namespace lrcnn::cudnn {
namespace detail {
/// Takes memory from a workspace, piece by piece.
struct StandIns {
  std::byte* workspace;
  Index bytes, taken;
  /// `count` elements whose address is that of `like` modulo 256; null if there is no room.
  template <class T>
  T* take(const T* like, Index count) {
    const Index begin = taken + static_cast<Index>(reinterpret_cast<std::uintptr_t>(like) % 256);
    const Index end = round_up(begin + count * Index{sizeof(T)}, 256);   // where the engine's own workspace may begin
    if (end > bytes) return nullptr;
    taken = end;
    return reinterpret_cast<T*>(workspace + begin);
  }
};
}   // namespace detail
/// w: weights of a forward step or of a data gradient, or where a filter gradient goes. bias: what a forward step adds; packs_bias: it lies in the
/// plan's memory. Nothing if there is no room for a filter gradient. Where there is none for weights or a bias, they are read, and not drawn.
/// Pre: is_convolution(o); the workspace is aligned to 256 bytes
template <class T>
std::optional<TrialMemory<T>> trial_memory(const Operands<T>& o, const Piece& piece, T* w, const T* bias, bool packs_bias, Index engine_bytes) {
  const Problem& problem = piece.problem;
  const Sides<T> sides = sides_of(o);
  const bool filter = o.op == Op::backward_parameters;
  detail::StandIns stand_ins{o.workspace, o.workspace_bytes - engine_bytes, reserved_bytes(o)};
  TrialMemory<T> memory{const_cast<T*>(sides.x.data) + piece.x, const_cast<T*>(sides.y.data) + piece.y, w,
                        problem.bias ? const_cast<T*>(bias) : nullptr};
  const auto draw = [&](T*& operand, bool is_plans, Index count, bool& draws) {
    T* const other = is_plans ? operand : stand_ins.take(operand, count);
    draws = other != nullptr;
    if (draws) operand = other;
  };
  draw(memory.w, filter ? lies_in_plan(o) : o.packed != nullptr, filter_elements(*o.node), memory.draws_weights);
  if (filter && !memory.draws_weights) return {};
  if (problem.bias) draw(memory.bias, packs_bias, problem.k, memory.draws_bias);
  memory.workspace = o.workspace + stand_ins.taken;
  return memory;
}
}   // namespace lrcnn::cudnn
