// A part that describes no layer.
// EXPECT: lrcnn: a part of a Sequential is no layer; a layer is a type with `static constexpr Layer layer()`, or a Sequential, and parts such as Share<4> belong to the Policy; see docs/extending.md
// EXPECT_WITHIN 3: NotALayer
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
struct NotALayer {};
using Net = Sequential<Conv<4>, NotALayer>;
static_assert(Net::layers.size() > 0);
#else
struct NotALayer {
  static constexpr Layer layer() { return {}; }
};
using Net = Sequential<Conv<4>, NotALayer>;
static_assert(Net::layers.size() > 0);
#endif
