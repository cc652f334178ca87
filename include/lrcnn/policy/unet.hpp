#pragma once
// Ready-made policies for U-Nets on a CPU, with exact batch norms, named for what they give.
//
// They go by the names of layers in network/unet.hpp, and suit images of 512 rows and more. Measured: docs/benchmarks.md.
#include <lrcnn/policy/policy.hpp>
namespace lrcnn::unet {
/// Layer by layer, nothing computed twice.
using Fast = Policy<FastestConv, Column, Workspace<36_MiB>>;
/// The two levels of the largest maps, and the way up, go backward through their norms slab by slab: a quarter of Fast's memory.
using Small = Policy<FastestConv, RecomputeAll,
                     Stages<ExtraPasses<Overlap<16>>, ExtraPasses<Overlap<8>>, ExtraPasses<Overlap<4>>, ExtraPasses<Overlap<2>>, Column,
                            ExtraPasses<Overlap<2>>, ExtraPasses<Overlap<4>>, ExtraPasses<Overlap<16>>, ExtraPasses<Overlap<32>>>,
                     CheckpointAt<"down1.relu2", "down2.relu2", "down3.relu2", "down4.relu2", "bottom.relu2", "merge4.relu2", "merge3.relu2",
                                  "merge2.relu2">,
                     Workspace<16_MiB>>;
}  // namespace lrcnn::unet
