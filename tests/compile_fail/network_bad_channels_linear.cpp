// A linear layer to a negative number of features.
// EXPECT: lrcnn: a layer has no output channels; channels and groups are at least 1; give a positive number
// EXPECT_WITHIN 3: layer_at<3
// EXPECT_WITHIN 3: Linear<-3
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, Flatten, Linear<-3>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<Conv<4>, Flatten, Linear<3>>;
static_assert(Net::layers.size() > 0);
#endif
