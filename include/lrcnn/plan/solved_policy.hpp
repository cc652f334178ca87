#pragma once
// What a search for policies finds.
#include <lrcnn/policy/spec.hpp>
#include <algorithm>
#include <vector>
namespace lrcnn {
/// A policy that a search found.
struct SolvedPolicy {
  PolicySpec policy{};
  Index bytes = 0;      ///< at the plan's peak
  double seconds = 0;   ///< of a step
  Index steps = 0;      ///< of its plan
  friend bool operator==(const SolvedPolicy&, const SolvedPolicy&) = default;
};
namespace detail {
/// Those that no other one beats, by rising bytes, each faster than all before it. Post: `found` is sorted by bytes.
inline std::vector<SolvedPolicy> best_of(std::vector<SolvedPolicy>& found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const SolvedPolicy& a, const SolvedPolicy& b) { return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds; });
  std::vector<SolvedPolicy> best;
  for (const SolvedPolicy& p : found)
    if (best.empty() || p.seconds < best.back().seconds) best.push_back(p);
  return best;
}
}   // namespace detail
}   // namespace lrcnn
