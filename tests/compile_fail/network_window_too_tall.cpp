// A 5x5 window on 4 rows, known because the extents are constants.
// EXPECT: lrcnn: the window does not fit into the padded input; extent + padding must be at least (kernel - 1) * dilation + 1; use a larger input, a smaller kernel, more padding, or fewer strides before this layer
// EXPECT_WITHIN 3: layer_at<3
// EXPECT_WITHIN 3: Conv<8
// EXPECT_WITHIN 3: 8, 4, 4, 6
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, MaxPool<>, Conv<8, Window{.kernel = 5}>>;
static_assert(Fixed<Net, Input{8, 3, 9, 12}>::input.h == 9);
#else
using Net = Sequential<Conv<4>, MaxPool<>, Conv<8, Window{.kernel = 5}>>;
static_assert(Fixed<Net, Input{8, 3, 10, 12}>::input.h == 10);
#endif
