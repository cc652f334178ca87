// On a GPU: layers and losses of a program's own, whose loops custom_compile.cu has compiled.
#include "cudnn/custom_law.hpp"
#include "cudnn/pixel_loss_law.hpp"
#include "support/own_losses.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("gpu: layers of a program's own give what the host's functions give, by any policy") {
  own_layers_law([] { return Cudnn(); }, 32_MiB, 1e-5, 1e-5, false);
  own_layers_law([] { return CudnnBf16(); }, 32_MiB, 0.1, 0.1, false);
}
TEST_CASE("gpu: losses over pixels of a program's own give what the reference gives") {
  as_the_reference(PixelLoss<WeightedEntropy>{}, false, [] { return Cudnn(); });
  as_the_reference(PixelLoss<LogCosh>{}, true, [] { return Cudnn(); });
}
