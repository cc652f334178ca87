// Gradients that sums share and inputs that are made again alone, on oneDNN.
#include "exec/shared_gradients.hpp"
#include <lrcnn/backend/onednn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("on oneDNN shared gradients and lone inputs give the bits of plans without them") {
  Onednn floats(2);
  shared_gradients_law(floats, 16_MiB);
  OnednnBf16 halves(2, {}, {.slow_bf16 = true, .report_slow = false});
  shared_gradients_law(halves, 16_MiB);
}
