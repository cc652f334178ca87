#pragma once
// Networks whose ReLUs, joins and poolings lie beside batch norms, or beside convolutions with biases, and policies for them.
#include <lrcnn/lrcnn.hpp>
#include <vector>
namespace lrcnn::testing {
/// Norms before ReLUs, in blocks whose joins end in ReLUs or not, of widths that are multiples of eight or not; one norm's output is read twice.
template <Index wide, Index narrow>
using Normed = Sequential<Conv<wide>, BatchNorm, ReLU, MaxPool<>, Residual<Sequential<Conv<narrow>, BatchNorm, ReLU, Conv<wide>, BatchNorm>>, ReLU,
                          Residual<Sequential<Conv<narrow>, BatchNorm, ReLU, Conv<wide>, BatchNorm>>, Conv<wide>, BatchNorm,
                          Residual<Sequential<ReLU, Conv<wide>>>, ReLU, Conv<narrow, Window{.kernel = 3, .stride = 2, .pad = 1}>, BatchNorm,
                          LeakyReLU<>, GlobalAvgPool, Linear<10>>;
/// Convolutions with biases before ReLUs and poolings, whose windows lie side by side or overlap, of widths that are multiples of eight or not.
template <Index wide, Index narrow>
using Biased = Sequential<Conv<wide>, ReLU, Conv<narrow>, ReLU, MaxPool<>, Conv<wide>, ReLU, Conv<wide>, ReLU, MaxPool<>, Conv<narrow>, ReLU,
                          MaxPool<Window{.kernel = 3, .stride = 2}>, Residual<Sequential<Conv<wide>, ReLU, Conv<narrow>>>, ReLU, Flatten, Linear<16>,
                          ReLU, Linear<10>>;
inline const std::vector<PolicySpec> policies_along{
    Policy<Column, Workspace<1_MiB>>::value, Policy<Overlap<3>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>>::value,
    Policy<Share<4>, CheckpointEvery<3>, RecomputeAll, Workspace<1_MiB>>::value,
    Policy<Share<2>, CheckpointEvery<3>, RecomputeCheap, Workspace<1_MiB>>::value,
    Policy<Column, CheckpointEvery<2>, RecomputeAll, Workspace<1_MiB>>::value,
    Policy<Column, Workspace<8_MiB>>::value,                     // where sums behind joins have their results in the workspace
    Policy<Column, GradientsInPlace, Workspace<8_MiB>>::value,   // where sums have one gradient for both of their inputs
    Policy<Column, CheckpointEvery<8>, RecomputeAll, GradientsInPlace, Workspace<8_MiB>>::value,
    Policy<OneExtraPass<Overlap<3>>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace, Workspace<8_MiB>>::value,   // over the output's gradient
    Policy<OneExtraPassBothWays<>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace, Workspace<8_MiB>>::value,
    Policy<Overlap<3>, CheckpointEvery<5>, RecomputeAll, Workspace<8_MiB>>::value,
    Policy<ByImages<2, Column>, CheckpointEvery<5>, RecomputeAll, Workspace<8_MiB>>::value,
    // Sections have workspaces of their own.
    Policy<Stages<Section<Overlap<2>, RecomputeAll, Workspace<524288>>, Section<ByImages<1, Column>, RecomputeAll, Workspace<262144>>,
                  Section<ByImages<1, Column>, KeepAll, Workspace<524288>>>,
           CheckpointEvery<3>>::value,
    Policy<Overlap<3>, CheckpointEvery<4>, KeepAll, Workspace<1_MiB>, Streams<2>>::value,
    Policy<OffloadInput<Overlap<3>>, CheckpointEvery<3>, RecomputeAll, Workspace<1_MiB>>::value,
    Policy<OffloadInput<Overlap<3>>, CheckpointEvery<4>, RecomputeAll, Workspace<1_MiB>, Streams<2>, Prefetch>::value};
}   // namespace lrcnn::testing
