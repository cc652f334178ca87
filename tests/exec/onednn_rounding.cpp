// As rounding.cpp on oneDNN, in direct arithmetic and with Winograd's where it serves; each against the column in the same arithmetic.
#include "exec/rounding.hpp"
#include "support/thorough.hpp"
#include "support/threads.hpp"
#include <lrcnn/backend/onednn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class... Parts>
const RoundingCase in{Policy<Column, Parts...>::value,
                      {Policy<Overlap<2>, RecomputeAll, Parts...>::value, Policy<Share<2>, RecomputeCheap, Parts...>::value}};
std::vector<RoundingCase> both() { return {in<DirectConv>, in<FastestConv, Workspace<16_MiB>>}; }
}   // namespace
TEST_CASE("rounding: ResNet-18 by rows errs as its column does on oneDNN") {
  Onednn backend(threads_for_tests());
  check_rounding<ResNet18<10>>({2, 3, 48, 48}, 3, backend, both());
}
TEST_CASE("rounding: MobileNetV2 by rows errs as its column does on oneDNN") {
  Onednn backend(threads_for_tests());
  check_rounding<MobileNetV2<10>>({2, 3, 64, 64}, cases_to_do(5, 3), backend, both());
}
TEST_CASE("rounding: U-Net by rows errs as its column does on oneDNN") {
  Onednn backend(threads_for_tests());
  check_rounding<UNet<3, 8>>({2, 3, 48, 32}, cases_to_do(9, 5), backend, both(), uneven_pixels);
}
