// Offloaded inputs on oneDNN.
#include "exec/offloaded_inputs.hpp"
#include <lrcnn/backend/onednn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("on oneDNN offloaded inputs give the bits of kept ones") {
  Onednn floats(2);
  offloaded_inputs_law(floats, 16_MiB);
  OnednnBf16 halves(2, {}, {.slow_bf16 = true, .report_slow = false});
  offloaded_inputs_law(halves, 16_MiB);
}
