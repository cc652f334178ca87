#pragma once
// Densely connected networks.
//
// Huang et al., "Densely connected convolutional networks" (arXiv 1608.06993), as torchvision has them, parameter for parameter and name
// for name: features.conv0, features.norm0, features.denseblock1.denselayer1.norm1, ..., features.transition1.conv, features.norm5,
// classifier. (The parameters of a network lie in the order in which its layers are executed.)
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/units.hpp>
namespace lrcnn {
namespace detail {
/// `growth` channels more: norm, 1x1 to four times as many, norm, 3x3.
template <Index growth, class Norm>
using DenseLayer = Sequential<Named<"norm1", Norm>, Named<"relu1", ReLU>, Named<"conv1", PlainConv<4 * growth, 1>>, Named<"norm2", Norm>,
                              Named<"relu2", ReLU>, Named<"conv2", PlainConv<growth, 3>>>;
template <Index growth, class Norm, class Indices>
struct DenseBlock;
template <Index growth, class Norm, std::size_t... I>
struct DenseBlock<growth, Norm, std::index_sequence<I...>> {
  using type = Sequential<Concat<Identity, Scope<ordinal_name(I + 1, "denselayer"), DenseLayer<growth, Norm>>>...>;
};
template <std::size_t number, Index growth, std::size_t layers, class Norm>
using DenseBlockOf = Scope<ordinal_name(number, "denseblock"), typename DenseBlock<growth, Norm, std::make_index_sequence<layers>>::type>;
/// Half as many channels, on maps of half the extents.
template <std::size_t number, Index channels, class Norm>
using DenseTransition = Scope<ordinal_name(number, "transition"),
                              Sequential<Named<"norm", Norm>, Named<"relu", ReLU>, Named<"conv", PlainConv<channels, 1>>, Named<"pool", AvgPool<>>>>;
template <Index first, Index growth, std::size_t a, std::size_t b, std::size_t c, std::size_t d, class Norm>
struct DenseNetTrunk {
  static constexpr Index grown(Index channels, std::size_t layers) { return (channels + growth * static_cast<Index>(layers)) / 2; }
  static constexpr Index second = grown(first, a), third = grown(second, b), fourth = grown(third, c);
  using type = Scope<"features", Sequential<Named<"conv0", PlainConv<first, 7, 2>>, Named<"norm0", Norm>, Named<"relu0", ReLU>,
                                            Named<"pool0", MaxPool<Window{.kernel = 3, .stride = 2, .pad = 1}>>, DenseBlockOf<1, growth, a, Norm>,
                                            DenseTransition<1, second, Norm>, DenseBlockOf<2, growth, b, Norm>, DenseTransition<2, third, Norm>,
                                            DenseBlockOf<3, growth, c, Norm>, DenseTransition<3, fourth, Norm>, DenseBlockOf<4, growth, d, Norm>,
                                            Named<"norm5", Norm>, ReLU>>;
};
template <Index first, Index growth, std::size_t a, std::size_t b, std::size_t c, std::size_t d, Index classes, class Norm>
using DenseNetOf = Sequential<typename DenseNetTrunk<first, growth, a, b, c, d, Norm>::type, GlobalAvgPool, Named<"classifier", Linear<classes>>>;
}   // namespace detail
/// Shapes:  x [N,C,H,W] -> y [N,classes,1,1]. Norm: that of all layers, a descriptor.
template <Index classes = 1000, class Norm = BatchNorm>
using DenseNet121 = detail::DenseNetOf<64, 32, 6, 12, 24, 16, classes, Norm>;
template <Index classes = 1000, class Norm = BatchNorm>
using DenseNet161 = detail::DenseNetOf<96, 48, 6, 12, 36, 24, classes, Norm>;
template <Index classes = 1000, class Norm = BatchNorm>
using DenseNet169 = detail::DenseNetOf<64, 32, 6, 12, 32, 32, classes, Norm>;
template <Index classes = 1000, class Norm = BatchNorm>
using DenseNet201 = detail::DenseNetOf<64, 32, 6, 12, 48, 32, classes, Norm>;
}   // namespace lrcnn
