#pragma once
// Ready-made policies for U-Nets on a CPU, with exact batch norms, named for what they give.
//
// They go by the names of layers in network/unet.hpp, and suit images of 512 rows and more and a loss that is local to rows. Found as
// those in policy/resnet.hpp, and measured: docs/benchmarks.md.
#include <lrcnn/policy/policy.hpp>
namespace lrcnn::unet {
/// Layer by layer, nothing computed twice.
using Fast = Policy<FastestConv, Column, Workspace<16_MiB>>;
/// Less than a quarter of Fast's memory: maps of the first level exist in full height once, as the skip connection, and its gradient takes
/// that place.
using Small = Policy<
    FastestConv, RecomputeAll, GradientsInPlace,
    Stages<ExtraPasses<Overlap<8>>, Overlap<2>, Column, Column, Keep<>, Column, Column, ExtraPasses<Overlap<64>>, ExtraPassesBothWays<Overlap<32>>>,
    CheckpointAt<"pool1", "pool2", "pool3", "pool4", "bottom.relu2", "merge4.relu2", "merge3.relu2", "merge2.relu2">, Workspace<16_MiB>>;
}   // namespace lrcnn::unet
