// A convolution that nothing reads.
// EXPECT: lrcnn: a layer's output is not used; every layer but the last is read by one behind it; remove the layer, or let another one read it
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Own
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr Layer last{.input = 2};
#else
constexpr Layer last{.input = 1};
#endif
struct Own {
  static constexpr std::array<Layer, 2> layers{Conv<4>::layer(), last};
};
static_assert(Sequential<Conv<3>, Own>::layers.size() == 3);
