#pragma once
// As host_steps.hpp, for tests that run the device's loops on the host.
#include <lrcnn/backend/cudnn/loops.hpp>
#include <thrust/system/cpp/execution_policy.h>
namespace lrcnn::loops {
/// Runs loops on the host, and counts them where somebody wants to know: each is one kernel of a device.
struct HostSystem {
  Index* started = nullptr;
};
template <class F>
void for_units(const HostSystem& system, Index count, const F& f) {
  if (system.started) *system.started += count > 0;
  for_units(thrust::cpp::par, count, f);
}
extern template void run<HostSystem, double>(const HostSystem&, const Operands<double>&);
extern template void run<HostSystem, float>(const HostSystem&, const Operands<float>&);
extern template void run<HostSystem, bfloat16>(const HostSystem&, const Operands<bfloat16>&);
extern template void run<HostSystem, float16>(const HostSystem&, const Operands<float16>&);
}   // namespace lrcnn::loops
