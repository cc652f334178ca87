// A norm without epsilon.
// EXPECT: lrcnn: a norm has an epsilon that is not above 0, a momentum outside 0 to 1, or negative groups; epsilon keeps the root's argument above 0, and momentum is a share; correct the layer's Norm
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: BatchNormWith
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, BatchNormWith<NormOptions{}, std::ratio<0>>>;
#else
using Net = Sequential<Conv<6>, BatchNormWith<NormOptions{}, std::ratio<1, 1000>>>;
#endif
static_assert(Net::layers.size() > 0);
