#pragma once
// What a search for policies finds.
#include <lrcnn/policy/spec.hpp>
namespace lrcnn {
/// A policy that a search found.
struct SolvedPolicy {
  PolicySpec policy{};
  Index bytes = 0;      ///< at the plan's peak
  double seconds = 0;   ///< of a step
  Index steps = 0;      ///< of its plan
  friend bool operator==(const SolvedPolicy&, const SolvedPolicy&) = default;
};
}   // namespace lrcnn
