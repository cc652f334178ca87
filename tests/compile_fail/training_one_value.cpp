// A batch norm behind a global pooling, trained with a batch of one image.
// EXPECT: lrcnn: a norm has one value in each channel or group; the variance of one value is zero, and so is every gradient; use a larger batch or map, or a frozen norm
// EXPECT_WITHIN 3: layer_at<3
// EXPECT_WITHIN 3: BatchNorm
// EXPECT_WITHIN 3: 1, 4, 1, 1
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr Input input{1, 3, 8, 8};
#else
constexpr Input input{2, 3, 8, 8};
#endif
using Net = Fixed<Sequential<Conv<4>, GlobalAvgPool, BatchNorm, Linear<2>>, input>;
void train() { Trainer<Net, Policy<>, Reference<float>> trainer(Sgd{.lr = 0.1}); }
