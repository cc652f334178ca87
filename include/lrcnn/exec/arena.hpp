#pragma once
// Memory for a plan's arena.
#include <lrcnn/backend/operands.hpp>
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/plan/fewest_slabs.hpp>
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
/// Memory for a plan's arena.
/// Errors:  PlanError if there is not enough; where the backend knows how much there is, with a policy that would fit
template <Backend B>
typename B::Memory allocate_arena(const B& backend, const Plan& plan) {
  try {
    return backend.allocate(plan.arena.bytes, plan_title(plan));
  } catch (const PlanError& e) {
    if constexpr (requires {
                    { backend.free_bytes() } -> std::convertible_to<Index>;
                  }) {
      const auto fits = fewest_slabs(plan.table, plan.policy, plan.target, plan.options, backend.free_bytes());
      throw PlanError(std::string(e.what()) + "; " +
                      (fits ? to_string(fits->policy) + " needs " + format_bytes(fits->bytes) : "no number of slabs alone makes it fit"));
    }
    throw;
  }
}
}   // namespace lrcnn
