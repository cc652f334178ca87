#pragma once
// A small network for small images.
#include <lrcnn/network/vgg.hpp>
namespace lrcnn {
/// Two convolutions with pools and a hidden linear layer, after LeNet-5 (LeCun et al., 1998) with ReLU and max pooling.
/// For maps of at least 4 x 4.
template <Index classes = 10>
using LeNet = Sequential<Conv<16, Window{.kernel = 5, .pad = 2}>, ReLU, MaxPool<>, Conv<32, Window{.kernel = 5, .pad = 2}>, ReLU,
                         MaxPool<>, Flatten, Linear<128>, ReLU, Linear<classes>>;
/// Six 3x3 convolutions in three blocks and a global average pool: for images of 28 to 64 pixels.
template <Index classes = 10>
using SmallNet = Sequential<Conv<32>, ReLU, Conv<32>, ReLU, MaxPool<>, Conv<64>, ReLU, Conv<64>, ReLU, MaxPool<>, Conv<128>, ReLU,
                            Conv<128>, ReLU, GlobalAvgPool, Linear<classes>>;
}  // namespace lrcnn
