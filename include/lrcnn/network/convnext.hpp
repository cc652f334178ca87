#pragma once
// ConvNeXt.
//
// Liu et al., "A ConvNet for the 2020s" (arXiv 2201.03545), as torchvision has it, parameter for parameter and name for name:
// features.0.0, features.1.0.block.0, features.1.0.block.2, features.1.0.block.3, features.1.0.block.5, features.1.0.layer_scale,
// features.2.0, ..., classifier.0, classifier.2. What torchvision has as linear layers over channels are 1x1 convolutions here, whose
// filters have the same elements in the same order. No layer but the last pooling needs all rows of a map.
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
using ConvNeXtBody = Sequential<Named<"0", Conv<channels, Window{.kernel = 7, .pad = 3}, ConvOptions{.groups = channels}>>,
                                Named<"2", ConvNeXtNorm>, Named<"3", Conv<4 * channels, Window{.kernel = 1}>>, Named<"4", GELU>,
                                Named<"5", Conv<channels, Window{.kernel = 1}>>>;
template <std::size_t i, Index channels>
struct ConvNeXtBlock {
  static constexpr Name number = ordinal_name(i);
  using type = Residual<Sequential<Scope<number, Scope<"block", ConvNeXtBody<channels>>>, Named<number, LayerScale<>>>>;
};
template <Index channels, class Indices>
struct ConvNeXtStage;
template <Index channels, std::size_t... I>
struct ConvNeXtStage<channels, std::index_sequence<I...>> {
  using type = Sequential<typename ConvNeXtBlock<I, channels>::type...>;
};
template <Index channels, std::size_t blocks>
using ConvNeXtStageOf = typename ConvNeXtStage<channels, std::make_index_sequence<blocks>>::type;
template <Index channels>
using ConvNeXtDown = Sequential<Named<"0", ConvNeXtNorm>, Named<"1", Conv<channels, Window{.kernel = 2, .stride = 2}>>>;
template <Index width, std::size_t a, std::size_t b, std::size_t c, std::size_t d>
using ConvNeXtTrunk =
    Scope<"features",
          Sequential<Scope<"0", Sequential<Named<"0", Conv<width, Window{.kernel = 4, .stride = 4}>>, Named<"1", ConvNeXtNorm>>>,
                     Scope<"1", ConvNeXtStageOf<width, a>>, Scope<"2", ConvNeXtDown<2 * width>>, Scope<"3", ConvNeXtStageOf<2 * width, b>>,
                     Scope<"4", ConvNeXtDown<4 * width>>, Scope<"5", ConvNeXtStageOf<4 * width, c>>, Scope<"6", ConvNeXtDown<8 * width>>,
                     Scope<"7", ConvNeXtStageOf<8 * width, d>>>>;
template <Index width, std::size_t a, std::size_t b, std::size_t c, std::size_t d, Index classes>
using ConvNeXtOf = Sequential<ConvNeXtTrunk<width, a, b, c, d>, GlobalAvgPool,
                              Scope<"classifier", Sequential<Named<"0", ConvNeXtNorm>, Named<"2", Linear<classes>>>>>;
}  // namespace detail
/// Shapes:  x [N,C,H,W] -> y [N,classes,1,1]
/// Stochastic depth, by which torchvision leaves out bodies of blocks at random in training, is itself left out: its rate is 0 here.
template <Index classes = 1000>
using ConvNeXtTiny = detail::ConvNeXtOf<96, 3, 3, 9, 3, classes>;
template <Index classes = 1000>
using ConvNeXtSmall = detail::ConvNeXtOf<96, 3, 3, 27, 3, classes>;
template <Index classes = 1000>
using ConvNeXtBase = detail::ConvNeXtOf<128, 3, 3, 27, 3, classes>;
template <Index classes = 1000>
using ConvNeXtLarge = detail::ConvNeXtOf<192, 3, 3, 27, 3, classes>;
}  // namespace lrcnn
