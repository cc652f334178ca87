// Linear on a map.
// EXPECT: lrcnn: linear is given a map; linear reads a feature vector [N,F,1,1]; put Flatten or GlobalAvgPool before Linear
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Linear<10
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, Linear<10>>;
static_assert(Fixed<Net, Input{8, 3, 32, 32}>::input.n == 8);
#else
using Net = Sequential<Conv<4>, GlobalAvgPool, Linear<10>>;
static_assert(Fixed<Net, Input{8, 3, 32, 32}>::input.n == 8);
#endif
