// Labels by rows on oneDNN, in float and bf16, with threads that compute the loss at once.
#include "exec/label_rows.hpp"
#include <lrcnn/backend/onednn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("labels by rows give oneDNN the bits that labels in memory give") {
  Onednn single(1), both(2);
  CHECK(random_labels_law(single, 100, 6) > 25);
  CHECK(random_labels_law(both, 200, 6) > 25);
  OnednnBf16 rounded(2, {}, {.slow_bf16 = true});
  CHECK(random_labels_law(rounded, 300, 4) > 15);
}
