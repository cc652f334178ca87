#pragma once
// Steps that a plan does not carry out where they were emitted, because their filters stay packed (plan/packed_filters.hpp).
#include <lrcnn/plan/step.hpp>
#include <algorithm>
namespace lrcnn {
/// A step that packs a filter which is packed already.
struct LeftOutStep {
  Index place = 0;   ///< where it would stand in the list of all steps
  Step step{};
  friend constexpr bool operator==(const LeftOutStep&, const LeftOutStep&) = default;
};
/// A step that packs a filter earlier than it was emitted. Its places are those in the list of all steps after the moves before this one.
struct MovedStep {
  Index from = 0, to = 0;   ///< to < from; the steps between the two move one place back
  friend constexpr bool operator==(const MovedStep&, const MovedStep&) = default;
};
/// Moves an element of a list with an element for each step as `moved` says.
template <class List>
void move_step(List& list, const MovedStep& moved) {
  std::rotate(list.begin() + moved.to, list.begin() + moved.from, list.begin() + moved.from + 1);
}
}   // namespace lrcnn
