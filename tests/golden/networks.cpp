// Networks for classes of images against another framework in fp64: loss, gradients by parameters and images, and running statistics.
// make_golden_networks.py says what the files hold. Dropout and stochastic depth are off: their random numbers are our own
// (tests/train/dropout.cpp has what they do to these networks).
#include "networks.hpp"
#include <lrcnn/network/convnext.hpp>
#include <lrcnn/network/densenet.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/squeezenet.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Whole networks in a stage: layer by layer; slabs that make what they need themselves; slabs that hand rows on.
const std::vector<PolicySpec> whole{Policy<Column>::value, Policy<Overlap<2>, RecomputeAll>::value, Policy<Share<2>, RecomputeCheap>::value};
/// In stages, the last of which have maps too low for slabs that share rows.
template <class Checkpoints>
const std::vector<PolicySpec> staged{Policy<Column>::value, Policy<Stages<Share<2>, Overlap<2>, Column>, Checkpoints, RecomputeAll>::value};
}   // namespace
TEST_CASE("LeNet equals the framework's, column and by rows") { check_network<LeNet<10>>("lenet", whole); }
TEST_CASE("SmallNet equals the framework's, column and by rows") { check_network<SmallNet<10, 8>>("small_net", whole); }
TEST_CASE("VGG-11 with its own head equals the framework's, column and by rows") {
  check_network<Sequential<VggTrunk<1, 1, 2, 2, 2>, VggHead<10, 64, std::ratio<0>>>>("vgg11_head", staged<CheckpointAtPools>);
}
TEST_CASE("MobileNetV2 equals the framework's, column and by rows") {
  check_network<MobileNetV2<10, BatchNorm, std::ratio<0>>>("mobilenet_v2", whole);
}
TEST_CASE("SqueezeNet 1.1 equals the framework's, column and by rows") {
  check_network<SqueezeNet11<10, std::ratio<0>>>("squeezenet11", staged<CheckpointAtPools>);
}
TEST_CASE("DenseNet-121 equals the framework's, column and by rows") {
  check_network<DenseNet121<10>>("densenet121", {Policy<Column>::value, Policy<Share<2>, RecomputeAll>::value});
}
TEST_CASE("ConvNeXt-Tiny equals the framework's, column and by rows") {
  check_network<ConvNeXtTiny<10, std::ratio<0>>>("convnext_tiny", staged<CheckpointAtSums<>>);
}
