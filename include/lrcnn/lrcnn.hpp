#pragma once
// The library without its backends for particular hardware: include one of those beside it.
//     #include <lrcnn/lrcnn.hpp>
//     #include <lrcnn/backend/onednn.hpp>
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/data/dataset.hpp>
#include <lrcnn/data/loader.hpp>
#include <lrcnn/data/row_sink.hpp>
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/data/shapes.hpp>
#include <lrcnn/exec/executor.hpp>
#include <lrcnn/exec/predictor.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/channels.hpp>
#include <lrcnn/layer/concepts.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/dice.hpp>
#include <lrcnn/layer/dropout.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/loss.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pad.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <lrcnn/layer/pointwise.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/resample.hpp>
#include <lrcnn/network/convnext.hpp>
#include <lrcnn/network/densenet.hpp>
#include <lrcnn/network/graph.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/network/squeeze_excitation.hpp>
#include <lrcnn/network/squeezenet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/peak.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/plan/plan.hpp>
#include <lrcnn/plan/print.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/trainer.hpp>
#include <lrcnn/version.hpp>
#ifdef LRCNN_PRECOMPILED
#include <lrcnn/precompiled/training.hpp>
#endif
