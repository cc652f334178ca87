// Branches of different heights: a skip and what comes up again from half its rows. Layers that the branches end in are shown, and shapes.
// EXPECT: lrcnn: the branches of a concat have different rows, columns or images; a concat puts channels of the same pixels one behind the other; change strides, padding or upsampling in one branch, or the input's extents so that pools divide them
// EXPECT_WITHIN 3: join_at<4
// EXPECT_WITHIN 3: ConcatJoin
// EXPECT_WITHIN 3: branch_from<1
// EXPECT_WITHIN 3: 1, 3, 15, 8
// EXPECT_WITHIN 3: branch_from<3
// EXPECT_WITHIN 3: 1, 3, 14, 8
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/resample.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Fixed<Sequential<ReLU, Concat<Identity, Sequential<MaxPool<>, Upsample<2>>>>, Input{1, 3, 15, 8}>;
#else
using Net = Fixed<Sequential<ReLU, Concat<Identity, Sequential<MaxPool<>, Upsample<2>>>>, Input{1, 3, 14, 8}>;
#endif
static_assert(Net::layers.size() > 0);
