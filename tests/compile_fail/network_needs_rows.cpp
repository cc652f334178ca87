// A pool behind Flatten.
// EXPECT: lrcnn: a layer that needs rows comes after flatten or linear; convolution and pooling need a map with rows and columns; put it before Flatten, or remove Flatten
// EXPECT_WITHIN 3: layer_at<4
// EXPECT_WITHIN 3: MaxPool<
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, Flatten, ReLU, MaxPool<>, Linear<2>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<Conv<4>, MaxPool<>, Flatten, ReLU, Linear<2>>;
static_assert(Net::layers.size() > 0);
#endif
