// What host_library.hpp says is compiled once; and the pretended device takes the place of the one that lrcnn::cudnn opens.
#define LRCNN_HOST_LIBRARY
#include "cudnn/host_library.hpp"
namespace lrcnn::testing {
template class HostLibrary<float>;
template class HostLibrary<float16>;
template class HostLibrary<bfloat16>;
}   // namespace lrcnn::testing
namespace lrcnn::cudnn {
template <class T>
std::shared_ptr<Library<T>> open_library(const DeviceOptions&) {
  return std::make_shared<testing::HostLibrary<T>>();
}
template std::shared_ptr<Library<float>> open_library<float>(const DeviceOptions&);
template std::shared_ptr<Library<float16>> open_library<float16>(const DeviceOptions&);
template std::shared_ptr<Library<bfloat16>> open_library<bfloat16>(const DeviceOptions&);
std::string device_problem() { return ""; }
}   // namespace lrcnn::cudnn
