// A residual block that changes the number of channels without a convolution in its shortcut; both shapes are shown.
// EXPECT: lrcnn: the branches of a sum have different numbers of channels; a sum adds channel to channel; give the last layer of one branch the other's channels, or the shortcut a convolution
// EXPECT_WITHIN 3: join_at<4
// EXPECT_WITHIN 3: SumJoin
// EXPECT_WITHIN 3: branch_from<3
// EXPECT_WITHIN 3: 24, 
// EXPECT_WITHIN 3: branch_from<1
// EXPECT_WITHIN 3: 12, 
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<12>, Residual<Sequential<Conv<24>, ReLU>>>;
#else
using Net = Sequential<Conv<24>, Residual<Sequential<Conv<24>, ReLU>>>;
#endif
static_assert(Net::layers.size() > 0);
