#pragma once
// The plans whose kernels and engines are counted, and the device that they are counted for.
#include "../../bench/cases.hpp"
#include <lrcnn/backend/cudnn/problem.hpp>
#include <fstream>
#include <sstream>
#include <string>
namespace lrcnn::testing {
/// docs/devices/NAME.json
inline std::string description_of(const std::string& name) {
  std::ifstream file(LRCNN_SOURCE_DIR "/docs/devices/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
inline std::string h200_description() { return description_of("h200"); }
/// A 3x3 convolution with its bias, in tf32, of 8 images with 64 channels: rows of VGG-16's first stage.
inline cudnn::Problem biased_convolution() {
  return {.op = Op::forward,
          .precision = Precision::tf32,
          .bias = true,
          .n = 8,
          .c = 64,
          .h = 58,
          .w = 56,
          .k = 64,
          .p = 56,
          .q = 56,
          .kernel = {3, 3},
          .pad = {0, 0, 1, 1}};
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
      {"VGG-16 224x8, column", Vgg16<>::layers, {8, 3, 224, 224}, bench::Fast::value, 88},
      {"VGG-16 224x8, Share<8>", Vgg16<>::layers, {8, 3, 224, 224}, Policy<Share<8>, CheckpointAtPools, RecomputeAll, FastestConv>::value, 830},
      {"ResNet-50 224x32, column", ResNet50<>::layers, {32, 3, 224, 224}, resnet::Fast::value, 405},
      {"ResNet-50 1024x1, slabs", ResNet50<>::layers, {1, 3, 1024, 1024}, resnet::Large50::value, 3431}};
  for (BenchmarkedPlan& plan : plans) plan.policy.workspace_bytes = 64_MiB;
  return plans;
}
}   // namespace lrcnn::testing
