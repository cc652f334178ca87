// An empty batch.
// EXPECT: lrcnn: an extent of the input is zero or negative; images, channels, rows and columns must be at least 1; give the input's true extents
// EXPECT_WITHIN 3: layer_at<1
// EXPECT_WITHIN 3: Conv<4
// EXPECT_WITHIN 3: 0, 3, 8, 8
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, ReLU>;
static_assert(Fixed<Net, Input{0, 3, 8, 8}>::input.n == 0);
#else
using Net = Sequential<Conv<4>, ReLU>;
static_assert(Fixed<Net, Input{1, 3, 8, 8}>::input.n == 1);
#endif
