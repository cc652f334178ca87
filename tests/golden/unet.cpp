// U-Net against another framework in fp64, with a loss over pixels of uneven weights, some of which are ignored.
#include "networks.hpp"
#include <lrcnn/network/unet.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// The last one as lrcnn::unet::Small, in fewer slabs.
const std::vector<PolicySpec> policies{
    Policy<Column>::value, Policy<Overlap<2>, RecomputeAll>::value, Policy<Share<2>, RecomputeCheap>::value,
    Policy<RecomputeAll, GradientsInPlace,
           Stages<ExtraPasses<Overlap<8>>, Overlap<2>, Column, Column, Keep<>, Column, Column, ExtraPasses<Overlap<12>>,
                  ExtraPassesBothWays<Overlap<16>>>,
           CheckpointAt<"pool1", "pool2", "pool3", "pool4", "bottom.relu2", "merge4.relu2", "merge3.relu2", "merge2.relu2">>::value};
}   // namespace
TEST_CASE("U-Net equals the framework's, column and by rows") { check_network<UNet<3, 8>, PixelCrossEntropy>("unet", policies); }
TEST_CASE("U-Net with bilinear upsampling equals the framework's, column and by rows") {
  check_network<UNet<3, 8, UpsampleConv<Upsampling::Rule::bilinear>>, PixelCrossEntropy>("unet_bilinear", policies);
}
