// Policy and network the other way round.
// EXPECT: lrcnn: the first argument is no network; a Trainer and a Predictor take network, policy and backend, in this order; give a Sequential first, or another type with layers
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/exec/predictor.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
using namespace lrcnn;
using Net = Sequential<Conv<8>, ReLU, GlobalAvgPool, Linear<3>>;
#ifdef LRCNN_FAIL
Predictor<Policy<Share<4>>, Net, Reference<float>> predictor({4, 3, 8, 8}, {});
#else
Predictor<Net, Policy<Share<4>>, Reference<float>> predictor({4, 3, 8, 8}, {});
#endif
