// The thin call layer for CUDA, for elements in 32 bits: of fp32 and tf32.
#include <lrcnn/backend/cudnn/cuda_library.hpp>
namespace lrcnn::cudnn {
template std::shared_ptr<Library<float>> open_library<float>(const DeviceOptions&);
}   // namespace lrcnn::cudnn
