// Reflecting a negative number of rows.
// EXPECT: lrcnn: reflected padding is negative, or not smaller than the map; a border shows the rows or columns next to the map's first or last, in reverse; use less padding, Crop, or a larger input
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: ReflectPad<
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pad.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, ReflectPad<-1>>;
#else
using Net = Sequential<Conv<6>, ReflectPad<1>>;
#endif
static_assert(Net::layers.size() > 0);
