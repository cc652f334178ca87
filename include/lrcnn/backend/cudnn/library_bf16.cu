// The thin call layer for CUDA, for elements in bf16.
#include <lrcnn/backend/cudnn/cuda_library.hpp>
namespace lrcnn::cudnn {
template std::shared_ptr<Library<bfloat16>> open_library<bfloat16>(const DeviceOptions&);
}   // namespace lrcnn::cudnn
