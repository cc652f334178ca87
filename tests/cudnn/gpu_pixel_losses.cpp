// On a GPU: losses over pixels, transposed convolutions and dropout in training.
#include "cudnn/pixel_loss_law.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("gpu: losses over pixels give what the reference gives") {
  pixel_loss_law([] { return Cudnn(); });
}
