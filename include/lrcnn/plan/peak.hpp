#pragma once
// The peak of a network type under a policy type, as a constant expression.
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/plan/plan.hpp>
namespace lrcnn {
/// Bytes of the arena of one training step: everything beyond parameters, their gradients and optimizer state;
/// the workspace that the policy bounds is part of it. Equal to make_plan(...).peak_bytes().
///     static_assert(peak_bytes<Net, Rows>(input) < 140_MiB);
/// Backend B's storage rules are used; without one, plain NCHW of 4-byte elements.
template <Network Net, class Policy, class B = void>
constexpr Index peak_bytes(const Input& input, const PlanOptions& options = {}) {
  Target target;
  if constexpr (!std::is_void_v<B>) target = InPrecision<B, Policy::value.precision>::target;
  return arena_size(table_of<Net>(input), Policy::value, target, options).bytes;
}
/// The same for a network with fixed extents.
template <Network Net, class Policy, class B = void>
  requires requires { Net::input; }
constexpr Index peak_bytes(const PlanOptions& options = {}) {
  return peak_bytes<Net, Policy, B>(Net::input, options);
}
}  // namespace lrcnn
