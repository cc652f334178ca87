// The loops of a program's own layers and losses, as its .cu file compiles them.
#include "../support/element_layers.hpp"
#include "../support/own_losses.hpp"
#include <lrcnn/backend/cudnn/custom_loops.hpp>
template const lrcnn::CustomDeviceLayer& lrcnn::loops_on_device<lrcnn::testing::Gain>();
template const lrcnn::CustomDeviceLayer& lrcnn::loops_on_device<lrcnn::testing::EnergyPool>();
template const lrcnn::CustomDeviceLayer& lrcnn::loops_on_device<lrcnn::testing::Elu>();
template const lrcnn::CustomDeviceLoss<lrcnn::testing::SquaredHinge>& lrcnn::loss_on_device<lrcnn::testing::SquaredHinge>();
template const lrcnn::CustomDeviceLoss<lrcnn::testing::WeightedEntropy>& lrcnn::loss_on_device<lrcnn::testing::WeightedEntropy>();
template const lrcnn::CustomDeviceLoss<lrcnn::testing::LogCosh>& lrcnn::loss_on_device<lrcnn::testing::LogCosh>();
