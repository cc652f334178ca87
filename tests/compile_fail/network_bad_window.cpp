// A stride of 0.
// EXPECT: lrcnn: a window has a kernel, stride or dilation below 1, or negative padding; kernel, stride and dilation are at least 1, padding at least 0; correct the layer's Window
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Conv<8
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, Conv<8, Window{.kernel = 3, .stride = 0}>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<Conv<4>, Conv<8, Window{.kernel = 3, .stride = 1}>>;
static_assert(Net::layers.size() > 0);
#endif
