#pragma once
// How a sum becomes a parameter's gradient.
#include <lrcnn/core/language.hpp>
namespace lrcnn::host {
/// gradient = the sum, added to what is there if `accumulate`. The addition is made in double and rounded once.
template <class A>
void put_gradient(A& gradient, double sum, bool accumulate) {
  gradient = static_cast<A>((accumulate ? static_cast<double>(gradient) : 0) + sum);
}
}   // namespace lrcnn::host
