// Upsampling to nothing.
// EXPECT: lrcnn: an upsampling factor is below 1; each pixel becomes as many rows and columns as the factors say; give factors of at least 1
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Upsample<
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/resample.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, Upsample<0>>;
#else
using Net = Sequential<Conv<6>, Upsample<1>>;
#endif
static_assert(Net::layers.size() > 0);
