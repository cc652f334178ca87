// A segmentation network with the loss that a trainer has if nothing is said, which is over images.
// EXPECT: lrcnn: a loss over images is given a map; it reads a score for each class of an image, [N,K,1,1]; train with a loss over pixels, such as PixelCrossEntropy, or end the network in GlobalAvgPool, or Flatten, and Linear
// EXPECT_WITHIN 3: output_of<4
// EXPECT_WITHIN 3: Conv<5
// EXPECT_WITHIN 3: 2, 5, 12, 10
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using Net = Fixed<Sequential<Conv<4>, ReLU, MaxPool<>, Conv<5, Window{.kernel = 1}>>, Input{2, 3, 24, 20}>;
#ifdef LRCNN_FAIL
using Compared = SoftmaxCrossEntropy;
#else
using Compared = PixelCrossEntropy;
#endif
void train() { Trainer<Net, Policy<Share<2>>, Reference<float>, Compared> trainer(Sgd{.lr = 0.1}); }
