#pragma once
// A small network for small images.
#include <lrcnn/network/vgg.hpp>
namespace lrcnn {
/// Two convolutions with pools and a hidden linear layer, after LeNet-5 (LeCun et al., 1998) with ReLU and max pooling.
/// For maps of at least 4 x 4.
template <Index classes = 10>
using LeNet = Sequential<Conv<16, Window{.kernel = 5, .pad = 2}>, ReLU, MaxPool<>, Conv<32, Window{.kernel = 5, .pad = 2}>, ReLU, MaxPool<>, Flatten,
                         Linear<128>, ReLU, Linear<classes>>;
/// Six 3x3 convolutions of `width`, twice and four times as many channels in three blocks, and a global average pool: for
/// images of 28 to 64 pixels. Width 16 learns Fashion-MNIST in two minutes (docs/benchmarks.md).
template <Index classes = 10, Index width = 32>
using SmallNet = Sequential<Conv<width>, ReLU, Conv<width>, ReLU, MaxPool<>, Conv<2 * width>, ReLU, Conv<2 * width>, ReLU, MaxPool<>, Conv<4 * width>,
                            ReLU, Conv<4 * width>, ReLU, GlobalAvgPool, Linear<classes>>;
}   // namespace lrcnn
