#pragma once
// The peak of a network type under a policy type, as a constant expression.
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/plan/make_plan.hpp>
namespace lrcnn {
/// Bytes of the arena of one training step: everything beyond parameters, their gradients and optimizer state;
/// the workspace that the policy bounds is part of it. Equal to make_plan(...).peak_bytes().
///     static_assert(peak_bytes<Net, Rows>(input) < 140_MiB);
/// Backend B's storage rules are used; without one, plain NCHW of 4-byte elements.
template <class Net, class Policy, class B = void>
constexpr Index peak_bytes(const Input& input, const PlanOptions& options = {}) {
  static_assert(Network<Net>,
                "lrcnn: the first argument of peak_bytes is no network; it takes network, policy and backend, in this order; give a "
                "Sequential first, or another type with layers");
  static_assert(is_policy<Policy>,
                "lrcnn: the second argument of peak_bytes is no Policy; it takes network, policy and backend, in this order, "
                "and parts such as Share<4> stand within the policy; write Policy<Share<4>>");
  static_assert(Policy::value.fit_bytes == 0,
                "lrcnn: peak_bytes of a policy with Fit is no constant; Fit chooses when a plan is made, at run time; call "
                "arena_size() or make_plan(), or give the policy that was chosen: to_string(plan.policy) prints it");
  Target target;
  if constexpr (!std::is_void_v<B>) target = InPrecision<B, Policy::value.precision>::target;
  return arena_size(table_of<Net>(input), Policy::value, target, options).bytes;
}
/// The same for a network with fixed extents.
template <class Net, class Policy, class B = void>
  requires requires { Net::input; }
constexpr Index peak_bytes(const PlanOptions& options = {}) { return peak_bytes<Net, Policy, B>(Net::input, options); }
}   // namespace lrcnn
