#pragma once
// The host as the device that loops run on.
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
}   // namespace lrcnn::loops
