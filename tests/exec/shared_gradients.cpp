// Gradients that sums share and inputs that are made again alone, on the reference backend.
#include "exec/shared_gradients.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("shared gradients and lone inputs give the bits of plans without them") {
  Reference<double> doubles(2);
  shared_gradients_law(doubles, 0);
  Reference<float> floats(2);
  shared_gradients_law(floats, 0);
}
