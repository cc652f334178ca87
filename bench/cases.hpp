#pragma once
// What is measured: networks, inputs and policies, each with the name it has in the results.
//
// Policies without `images` in the name cut rows only. Those of VGG-16 were found by a search over checkpoints and
// counts per stage for the least work under a bound on the peak; docs/benchmarks.md tells what they give.
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/policy/policy.hpp>
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
  /// "vgg16/224x8"
  std::string name() const { return network + "/" + std::to_string(input.h) + "x" + std::to_string(input.n); }
};
using W = Workspace<4_MiB>;
using WholeColumn = Policy<Column, W>;
/// VGG-16 at 224: a third of the column's peak.
using Vgg16Light =
    Policy<Stages<Share<4>, Column>,
           CheckpointAt<"pool2", "relu6", "relu8", "relu9", "relu10", "relu11", "relu12", "relu13">, RecomputeAll, W>;
/// VGG-16 at 224: a quarter of the column's peak.
using Vgg16Quarter = Policy<Stages<Overlap<7>, Overlap<1, 4>, Share<1, 2>, Column>,
                            CheckpointAt<"pool2", "pool3", "pool4", "relu11", "relu12", "relu13">, RecomputeAll, W>;
/// VGG-16 at 224: less than a quarter, with fewer stages.
using Vgg16ThreePools =
    Policy<Stages<Overlap<7, 8>, Share<4>, Overlap<2>, Column>, CheckpointAt<"pool2", "pool3", "pool4">, RecomputeAll, W>;
using Vgg16ThreePoolsFine =
    Policy<Stages<Overlap<14>, Overlap<4>, Overlap<2>, Column>, CheckpointAt<"pool2", "pool3", "pool4">, RecomputeAll, W>;
/// VGG-16 at 1024: a quarter.
using Vgg16Large =
    Policy<Stages<Overlap<32>, Overlap<16>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, W>;
using PoolsShare = Policy<Share<8>, CheckpointAtPools, RecomputeAll, W>;
using PoolsOverlap = Policy<Overlap<8>, CheckpointAtPools, RecomputeAll, W>;
/// A policy with tensors in 16 bits, whose filter gradients want more scratch: they transpose images there.
constexpr PolicySpec in_bf16(PolicySpec spec, Index workspace_bytes) {
  spec.precision = Precision::bf16;
  spec.workspace_bytes = workspace_bytes;
  return spec;
}
inline std::vector<Case> cases() {
  const std::vector<NamedPolicy> pools{{"column", WholeColumn::value}, {"share8", PoolsShare::value}, {"overlap8", PoolsOverlap::value}};
  return {
      {"vgg16", Vgg16<>::layers, {8, 3, 224, 224},
       {{"column", WholeColumn::value},
        {"light", Vgg16Light::value},
        {"quarter", Vgg16Quarter::value},
        {"three-pools", Vgg16ThreePools::value},
        {"three-pools-fine", Vgg16ThreePoolsFine::value},
        {"share8", PoolsShare::value},
        {"overlap8", PoolsOverlap::value},
        {"overlap-pools", Policy<Stages<Overlap<8>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, W>::value},
        {"share-pools", Policy<Stages<Share<8>, Share<8>, Share<4>, Column>, CheckpointAtPools, RecomputeAll, W>::value},
        {"images4-overlap", Policy<Images<4>, Stages<Overlap<7>, Overlap<4>, Column>, CheckpointAt<"pool2", "pool3">, RecomputeAll, W>::value},
        {"column-bf16", in_bf16(WholeColumn::value, 32_MiB)},
        {"three-pools-bf16", in_bf16(Vgg16ThreePools::value, 5_MiB)},
        {"column-winograd", Policy<Column, WinogradConv, Workspace<256_MiB>>::value},
        {"images2", Policy<Images<2>, W>::value},
        {"images1", Policy<Images<1>, W>::value},
        {"images1-overlap4", Policy<Images<1>, Overlap<4>, CheckpointAtPools, RecomputeAll, W>::value}}},
      {"vgg11", Vgg11<>::layers, {8, 3, 224, 224}, pools},
      {"smallnet", SmallNet<>::layers, {128, 1, 28, 28},
       {{"column", WholeColumn::value},
        {"overlap7", Policy<Overlap<7>, CheckpointAtPools, RecomputeAll, W>::value},
        {"images16", Policy<Images<16>, W>::value}}},
      {"vgg16", Vgg16<>::layers, {1, 3, 1024, 1024},
       {{"column", WholeColumn::value}, {"overlap-pools", Vgg16Large::value}, {"share8", PoolsShare::value}}},
  };
}
}  // namespace bench
