#pragma once
// A backend that runs on every processor: one whose elements the processor has no kernels for runs slowly instead of refusing.
#include <lrcnn/core/types.hpp>
namespace lrcnn::testing {
template <class B>
B backend_for_tests(int threads) {
  if constexpr (requires { B(threads, {}, {.slow_bf16 = true, .report_slow = false}); })
    return B(threads, {}, {.slow_bf16 = true, .report_slow = false});
  else return B(threads);
}
}   // namespace lrcnn::testing
