// Groups of a norm that do not divide the channels.
// EXPECT: lrcnn: channels are not divisible by the groups of a norm; each group has an equal share of the channels; change the norm's groups, or the channels of the layer before
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: GroupNorm<4
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, GroupNorm<4>>;
#else
using Net = Sequential<Conv<8>, GroupNorm<4>>;
#endif
static_assert(Net::layers.size() > 0);
