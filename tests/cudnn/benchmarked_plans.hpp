#pragma once
// The plans whose kernels and engines are counted, and the device that they are counted for.
#include "../../bench/cases.hpp"
#include <fstream>
#include <sstream>
#include <string>
namespace lrcnn::testing {
/// docs/devices/h200.json
inline std::string h200_description() {
  std::ifstream file(LRCNN_SOURCE_DIR "/docs/devices/h200.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
struct BenchmarkedPlan {
  std::string name;
  std::span<const Layer> layers;
  Input input;
  PolicySpec policy;
  Index launches;   ///< kernels and fills of a step in bf16, where the library takes bias and ReLU along: no more than so many
};
inline std::vector<BenchmarkedPlan> benchmarked_plans() {
  std::vector<BenchmarkedPlan> plans{
      {"VGG-16 224x8, column", Vgg16<>::layers, {8, 3, 224, 224}, bench::Fast::value, 145},
      {"VGG-16 224x8, Share<8>", Vgg16<>::layers, {8, 3, 224, 224}, Policy<Share<8>, CheckpointAtPools, RecomputeAll, FastestConv>::value, 1489},
      {"ResNet-50 224x32, column", ResNet50<>::layers, {32, 3, 224, 224}, resnet::Fast::value, 870},
      {"ResNet-50 1024x1, slabs", ResNet50<>::layers, {1, 3, 1024, 1024}, resnet::Large50::value, 5480}};
  for (BenchmarkedPlan& plan : plans) plan.policy.workspace_bytes = 64_MiB;
  return plans;
}
}   // namespace lrcnn::testing
