#pragma once
// The types that Trainer and Predictor are given, checked.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/network/part.hpp>
#include <lrcnn/policy/policy.hpp>
namespace lrcnn::detail {
template <class Net, class Policy, class B>
struct ChosenTypes {
  static_assert(Network<Net>,
                "lrcnn: the first argument is no network; a Trainer and a Predictor take network, policy and backend, in this "
                "order; give a Sequential first, or another type with layers");
  static_assert(is_policy<Policy>,
                "lrcnn: the second argument is no Policy; a Trainer and a Predictor take network, policy and backend, in "
                "this order, and parts such as Share<4> stand within the policy; write Policy<Share<4>>");
  static_assert(Backend<B>,
                "lrcnn: the third argument is no backend; a Trainer and a Predictor take network, policy and backend, in this "
                "order; give Reference<float>, Onednn or Cudnn, or see docs/extending.md for one of your own");
  /// The policy's precision, if it has one, chooses the backend's type for it.
  using BackendType = lrcnn::InPrecision<B, Policy::value.precision>;
};
}   // namespace lrcnn::detail
