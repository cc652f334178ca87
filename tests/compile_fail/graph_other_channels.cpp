// A norm to other channels than its input has.
// EXPECT: lrcnn: a layer gives other channels than it says; only convolutions, linear and custom layers choose how many channels they give; leave out the layer's channels, or put a convolution before it
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Normed<16
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
template <Index channels>
struct Normed {
  static constexpr Layer layer() { return {.kind = Kind::norm, .channels = channels}; }
};
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, Normed<16>>;
#else
using Net = Sequential<Conv<6>, Normed<6>>;
#endif
static_assert(Net::layers.size() > 0);
