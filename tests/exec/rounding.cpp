// In fp32 gradients of whole networks by rows are as near to those in fp64 as the column's.
#include "exec/rounding.hpp"
#include "support/thorough.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const std::vector<RoundingCase> direct{{Policy<Column>::value, {Policy<Overlap<2>, RecomputeAll>::value, Policy<Share<2>, RecomputeCheap>::value}}};
}   // namespace
TEST_CASE("rounding: ResNet-18 by rows errs as its column does") {
  Reference<float> backend(2);
  check_rounding<ResNet18<10>>({2, 3, 48, 48}, 3, backend, direct);
}
TEST_CASE("rounding: MobileNetV2 by rows errs as its column does") {
  Reference<float> backend(2);
  check_rounding<MobileNetV2<10>>({2, 3, 64, 64}, cases_to_do(5, 3), backend, direct);
}
TEST_CASE("rounding: U-Net by rows errs as its column does") {
  Reference<float> backend(2);
  check_rounding<UNet<3, 8>>({2, 3, 48, 32}, cases_to_do(9, 5), backend, direct, uneven_pixels);
}
