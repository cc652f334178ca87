#pragma once
// ConvNeXt.
//
// Liu et al., "A ConvNet for the 2020s" (arXiv 2201.03545), as torchvision has it, parameter for parameter and name for name:
// features.0.0, features.1.0.block.0, features.1.0.block.2, features.1.0.block.3, features.1.0.block.5, features.1.0.layer_scale,
// features.2.0, ..., classifier.0, classifier.2; with its stochastic depth, features.1.1.stochastic_depth, ... What torchvision has as linear
// layers over channels are 1x1 convolutions here, whose filters have the same elements in the same order. No layer but the last pooling
// needs all rows of a map.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/channels.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/units.hpp>
namespace lrcnn {
namespace detail {
using ConvNeXtNorm = LayerNormWith<NormOptions{}, std::ratio<1, 1000000>>;
/// 7x7 on each channel, norm, 1x1 to four times as many channels and back.
template <Index channels>
using ConvNeXtBody =
    Sequential<Named<"0", Conv<channels, Window{.kernel = 7, .pad = 3}, ConvOptions{.groups = channels}>>, Named<"2", ConvNeXtNorm>,
               Named<"3", Conv<4 * channels, Window{.kernel = 1}>>, Named<"4", GELU>, Named<"5", Conv<channels, Window{.kernel = 1}>>>;
/// P: probability with which an image goes past the block's body.
template <std::size_t i, Index channels, class P>
struct ConvNeXtBlock {
  static constexpr Name number = ordinal_name(i);
  using Depth = UnlessZero<P, Scope<number, Named<"stochastic_depth", StochasticDepth<P>>>>;
  using type = Residual<Sequential<Scope<number, Scope<"block", ConvNeXtBody<channels>>>, Named<number, LayerScale<>>, Depth>>;
};
/// The part of P that block `i` of a network has, if the first has none and the last has P.
template <class P, std::size_t i, std::size_t blocks>
using RisenTo = std::ratio<P::num* static_cast<std::intmax_t>(i), P::den* static_cast<std::intmax_t>(blocks - 1)>;
/// Blocks first, first + 1, ... of a network of `all`.
template <Index channels, class P, std::size_t first, std::size_t all, class Indices>
struct ConvNeXtStage;
template <Index channels, class P, std::size_t first, std::size_t all, std::size_t... I>
struct ConvNeXtStage<channels, P, first, all, std::index_sequence<I...>> {
  using type = Sequential<typename ConvNeXtBlock<I, channels, RisenTo<P, first + I, all>>::type...>;
};
template <Index channels, class P, std::size_t first, std::size_t blocks, std::size_t all>
using ConvNeXtStageOf = typename ConvNeXtStage<channels, P, first, all, std::make_index_sequence<blocks>>::type;
template <Index channels>
using ConvNeXtDown = Sequential<Named<"0", ConvNeXtNorm>, Named<"1", Conv<channels, Window{.kernel = 2, .stride = 2}>>>;
/// Stages of 3, 3, `third` and 3 blocks.
template <Index width, std::size_t third, class P>
using ConvNeXtTrunk =
    Scope<"features", Sequential<Scope<"0", Sequential<Named<"0", Conv<width, Window{.kernel = 4, .stride = 4}>>, Named<"1", ConvNeXtNorm>>>,
                                 Scope<"1", ConvNeXtStageOf<width, P, 0, 3, 9 + third>>, Scope<"2", ConvNeXtDown<2 * width>>,
                                 Scope<"3", ConvNeXtStageOf<2 * width, P, 3, 3, 9 + third>>, Scope<"4", ConvNeXtDown<4 * width>>,
                                 Scope<"5", ConvNeXtStageOf<4 * width, P, 6, third, 9 + third>>, Scope<"6", ConvNeXtDown<8 * width>>,
                                 Scope<"7", ConvNeXtStageOf<8 * width, P, 6 + third, 3, 9 + third>>>>;
}   // namespace detail
/// A ConvNeXt of any size: stages of 3, 3, `third` and 3 blocks on `width`, 2 * `width`, 4 * `width` and 8 * `width` channels.
/// Shapes:  x [N,C,H,W] -> y [N,classes,1,1]
/// P: stochastic depth. In training an image goes past the body of the last block with this probability, past those before it with one that
/// rises linearly from 0; blocks with probability 0, with std::ratio<0> all of them, have no such layer.
template <Index width, std::size_t third, Index classes = 1000, class P = std::ratio<1, 10>>
using ConvNeXt = Sequential<detail::ConvNeXtTrunk<width, third, P>, GlobalAvgPool,
                            Scope<"classifier", Sequential<Named<"0", detail::ConvNeXtNorm>, Named<"2", Linear<classes>>>>>;
/// The sizes of the paper.
template <Index classes = 1000, class P = std::ratio<1, 10>>
using ConvNeXtTiny = ConvNeXt<96, 9, classes, P>;
template <Index classes = 1000, class P = std::ratio<2, 5>>
using ConvNeXtSmall = ConvNeXt<96, 27, classes, P>;
template <Index classes = 1000, class P = std::ratio<1, 2>>
using ConvNeXtBase = ConvNeXt<128, 27, classes, P>;
template <Index classes = 1000, class P = std::ratio<1, 2>>
using ConvNeXtLarge = ConvNeXt<192, 27, classes, P>;
}   // namespace lrcnn
