// A type of elements instead of a backend.
// EXPECT: lrcnn: the third argument is no backend; a Trainer and a Predictor take network, policy and backend, in this order; give Reference<float>, Onednn or Cudnn, or see docs/extending.md for one of your own
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
Predictor<Net, Policy<Share<4>>, float> predictor({4, 3, 8, 8}, {});
#else
Predictor<Net, Policy<Share<4>>, Reference<float>> predictor({4, 3, 8, 8}, {});
#endif
