// A layer that reads itself.
// EXPECT: lrcnn: a layer reads what does not come before it, or two inputs without being a join; input is at least 1 place back, and other is 0 except for sum, concat and scale; correct the layer's input or other
// EXPECT_WITHIN 3: layer_at<3
// EXPECT_WITHIN 3: Own
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr Layer last{.input = 0};
#else
constexpr Layer last{.input = 1};
#endif
struct Own {
  static constexpr std::array<Layer, 2> layers{Conv<4>::layer(), last};
};
static_assert(Sequential<Conv<3>, Own>::layers.size() == 3);
