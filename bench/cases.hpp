#pragma once
// What is measured: networks, inputs and policies, each with the name it has in the results.
//
// Policies without `images` in the name cut rows only; those with `direct` compute convolutions as the formula says, the others
// by Winograd's algorithm where that is faster. docs/benchmarks.md tells what they give.
#include "deep_resnet.hpp"
#include <lrcnn/network/convnext.hpp>
#include <lrcnn/network/densenet.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/policy/resnet.hpp>
#include <lrcnn/policy/unet.hpp>
#include <lrcnn/policy/vgg.hpp>
#include <string>
#include <vector>
namespace bench {
using namespace lrcnn;
struct NamedPolicy {
  std::string name;
  PolicySpec spec;
};
/// A network on one input, with the policies it is run under. The first is the column.
struct Case {
  std::string network;   ///< "vgg16"
  std::span<const Layer> layers;
  Input input;
  std::vector<NamedPolicy> policies;
  std::string family = "step";   ///< what the names of its benchmarks begin with
  /// "vgg16/224x8"
  std::string name() const { return network + "/" + std::to_string(input.h) + "x" + std::to_string(input.n); }
};
using W = Workspace<4_MiB>;
using Fast = vgg::Fast;   // any network's column
/// A ResNet's column with gradients in the places of values.
using FastInPlace = Policy<FastestConv, Column, GradientsInPlace, Workspace<36_MiB>>;
/// All that a ResNet's backward pass reads lies in the larger memory meanwhile; or what lies between blocks, which are computed again.
using Offloaded = Policy<FastestConv, OffloadInput<>, CheckpointEvery<1>, Workspace<36_MiB>>;
using OffloadedSums = Policy<FastestConv, OffloadInput<>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace, Workspace<36_MiB>>;
/// With direct arithmetic a quarter of the column's memory; slabs are bit-identical to it.
using ThreePools = Policy<Stages<Overlap<7, 8>, Share<4>, Overlap<2>, Column>, CheckpointAt<"pool2", "pool3", "pool4">, RecomputeAll, W>;
using LargePools = Policy<Stages<Overlap<32>, Overlap<16>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, W>;
/// A policy with tensors in 16 bits, whose filter gradients want more scratch: they transpose images there.
constexpr PolicySpec in_bf16(PolicySpec spec, Index workspace_bytes) {
  spec.precision = Precision::bf16;
  spec.workspace_bytes = workspace_bytes;
  return spec;
}
/// A policy with more and more slabs: "overlap1" to "overlap32", and "share".
inline std::vector<NamedPolicy> more_and_more_slabs() {
  std::vector<NamedPolicy> list{{"column", Fast::value}};
  for (const auto& [cut, name] : {std::pair{Cut::overlap, "overlap"}, std::pair{Cut::share, "share"}})
    for (const Index slabs : {1, 2, 4, 8, 16, 32}) {
      PolicySpec spec = Policy<CheckpointAtPools, RecomputeAll, FastestConv, Workspace<16_MiB>>::value;
      spec.partitions[0] = {cut, slabs, slabs, 0};
      list.push_back({name + std::to_string(slabs), spec});
    }
  return list;
}
/// What Fit chooses for some bytes, by costs that are measured on the machine: "fit-134MB"; by cuts into rows alone: "fit-137MB-rows"; and where it
/// may offload, too: "fit-217MB-offload".
inline std::vector<NamedPolicy> fitted(const PolicySpec& column, std::initializer_list<Index> megabytes,
                                       std::initializer_list<Index> megabytes_of_rows = {}, Index batch = 0,
                                       std::initializer_list<Index> megabytes_beside_files = {}) {
  std::vector<NamedPolicy> list{{"column", column}};
  const auto add = [&](PolicySpec spec, Index mb, const char* end) {
    spec.fit_bytes = mb * 1'000'000;
    list.push_back({"fit-" + std::to_string(mb) + end, spec});
  };
  for (const Index mb : megabytes) add(Policy<Fit<1>>::value, mb, "MB");
  PolicySpec rows = Policy<Fit<1>, Images<1>>::value;
  rows.images = batch;
  for (const Index mb : megabytes_of_rows) add(rows, mb, "MB-rows");
  for (const Index mb : megabytes_beside_files) add(Policy<Fit<1>, MayOffload>::value, mb, "MB-offload");
  return list;
}
inline std::vector<Case> cases() {
  return {
      {"vgg16",
       Vgg16<>::layers,
       {8, 3, 224, 224},
       {{"column", Fast::value},
        {"balanced", vgg::Balanced::value},
        {"small", vgg::Small::value},
        {"images-small", vgg::SmallByImages::value},
        {"images-smallest", vgg::SmallestByImages::value},
        {"column-direct", Policy<Column, W>::value},
        {"three-pools-direct", ThreePools::value},
        {"images2-direct", Policy<Images<2>, W>::value},
        {"column-bf16", in_bf16(Policy<Column>::value, 32_MiB)},
        {"three-pools-bf16", in_bf16(ThreePools::value, 5_MiB)}}},
      {"vgg16",
       Vgg16<>::layers,
       {1, 3, 1024, 1024},
       {{"column", Fast::value},
        {"balanced", vgg::LargeBalanced::value},
        {"small", vgg::LargeSmall::value},
        {"column-direct", Policy<Column, W>::value},
        {"pools-direct", LargePools::value}}},
      {"vgg16", Vgg16<>::layers, {1, 3, 2048, 2048}, {{"column", Fast::value}, {"small", vgg::LargeSmall::value}}},
      {"vgg11", Vgg11<>::layers, {8, 3, 224, 224}, {{"column", Fast::value}, {"small", vgg::Small::value}}},
      {"resnet50",
       ResNet50<>::layers,
       {8, 3, 224, 224},
       {{"column", resnet::Fast::value}, {"column-in-place", FastInPlace::value}, {"small", resnet::Small50::value}, {"sums", resnet::Small::value}}},
      {"resnet50",
       ResNet50<>::layers,
       {1, 3, 1024, 1024},
       {{"column", resnet::Fast::value},
        {"column-in-place", FastInPlace::value},
        {"large", resnet::Large50::value},
        {"large-small", resnet::LargeSmall50::value},
        {"offloaded", Offloaded::value},
        {"offloaded-sums", OffloadedSums::value}}},
      {"resnet18",
       ResNet18<>::layers,
       {1, 3, 2048, 2048},
       {{"column", resnet::Fast::value}, {"large", resnet::Large18::value}, {"large-small", resnet::LargeSmall18::value}}},
      {"unet", UNet<2>::layers, {1, 3, 1024, 1024}, {{"column", unet::Fast::value}, {"small", unet::Small::value}}},
      {"unet", UNet<2>::layers, {1, 3, 512, 512}, {{"column", unet::Fast::value}, {"small", unet::Small::value}}},
      {"smallnet",
       SmallNet<>::layers,
       {128, 1, 28, 28},
       {{"column", Fast::value},
        {"rows7", Policy<Overlap<7>, CheckpointAtPools, RecomputeAll, FastestConv, W>::value},
        {"images16", Policy<Images<16>, FastestConv, W>::value}}},
      {"vgg16", Vgg16<>::layers, {8, 3, 224, 224}, fitted(Fast::value, {197, 134, 63, 45, 32}, {137, 89}, 8), "frontier"},
      {"vgg16", Vgg16<>::layers, {1, 3, 1024, 1024}, fitted(Fast::value, {294, 198, 141, 99}), "frontier"},
      {"vgg16", Vgg16<>::layers, {1, 3, 2048, 2048}, fitted(Fast::value, {664, 490, 350, 245}), "frontier"},
      {"resnet50", ResNet50<>::layers, {8, 3, 224, 224}, fitted(resnet::Fast::value, {332, 224, 205}), "frontier"},
      {"resnet50",
       ResNet50<>::layers,
       {1, 3, 1024, 1024},
       fitted(resnet::Fast::value, {512, 470, 451, 375, 287, 248, 217}, {}, 0, {451, 287, 217, 170}),
       "frontier"},
      {"resnet18", ResNet18<>::layers, {1, 3, 2048, 2048}, fitted(resnet::Fast::value, {432, 375, 365, 247, 185}), "frontier"},
      {"unet", UNet<2>::layers, {1, 3, 1024, 1024}, fitted(unet::Fast::value, {2400, 1170, 1136}), "frontier"},
      {"vgg16", Vgg16<>::layers, {8, 3, 224, 224}, more_and_more_slabs(), "slabs"},
      {"vgg16", Vgg16<>::layers, {1, 3, 1024, 1024}, more_and_more_slabs(), "slabs"}};
}
/// A network on one input whose frontier is searched for.
struct SearchCase {
  std::string network;
  std::vector<Layer> layers;
  Input input;
  std::string name() const { return network + "/" + std::to_string(input.h) + "x" + std::to_string(input.n); }
};
inline std::vector<SearchCase> search_cases() {
  std::vector<SearchCase> list;
  const auto add = [&](const std::string& network, std::span<const Layer> layers, Index images, Index size) {
    list.push_back({network, {layers.begin(), layers.end()}, {images, 3, size, size}});
  };
  for (const auto& [images, size] : {std::pair<Index, Index>{8, 224}, {1, 1024}, {1, 2048}, {1, 4096}}) {
    add("vgg16", Vgg16<>::layers, images, size);
    add("resnet50", ResNet50<>::layers, images, size);
    add("unet", UNet<2>::layers, images, size);
  }
  add("resnet18", ResNet18<>::layers, 1, 2048);
  add("resnet152", ResNet152<>::layers, 8, 224);
  add("densenet121", DenseNet121<>::layers, 4, 224);
  add("mobilenet2", MobileNetV2<>::layers, 8, 224);
  add("convnext_tiny", ConvNeXtTiny<>::layers, 8, 224);
  add("resnet1517", deep_resnet({6, 32, 461, 6}), 1, 224);
  return list;
}
}   // namespace bench
