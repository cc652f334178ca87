// ResNets against another framework in fp64: as networks.cpp, and three steps of training.
#include "networks.hpp"
#include <lrcnn/network/resnet.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("ResNet-18 equals the framework's, column and by rows, also after three steps") {
  using Passes = Stages<Keep<ExtraPasses<Overlap<4>>>, ExtraPassesBothWays<Overlap<2>>, Column>;
  check_network<ResNet18<10>>("resnet18", {Policy<Column>::value, Policy<Passes, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>::value,
                                           Policy<Share<2>, RecomputeCheap>::value});
}
TEST_CASE("ResNet-34 equals the framework's, column and by rows") {
  check_network<ResNet34<10>>("resnet34", {Policy<Column>::value, Policy<Share<2>, RecomputeAll>::value});
}
TEST_CASE("ResNet-50 equals the framework's, column and by rows") {
  check_network<ResNet50<10>>("resnet50", {Policy<Column>::value, Policy<Overlap<2>, RecomputeCheap>::value, Policy<Share<2>, RecomputeAll>::value});
}
TEST_CASE("ResNet-101 equals the framework's, column and by rows") {
  check_network<ResNet101<10>>("resnet101", {Policy<Column>::value, Policy<Overlap<2>, CheckpointAtSums<2>, RecomputeAll>::value});
}
