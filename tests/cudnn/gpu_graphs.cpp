// On a GPU: networks that branch, with norms and upsampling, give what the reference gives, row by row and layer by layer.
#include "cudnn/graph_law.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("gpu: networks that branch, in fp32") {
  graph_law(300, 60, 1e-4, [](std::uint64_t) { return Cudnn(); });
}
