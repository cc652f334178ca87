// A join of one input.
// EXPECT: lrcnn: a sum, concat or scale has one input only; a join reads two tensors, input and other; say in other how many places before it the second one lies
// EXPECT_WITHIN 3: layer_at<3
// EXPECT_WITHIN 3: Own
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr Layer last{.kind = Kind::concat};
#else
constexpr Layer last{.kind = Kind::concat, .other = 2};
#endif
struct Own {
  static constexpr std::array<Layer, 2> layers{Conv<4>::layer(), last};
};
static_assert(Sequential<Conv<3>, Own>::layers.size() == 3);
