// Policy and network the other way round.
// EXPECT: lrcnn: the first argument of peak_bytes is no network; it takes network, policy and backend, in this order; give a Sequential first, or another type with layers
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/plan/peak.hpp>
using namespace lrcnn;
using Net = Sequential<Conv<8>, ReLU, GlobalAvgPool, Linear<3>>;
#ifdef LRCNN_FAIL
constexpr Index bytes = peak_bytes<Policy<Share<4>>, Net>({4, 3, 8, 8});
#else
constexpr Index bytes = peak_bytes<Net, Policy<Share<4>>>({4, 3, 8, 8});
#endif
