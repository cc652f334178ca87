// A max pool whose window's places do not fit into the byte that is kept.
// EXPECT: lrcnn: a max pool's window has more than 256 places; the place of a window's maximum is kept in one byte; use a smaller kernel
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: MaxPool<
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, MaxPool<Window{.kernel = {16, 17}, .stride = 16}>>;
static_assert(Net::layers.size() > 0);
#else
using Net = Sequential<Conv<4>, MaxPool<Window{.kernel = {16, 16}, .stride = 16}>>;
static_assert(Net::layers.size() > 0);
#endif
