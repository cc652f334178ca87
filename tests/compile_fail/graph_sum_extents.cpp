// A residual block with strides whose shortcut has none.
// EXPECT: lrcnn: the branches of a sum have different rows, columns or images; a sum adds pixel to pixel; change strides or padding in one branch, or give the shortcut the body's strides
// EXPECT_WITHIN 3: join_at<3
// EXPECT_WITHIN 3: branch_from<1
// EXPECT_WITHIN 3: 2, 8, 7, 9
// EXPECT_WITHIN 3: branch_from<2
// EXPECT_WITHIN 3: 2, 8, 14, 18
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Fixed<Residual<Conv<8, Window{.stride = 2, .pad = 1}>, Conv<8>>, Input{2, 8, 14, 18}>;
#else
using Net = Fixed<Residual<Conv<8, Window{.stride = 2, .pad = 1}>, Conv<8, Window{.kernel = 1, .stride = 2}>>, Input{2, 8, 14, 18}>;
#endif
static_assert(Net::layers.size() > 0);
