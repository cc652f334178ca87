// A part of a policy in its place.
// EXPECT: lrcnn: the second argument is no Policy; a Trainer and a Predictor take network, policy and backend, in this order, and parts such as Share<4> stand within the policy; write Policy<Share<4>>
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
Predictor<Net, Share<4>, Reference<float>> predictor({4, 3, 8, 8}, {});
#else
Predictor<Net, Policy<Share<4>>, Reference<float>> predictor({4, 3, 8, 8}, {});
#endif
