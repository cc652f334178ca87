#pragma once
// Included into every test by the build: the host's loops for each type of element are compiled once, in host_steps.cpp, instead of in
// every test that runs a network. They are most of what such a test would have to compile.
#include <lrcnn/backend/host/run.hpp>
namespace lrcnn::host {
extern template void run<double>(const Operands<double>&, int);
extern template void run<float>(const Operands<float>&, int);
extern template void run<bfloat16>(const Operands<bfloat16>&, int);
extern template void run<float16>(const Operands<float16>&, int);
}  // namespace lrcnn::host
