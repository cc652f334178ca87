#pragma once
// MobileNetV2.
//
// Sandler et al., "MobileNetV2: Inverted residuals and linear bottlenecks" (arXiv 1801.04381), as torchvision has it, parameter for
// parameter and name for name: features.0.0, features.0.1, features.1.conv.0.0, ..., features.18.1, classifier.0 (a dropout), classifier.1.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/units.hpp>
namespace lrcnn {
namespace detail {
template <Index K, Index kernel, Index stride, Index groups, class Norm>
using ConvNormReLU6 = Sequential<Named<"0", PlainConv<K, kernel, stride, groups>>, Named<"1", Norm>, Named<"2", ReLU6>>;
/// 1x1 to `expansion` times as many channels, 3x3 on each of them, 1x1 to `out`.
struct InvertedBlock {
  Index in = 1, out = 1, stride = 1, expansion = 1;
};
template <InvertedBlock block, class Norm>
struct InvertedResidual {
  static constexpr Index hidden = block.in * block.expansion;
  template <Name depthwise, Name conv, Name norm>
  using Tail =
      Sequential<Scope<depthwise, ConvNormReLU6<hidden, 3, block.stride, hidden, Norm>>, Named<conv, PlainConv<block.out, 1>>, Named<norm, Norm>>;
  using Wide = Sequential<Scope<"0", ConvNormReLU6<hidden, 1, 1, 1, Norm>>, Tail<"1", "2", "3">>;
  using Body = Scope<"conv", std::conditional_t<block.expansion == 1, Tail<"0", "1", "2">, Wide>>;
  using type = std::conditional_t<block.stride == 1 && block.in == block.out, Residual<Body>, Body>;
};
/// Table 2 of the paper: expansion, channels, repetitions, stride of the first.
constexpr std::array<InvertedBlock, 17> inverted_blocks() {
  constexpr std::array<std::array<Index, 4>, 7> rows{
      {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};
  std::array<InvertedBlock, 17> blocks{};
  Index channels = 32;
  std::size_t at = 0;
  for (const auto& [expansion, out, count, stride] : rows)
    for (Index i = 0; i < count; ++i, channels = out) blocks[at++] = {channels, out, i == 0 ? stride : 1, expansion};
  return blocks;
}
template <class Norm, class Indices = std::make_index_sequence<17>>
struct MobileNetBlocks;
template <class Norm, std::size_t... I>
struct MobileNetBlocks<Norm, std::index_sequence<I...>> {
  using type = Sequential<Scope<ordinal_name(I + 1), typename InvertedResidual<inverted_blocks()[I], Norm>::type>...>;
};
template <class Norm>
using MobileNetV2Trunk = Scope<"features", Sequential<Scope<"0", ConvNormReLU6<32, 3, 2, 1, Norm>>, typename MobileNetBlocks<Norm>::type,
                                                      Scope<"18", ConvNormReLU6<1280, 1, 1, 1, Norm>>>>;
}   // namespace detail
/// Shapes:  x [N,3,H,W] -> y [N,classes,1,1]
/// Norm: that of all layers, a descriptor. P: probability of the dropout before the last layer; with std::ratio<0> there is none.
template <Index classes = 1000, class Norm = BatchNorm, class P = std::ratio<1, 5>>
using MobileNetV2 = Sequential<detail::MobileNetV2Trunk<Norm>, GlobalAvgPool, detail::UnlessZero<P, Named<"classifier.0", Dropout<P>>>,
                               Named<"classifier.1", Linear<classes>>>;
}   // namespace lrcnn
