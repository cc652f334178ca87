#pragma once
// VGG trunks with a global-average-pool head, or with their own.
//
// The convolutional trunks of Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
// recognition" (arXiv 1409.1556), configurations A, B, D and E, closed by global average pooling and one linear layer.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/dropout.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
namespace lrcnn {
namespace detail {
/// `convs` times convolution and ReLU, then a pool.
template <Index channels, std::size_t convs, class Indices = std::make_index_sequence<convs>>
struct VggBlock;
template <Index channels, std::size_t convs, std::size_t... I>
struct VggBlock<channels, convs, std::index_sequence<I...>> {
  template <std::size_t>
  using Unit = Sequential<Conv<channels>, ReLU>;
  using type = Sequential<Unit<I>..., MaxPool<>>;
};
}   // namespace detail
/// Five blocks of a, b, c, d, e convolutions with 64, 128, 256, 512, 512 channels.
template <std::size_t a, std::size_t b, std::size_t c, std::size_t d, std::size_t e>
using VggTrunk = Sequential<typename detail::VggBlock<64, a>::type, typename detail::VggBlock<128, b>::type, typename detail::VggBlock<256, c>::type,
                            typename detail::VggBlock<512, d>::type, typename detail::VggBlock<512, e>::type>;
/// The head that the networks were published with, behind a pool to 7 x 7: Sequential<VggTrunk<2, 2, 3, 3, 3>, VggHead<>> is VGG-16 with
/// its 138357544 parameters. Linear layers are called classifier.0, classifier.3 and classifier.6, as torchvision's.
/// The first two ReLUs are followed by dropout, as torchvision's; `VggHead<10, 4096, std::ratio<0>>` drops nothing. width: outputs of the
/// hidden linear layers.
template <Index classes = 1000, Index width = 4096, class P = std::ratio<1, 2>>
using VggHead = Sequential<AdaptiveAvgPool<7>, Flatten, Named<"classifier.0", Linear<width>>, ReLU, Named<"classifier.2", Dropout<P>>,
                           Named<"classifier.3", Linear<width>>, ReLU, Named<"classifier.5", Dropout<P>>, Named<"classifier.6", Linear<classes>>>;
template <Index classes = 1000>
using Vgg11 = Sequential<VggTrunk<1, 1, 2, 2, 2>, GlobalAvgPool, Linear<classes>>;
template <Index classes = 1000>
using Vgg13 = Sequential<VggTrunk<2, 2, 2, 2, 2>, GlobalAvgPool, Linear<classes>>;
template <Index classes = 1000>
using Vgg16 = Sequential<VggTrunk<2, 2, 3, 3, 3>, GlobalAvgPool, Linear<classes>>;
template <Index classes = 1000>
using Vgg19 = Sequential<VggTrunk<2, 2, 4, 4, 4>, GlobalAvgPool, Linear<classes>>;
}   // namespace lrcnn
