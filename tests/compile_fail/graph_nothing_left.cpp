// Cropping everything away.
// EXPECT: lrcnn: nothing is left of the map; cropping, or the padding of a transposed convolution, leaves at least a row and a column; crop less, use less padding, or a larger input
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Pad<
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pad.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Fixed<Sequential<Conv<6>, Crop<2>, GlobalAvgPool, Linear<2>>, Input{1, 3, 4, 9}>;
#else
using Net = Fixed<Sequential<Conv<6>, Crop<2>, GlobalAvgPool, Linear<2>>, Input{1, 3, 5, 9}>;
#endif
static_assert(Net::layers.size() > 0);
