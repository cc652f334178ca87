#pragma once
// Ready-made policies for the VGG networks on a CPU, named for what they give.
//
// Each was the fastest within its memory among some ten thousand combinations of checkpoints, slabs, images and recomputation
// that a cost model compared, and was then measured (docs/benchmarks.md, which also draws them as a frontier of time against
// memory). They serve batches of 224x224 images and single large images alike unless their name says otherwise. For one network and one input
// Fit<bytes> chooses by itself, and `examples/plan ... --budget BYTES --freeze` prints what it chose as a type.
//
// Row cuts and checkpoints go by the names of layers, which VGG-11 to VGG-19 share.
#include <lrcnn/policy/policy.hpp>
namespace lrcnn::vgg {
namespace detail {
template <class... Parts>
using Quick = Policy<FastestConv, Parts...>;
}   // namespace detail
/// Layer by layer, nothing computed twice, in generous scratch memory.
using Fast = detail::Quick<Column, Workspace<64_MiB>>;
/// Half the memory at nearly Fast's time, by rows alone: only the convolutions that cost least are computed twice.
using Balanced = detail::Quick<Stages<Overlap<3>, Overlap<2>, Column>, CheckpointAt<"pool1", "pool2">, RecomputeLight, Workspace<16_MiB>>;
/// Little more than a third of Fast's memory, by rows alone: the two stages with the largest maps are computed twice.
using Small = detail::Quick<Stages<Overlap<2, 4>, Column, Keep<>>, CheckpointAt<"pool2", "pool3">, RecomputeAll, Workspace<16_MiB>>;
/// A quarter, for batches: groups of four images, of which the largest maps are made one image at a time.
using SmallByImages = detail::Quick<Images<4>, Stages<ByImages<1>, Keep<>>, CheckpointAt<"pool2">, RecomputeAll, Workspace<16_MiB>>;
/// A sixth, for batches.
using SmallestByImages = detail::Quick<Images<2>, Stages<ByImages<1>, Column>, CheckpointAt<"pool1", "pool2">, RecomputeLight, Workspace<12_MiB>>;
/// For images of 1024 rows and more: half of Fast's memory at nearly its time.
using LargeBalanced = detail::Quick<Stages<Overlap<6>, Overlap<3>, Column, Overlap<2>, Column>, CheckpointAtPools, RecomputeLight, Workspace<16_MiB>>;
/// For images of 1024 rows and more: between a quarter and a fifth.
using LargeSmall = detail::Quick<Stages<Overlap<4, 7>, Keep<>>, CheckpointAt<"pool3">, RecomputeAll, Workspace<32_MiB>>;
}   // namespace lrcnn::vgg
