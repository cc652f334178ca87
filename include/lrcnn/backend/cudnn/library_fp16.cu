// The thin call layer for CUDA, for elements in fp16.
#include <lrcnn/backend/cudnn/cuda_library.hpp>
namespace lrcnn::cudnn {
template std::shared_ptr<Library<float16>> open_library<float16>(const DeviceOptions&);
}   // namespace lrcnn::cudnn
