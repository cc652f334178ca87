// An adaptive pool to nothing.
// EXPECT: lrcnn: an adaptive pool has no rows or no columns; the extents of its output are at least 1; give positive extents
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: AdaptiveAvgPool<
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, AdaptiveAvgPool<7, 0>>;
#else
using Net = Sequential<Conv<6>, AdaptiveAvgPool<7, 1>>;
#endif
static_assert(Net::layers.size() > 0);
