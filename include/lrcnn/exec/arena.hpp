#pragma once
// Memory for a plan's arena.
#include <lrcnn/backend/operands.hpp>
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <concepts>
#include <cstdlib>
#include <string>
#include <string_view>
namespace lrcnn {
/// As messages name a plan: "the plan of Policy<Share<4>, ...> on input 2x3x8x8".
inline std::string plan_title(const Plan& plan) { return "the plan of " + to_string(plan.policy) + " on input " + to_string(plan.table.input); }
/// Whether the variable LRCNN_FILL_ARENA asks that every run begin with NaN in the whole arena, so that a step that reads what no step has
/// written shows. For tests, and for those who write layers or backends.
inline bool fills_arenas() {
  const char* word = std::getenv("LRCNN_FILL_ARENA");
  return word != nullptr && *word != '\0' && std::string_view(word) != "0";
}
namespace detail {
/// For an error: the fastest policy whose plan takes at most so many bytes, or how few bytes there is a plan for.
template <class = void>
std::string what_fits(const Plan& plan, Index bytes, const Costs& costs) {
  PolicySpec wanted;
  wanted.conv_algorithm = plan.policy.conv_algorithm, wanted.named = PolicySpec::bit(PolicySpec::Part::conv_algorithm);
  wanted.take_never_chosen(plan.policy);
  const Frontier frontier = find_frontier(plan.table, wanted, plan.target, plan.options, costs);
  const SolvedPolicy* const fits = frontier.fastest(bytes);
  if (fits == nullptr) return "the fewest bytes that there is a plan for are " + format_bytes(frontier.smallest().bytes);
  return to_string(fits->policy) + " needs " + format_bytes(fits->bytes);
}
/// Memory for a plan's arena, without what it offloads.
template <Backend B>
typename B::Memory allocate_arena_alone(const B& backend, const Plan& plan) {
  try {
    return backend.allocate(plan.arena.bytes, plan_title(plan));
  } catch (const PlanError& e) {
    if constexpr (requires {
                    { backend.free_bytes() } -> std::convertible_to<Index>;
                  }) {
      throw PlanError(std::string(e.what()) + "; " + detail::what_fits(plan, backend.free_bytes(), Costs(rates_of<B>())));
    }
    throw;
  }
}
}   // namespace detail
/// Where offloaded tensors lie, and how many bytes there are for them: null and 0 where a backend's memory has no such part.
template <class Memory>
std::byte* offloaded_data(const Memory& memory) {
  if constexpr (requires { memory.offloaded().data(); }) return memory.offloaded().data();
  else return nullptr;
}
template <class Memory>
Index offloaded_bytes(const Memory& memory) {
  if constexpr (requires { memory.offloaded().bytes(); }) return memory.offloaded().bytes();
  else return 0;
}
/// Makes room for what a plan offloads, beside its arena, unless there is enough.
/// Errors:  PlanError if there is no room, or the backend has no larger memory; BackendError if a device does not answer
template <Backend B>
void allocate_offloaded(const B& backend, typename B::Memory& memory, const Plan& plan) {
  if (plan.arena.offloaded <= offloaded_bytes(memory)) return;
  if constexpr (requires { backend.offload_to(memory, Index{}, std::string{}); }) backend.offload_to(memory, plan.arena.offloaded, plan_title(plan));
  else
    throw PlanError(error_text(plan_title(plan) + " is given to the backend '" + std::string(B::name) + "'",
                               "a backend without offload_to() has no memory beside the arena", "use a policy without OffloadInput"));
}
/// Memory for a plan's arena, and for what it offloads.
/// Errors:  PlanError if there is not enough; where the backend knows how much there is, with a policy that would fit
template <Backend B>
typename B::Memory allocate_arena(const B& backend, const Plan& plan) {
  auto memory = detail::allocate_arena_alone(backend, plan);
  allocate_offloaded(backend, memory, plan);
  return memory;
}
}   // namespace lrcnn
