#pragma once
// The backend `Onednn`, and training and prediction with it. See precompiled/host.hpp.
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/precompiled/training.hpp>
#ifdef LRCNN_PRECOMPILED_ONEDNN
#ifdef LRCNN_PRECOMPILES_ONEDNN
#define LRCNN_INSTANCE template
#else
#define LRCNN_INSTANCE extern template
#endif
namespace lrcnn {
LRCNN_INSTANCE class onednn::Convolution<float>;
LRCNN_INSTANCE class onednn::Linear<float>;
LRCNN_INSTANCE class onednn::Transposed<float>;
LRCNN_INSTANCE class onednn::Primitives<float>;
LRCNN_INSTANCE class BasicOnednn<float>;
LRCNN_INSTANCE class Executor<Onednn>;
LRCNN_INSTANCE class Executors<Onednn>;
LRCNN_INSTANCE class onednn::Convolution<bfloat16>;
LRCNN_INSTANCE class onednn::Linear<bfloat16>;
LRCNN_INSTANCE class onednn::Transposed<bfloat16>;
LRCNN_INSTANCE class onednn::Primitives<bfloat16>;
LRCNN_INSTANCE class BasicOnednn<bfloat16>;
LRCNN_INSTANCE class Executor<OnednnBf16>;
LRCNN_INSTANCE class Executors<OnednnBf16>;
LRCNN_INSTANCE class BasicPredictor<Onednn>;
LRCNN_INSTANCE class UpdateRounds<Onednn, SoftmaxCrossEntropy>;
LRCNN_INSTANCE class BasicTrainer<Onednn>;
}   // namespace lrcnn
#undef LRCNN_INSTANCE
#endif
