// A group norm without groups.
// EXPECT: lrcnn: a GroupNorm has no groups; it has at least one; write GroupNorm<32>, or InstanceNorm
// EXPECT: GroupNorm<0
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, GroupNorm<0>>;
#else
using Net = Sequential<Conv<6>, GroupNorm<1>>;
#endif
static_assert(Net::layers.size() > 0);
