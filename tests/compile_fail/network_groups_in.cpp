// Groups that do not divide the channels of the layer before; no extents are needed to see it.
// EXPECT: lrcnn: input channels are not divisible by groups; each group reads an equal share of the input channels; change groups, or the channels of the layer before
// EXPECT_WITHIN 3: layer_at<3
// EXPECT_WITHIN 3: Conv<8
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, ReLU, Conv<8, Window{.pad = 1}, ConvOptions{.groups = 4}>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<Conv<4>, ReLU, Conv<8, Window{.pad = 1}, ConvOptions{.groups = 4}>>;
static_assert(Net::layers.size() > 0);
#endif
