#pragma once
// ResNets of bottlenecks with any numbers of blocks, as lists of layers made at run time.
#include <lrcnn/network/resnet.hpp>
#include <array>
#include <vector>
namespace bench {
using namespace lrcnn;
/// The layers of a ResNet with so many bottlenecks in its four stages: {3, 4, 6, 3} is ResNet-50 but for its names, {6, 32, 461, 6} one of 1,517
/// layers.
inline std::vector<Layer> deep_resnet(const std::array<Index, 4>& blocks) {
  std::vector<Layer> layers(ResNet50<>::layers.begin(), ResNet50<>::layers.begin() + 4);   // to the first pooling
  const Layer norm = layers[1], relu = layers[2];
  const auto convolve = [&](Index channels, Index kernel, Index stride, Index input = 1) {
    layers.push_back({.kind = Kind::conv, .window = {.kernel = kernel, .stride = stride, .pad = kernel / 2}, .channels = channels, .input = input});
    layers.push_back(norm);
    layers.back().name = {};
  };
  const auto activate = [&] {
    layers.push_back(relu);
    layers.back().name = {};
  };
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const Index width = Index{64} << stage;
    for (Index block = 0; block < blocks[stage]; ++block) {
      const Index stride = block == 0 && stage > 0 ? 2 : 1;
      convolve(width, 1, 1);
      activate();
      convolve(width, 3, stride);
      activate();
      convolve(4 * width, 1, 1);
      if (block == 0) convolve(4 * width, 1, stride, 9);   // the block's input lies 8 layers below
      layers.push_back({.kind = Kind::sum, .other = block == 0 ? 3 : 9});
      activate();
    }
  }
  layers.push_back({.kind = Kind::global_avg_pool});
  layers.push_back({.kind = Kind::linear, .channels = 1000, .bias = true});
  return layers;
}
}   // namespace bench
