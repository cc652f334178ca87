// Between nested Sequentials a layer is counted in the whole network.
// EXPECT: lrcnn: input channels are not divisible by groups; each group reads an equal share of the input channels
// EXPECT_WITHIN 3: layer_at<5
// EXPECT_WITHIN 3: Conv<9
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Sequential<Conv<4>, ReLU, Conv<7>, ReLU>, Sequential<Sequential<Conv<9, Window{.pad = 1}, ConvOptions{.groups = 3}>>>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<Sequential<Conv<4>, ReLU, Conv<6>, ReLU>, Sequential<Sequential<Conv<9, Window{.pad = 1}, ConvOptions{.groups = 3}>>>>;
static_assert(Net::layers.size() > 0);
#endif
