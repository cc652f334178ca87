#pragma once
// As host_steps.hpp, for tests that run the device's loops on the host.
#include "loops/host_system.hpp"
namespace lrcnn::loops {
extern template void run<HostSystem, double>(const HostSystem&, const Operands<double>&);
extern template void run<HostSystem, float>(const HostSystem&, const Operands<float>&);
extern template void run<HostSystem, bfloat16>(const HostSystem&, const Operands<bfloat16>&);
extern template void run<HostSystem, float16>(const HostSystem&, const Operands<float16>&);
}   // namespace lrcnn::loops
