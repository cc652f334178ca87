// What host_steps.hpp promises.
#include "host_steps.hpp"
namespace lrcnn::host {
template void run<double>(const Operands<double>&, int);
template void run<float>(const Operands<float>&, int);
template void run<bfloat16>(const Operands<bfloat16>&, int);
template void run<float16>(const Operands<float16>&, int);
}  // namespace lrcnn::host
