// Groups that do not divide the layer's own channels.
// EXPECT: lrcnn: output channels are not divisible by groups; each group writes an equal share of the output channels; change groups or channels of this layer
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Conv<6
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<ReLU, Conv<6, Window{.pad = 1}, ConvOptions{.groups = 4}>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<ReLU, Conv<8, Window{.pad = 1}, ConvOptions{.groups = 4}>>;
static_assert(Net::layers.size() > 0);
#endif
