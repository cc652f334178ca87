// A tensor of more elements than anybody can count in 64 bits of bytes.
// EXPECT: lrcnn: a tensor, a filter or a number of a layer is too large; extents and numbers of a layer are below 2^31, and a tensor or a filter has at most 2^44 elements; use a smaller input, fewer channels or smaller windows
// EXPECT_WITHIN 3: Conv<4
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Fixed<Sequential<Conv<4>, GlobalAvgPool>, Input{4294967296, 1, 65536, 65536}>;
#else
using Net = Fixed<Sequential<Conv<4>, GlobalAvgPool>, Input{4, 1, 65536, 65536}>;
#endif
static_assert(Net::layers.size() > 0);
