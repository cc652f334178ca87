#pragma once
// Ready-made policies for ResNets on a CPU, with exact batch norms, named for what they give.
//
// Each was the fastest within its memory among some thousands of combinations of checkpoints, slabs and extra passes that a cost model
// compared, and was then measured (docs/benchmarks.md). They go by the names of layers in network/resnet.hpp: those of the 18 type serve
// ResNet18 and ResNet34, those of the 50 type ResNet50, ResNet101 and ResNet152. For one network and one input Fit<bytes> chooses by itself, and
// `examples/plan ... --budget BYTES --freeze` prints what it chose as a type.
#include <lrcnn/policy/policy.hpp>
namespace lrcnn::resnet {
namespace detail {
template <class... Parts>
using Quick = Policy<FastestConv, RecomputeAll, Parts...>;
}   // namespace detail
/// Layer by layer, nothing computed twice. Strided 1x1 convolutions of large maps want the scratch memory.
using Fast = Policy<FastestConv, Column, Workspace<36_MiB>>;
/// For batches of small images, 50 type: a third of Fast's memory; the larger maps are computed twice.
using Small50 = detail::Quick<Stages<Column, ByImages<4>, ByImages<4>, Column, Column, Keep<>>,
                              CheckpointAt<"pool1", "layer1.1.relu3", "layer2.0.relu3", "layer2.1.relu3", "layer3.1.relu3", "layer3.2.relu3",
                                           "layer4.1.relu3", "layer4.2.relu3">,
                              Workspace<8_MiB>>;
/// For batches of small images, any type: each block is computed twice.
using Small = detail::Quick<Column, CheckpointAtSums<1>, Workspace<8_MiB>>;
/// For images of 1024 rows and more, 18 type: less than a third of Fast's memory.
using Large18 = detail::Quick<Stages<Keep<ExtraPasses<Overlap<4>>>, Column>,
                              CheckpointAt<"pool1", "layer1.0.relu2", "layer1.1.relu2", "layer2.0.relu2", "layer2.1.relu2", "layer3.0.relu2",
                                           "layer3.1.relu2", "layer4.0.relu2", "layer4.1.relu2">,
                              Workspace<24_MiB>>;
/// A quarter of it: norms of the larger maps are gone through slab by slab.
using LargeSmall18 =
    detail::Quick<Stages<Keep<ExtraPasses<Overlap<32>>>, Column, ExtraPasses<Overlap<16>>, Column, Column, Column, Keep<>, Overlap<2>>,
                  CheckpointAt<"pool1", "layer1.0.relu2", "layer2.0.relu2", "layer2.1.relu2", "layer3.0.relu2", "layer4.0.relu2">, GradientsInPlace,
                  Workspace<20_MiB>>;
/// For images of 1024 rows and more, 50 type: little more than a quarter of Fast's memory.
using Large50 = detail::Quick<
    Stages<Overlap<8>, Keep<ExtraPasses<Overlap<4>>>, Column, Overlap<16>, Overlap<2>, Column, Keep<>, Keep<>, Keep<>, Overlap<8>, Keep<>>,
    CheckpointAt<"pool1", "layer1.1.relu3", "layer2.0.relu3", "layer2.3.relu3", "layer3.0.relu3", "layer3.4.relu3", "layer3.5.relu3",
                 "layer4.1.relu3", "layer4.2.relu3">,
    Workspace<8_MiB>>;
/// A fifth of it.
using LargeSmall50 =
    detail::Quick<Stages<Overlap<8>, Keep<ExtraPasses<Overlap<8>>>, Overlap<32>, Column, Column, Column, Column, Column, Keep<>, Column>,
                  CheckpointAt<"pool1", "layer1.2.relu3", "layer2.0.relu3", "layer2.2.relu3", "layer2.3.relu3", "layer3.1.relu3", "layer3.4.relu3",
                               "layer3.5.relu3", "layer4.2.relu3">,
                  Workspace<8_MiB>>;
}   // namespace lrcnn::resnet
