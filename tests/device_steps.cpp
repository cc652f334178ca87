// What device_steps.hpp promises.
#include "device_steps.hpp"
namespace lrcnn::loops {
template void run<HostSystem, double>(const HostSystem&, const Operands<double>&);
template void run<HostSystem, float>(const HostSystem&, const Operands<float>&);
template void run<HostSystem, bfloat16>(const HostSystem&, const Operands<bfloat16>&);
template void run<HostSystem, float16>(const HostSystem&, const Operands<float16>&);
}   // namespace lrcnn::loops
