// A pool with as much padding as window.
// EXPECT: lrcnn: a pooling window could lie wholly in padding; padding of a pool is smaller than its (kernel - 1) * dilation + 1, and every window has a place on the input; use less padding, a larger kernel or less dilation
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: AvgPool<
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, AvgPool<Window{.kernel = 2, .pad = 2}>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<Conv<4>, AvgPool<Window{.kernel = 2, .pad = 1}>>;
static_assert(Net::layers.size() > 0);
#endif
