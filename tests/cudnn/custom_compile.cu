// The loops of a program's own layers, as its .cu file compiles them.
#include "../support/element_layers.hpp"
#include <lrcnn/backend/cudnn/custom_loops.hpp>
template const lrcnn::CustomDeviceLayer& lrcnn::loops_on_device<lrcnn::testing::Gain>();
template const lrcnn::CustomDeviceLayer& lrcnn::loops_on_device<lrcnn::testing::EnergyPool>();
template const lrcnn::CustomDeviceLayer& lrcnn::loops_on_device<lrcnn::testing::Elu>();
