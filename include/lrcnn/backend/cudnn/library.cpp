// What needs no device's compiler: whether there is a device, and what is said of precisions that a project has left out of lrcnn::cudnn.
#include <lrcnn/backend/cudnn/cuda_device_calls.hpp>
#include <lrcnn/core/error.hpp>
namespace lrcnn::cudnn {
template <class T>
std::shared_ptr<Library<T>> open_library(const DeviceOptions&) {
  const std::string name = std::is_same_v<T, float> ? "fp32 and tf32" : std::is_same_v<T, float16> ? "fp16" : "bf16";
  throw BackendError(
      error_text("lrcnn::cudnn was compiled without " + name, "LRCNN_CUDA_PRECISIONS says for which precisions it is compiled",
                 "add " + std::string(std::is_same_v<T, float> ? "fp32" : name) + " to that option of CMake's, or use another precision"));
}
#ifdef LRCNN_WITHOUT_FP32
template std::shared_ptr<Library<float>> open_library<float>(const DeviceOptions&);
#endif
#ifdef LRCNN_WITHOUT_FP16
template std::shared_ptr<Library<float16>> open_library<float16>(const DeviceOptions&);
#endif
#ifdef LRCNN_WITHOUT_BF16
template std::shared_ptr<Library<bfloat16>> open_library<bfloat16>(const DeviceOptions&);
#endif
std::string device_problem() { return problem_of_device(-1); }
}   // namespace lrcnn::cudnn
