// A convolution to no channels.
// EXPECT: lrcnn: a layer has no output channels; channels and groups are at least 1; give a positive number
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Conv<0
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<ReLU, Conv<0>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<ReLU, Conv<1>>;
static_assert(Net::layers.size() > 0);
#endif
