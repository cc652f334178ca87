// What host_library.hpp says is compiled once.
#define LRCNN_HOST_LIBRARY
#include "cudnn/host_library.hpp"
namespace lrcnn::testing {
template class HostLibrary<float>;
template class HostLibrary<float16>;
template class HostLibrary<bfloat16>;
}  // namespace lrcnn::testing
