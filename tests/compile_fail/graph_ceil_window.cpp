// A convolution that is rounded up.
// EXPECT: lrcnn: the extent of a convolution is rounded up; only the windows of pools may end beyond the padding; leave ceil out of the layer's Window, or give it padding
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Conv<
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, Conv<4, Window{.kernel = 2, .stride = 2, .ceil = true}>>;
#else
using Net = Sequential<Conv<6>, Conv<4, Window{.kernel = 2, .stride = 2}>>;
#endif
static_assert(Net::layers.size() > 0);
