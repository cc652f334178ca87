#pragma once
// The backend `Cudnn` above its libraries, and training and prediction with it. See precompiled/host.hpp.
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/precompiled/training.hpp>
#ifdef LRCNN_PRECOMPILED_CUDNN
#ifdef LRCNN_PRECOMPILES_CUDNN
#define LRCNN_INSTANCE template
#else
#define LRCNN_INSTANCE extern template
#endif
namespace lrcnn {
LRCNN_INSTANCE class cudnn::DeviceBackend<float>;
LRCNN_INSTANCE class cudnn::DeviceBackend<float16>;
LRCNN_INSTANCE class cudnn::DeviceBackend<bfloat16>;
LRCNN_INSTANCE class BasicCudnn<Precision::fp32>;
LRCNN_INSTANCE class BasicCudnn<Precision::tf32>;
LRCNN_INSTANCE class BasicCudnn<Precision::fp16>;
LRCNN_INSTANCE class BasicCudnn<Precision::bf16>;
LRCNN_INSTANCE class Executor<Cudnn>;
LRCNN_INSTANCE class Executors<Cudnn>;
LRCNN_INSTANCE class BasicPredictor<Cudnn>;
LRCNN_INSTANCE class UpdateRounds<Cudnn, SoftmaxCrossEntropy>;
LRCNN_INSTANCE class BasicTrainer<Cudnn>;
LRCNN_INSTANCE class Executor<CudnnTf32>;
LRCNN_INSTANCE class Executors<CudnnTf32>;
LRCNN_INSTANCE class BasicPredictor<CudnnTf32>;
LRCNN_INSTANCE class UpdateRounds<CudnnTf32, SoftmaxCrossEntropy>;
LRCNN_INSTANCE class BasicTrainer<CudnnTf32>;
LRCNN_INSTANCE class Executor<CudnnFp16>;
LRCNN_INSTANCE class Executors<CudnnFp16>;
LRCNN_INSTANCE class BasicPredictor<CudnnFp16>;
LRCNN_INSTANCE class UpdateRounds<CudnnFp16, SoftmaxCrossEntropy>;
LRCNN_INSTANCE class BasicTrainer<CudnnFp16>;
LRCNN_INSTANCE class Executor<CudnnBf16>;
LRCNN_INSTANCE class Executors<CudnnBf16>;
LRCNN_INSTANCE class BasicPredictor<CudnnBf16>;
LRCNN_INSTANCE class UpdateRounds<CudnnBf16, SoftmaxCrossEntropy>;
LRCNN_INSTANCE class BasicTrainer<CudnnBf16>;
}   // namespace lrcnn
#undef LRCNN_INSTANCE
#endif
