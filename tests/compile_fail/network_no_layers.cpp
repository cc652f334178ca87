// An empty network.
// EXPECT: lrcnn: a Sequential has no layers; a network has at least one; name its layers
// EXPECT: Sequential<>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<>;
constexpr Net net{};
#else
using Net = Sequential<ReLU>;
static_assert(Net::layers.size() > 0);
#endif
