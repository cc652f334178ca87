#pragma once
// Residual networks.
//
// He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (arXiv 1512.03385), with the strides of bottlenecks in
// their 3x3 convolutions ("v1.5"), as torchvision has them, parameter for parameter and name for name: conv1, bn1,
// layer1.0.conv1, layer1.0.bn1, layer2.0.downsample.0, layer2.0.downsample.1, fc. (The parameters of a network lie in the order
// in which its layers are executed: those of layer2.0.downsample.0 come behind layer2.0.conv1, and those of layer1.0.downsample.0, which does not
// make its input smaller, behind layer1.0.conv3.)
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/units.hpp>
namespace lrcnn {
namespace detail {
/// Two 3x3 convolutions.
struct BasicBlock {
  static constexpr Index expansion = 1;
  template <Index width, Index stride, class Norm, class LastNorm>
  using Body =
      Sequential<Named<"conv1", PlainConv<width, 3, stride>>, Named<"bn1", Norm>, ReLU, Named<"conv2", PlainConv<width, 3>>, Named<"bn2", LastNorm>>;
};
/// 1x1 to fewer channels, 3x3, 1x1 to four times as many.
struct Bottleneck {
  static constexpr Index expansion = 4;
  template <Index width, Index stride, class Norm, class LastNorm>
  using Body = Sequential<Named<"conv1", PlainConv<width, 1>>, Named<"bn1", Norm>, ReLU, Named<"conv2", PlainConv<width, 3, stride>>,
                          Named<"bn2", Norm>, ReLU, Named<"conv3", PlainConv<4 * width, 1>>, Named<"bn3", LastNorm>>;
};
template <Index channels, Index stride, class Norm>
using Projection = Scope<"downsample", Sequential<Named<"0", PlainConv<channels, 1, stride>>, Named<"1", Norm>>>;
/// `count` blocks, the first of which may have strides and a projection.
template <class Block, Index width, Index stride, bool projects, class Norm, class LastNorm, class Indices>
struct ResNetStage;
template <class Block, Index width, Index stride, bool projects, class Norm, class LastNorm, std::size_t... I>
struct ResNetStage<Block, width, stride, projects, Norm, LastNorm, std::index_sequence<0, I...>> {
  template <Index s>
  using Body = typename Block::template Body<width, s, Norm, LastNorm>;
  using Shortcut = std::conditional_t<projects, Projection<Block::expansion * width, stride, Norm>, Identity>;
  using First = Sequential<Residual<Body<stride>, Shortcut>, ReLU>;
  using Other = Sequential<Residual<Body<1>>, ReLU>;
  using type = Sequential<Scope<"0", First>, Scope<ordinal_name(I), Other>...>;
};
template <class Block, Index width, Index stride, std::size_t count, class Norm, class LastNorm>
using ResNetStageOf =
    typename ResNetStage<Block, width, stride, (stride > 1 || Block::expansion > 1), Norm, LastNorm, std::make_index_sequence<count>>::type;
template <class Block, std::size_t a, std::size_t b, std::size_t c, std::size_t d, class Norm, class LastNorm>
using ResNetTrunk =
    Sequential<Named<"conv1", PlainConv<64, 7, 2>>, Named<"bn1", Norm>, ReLU, MaxPool<Window{.kernel = 3, .stride = 2, .pad = 1}>,
               Scope<"layer1", ResNetStageOf<Block, 64, 1, a, Norm, LastNorm>>, Scope<"layer2", ResNetStageOf<Block, 128, 2, b, Norm, LastNorm>>,
               Scope<"layer3", ResNetStageOf<Block, 256, 2, c, Norm, LastNorm>>, Scope<"layer4", ResNetStageOf<Block, 512, 2, d, Norm, LastNorm>>>;
template <class Block, std::size_t a, std::size_t b, std::size_t c, std::size_t d, Index classes, class Norm, class LastNorm>
using ResNetOf = Sequential<ResNetTrunk<Block, a, b, c, d, Norm, LastNorm>, GlobalAvgPool, Named<"fc", Linear<classes>>>;
}   // namespace detail
/// Norm: that of all layers, a descriptor. LastNorm: that which ends each block's body; ZeroBatchNorm lets blocks begin as identities.
template <Index classes = 1000, class Norm = BatchNorm, class LastNorm = Norm>
using ResNet18 = detail::ResNetOf<detail::BasicBlock, 2, 2, 2, 2, classes, Norm, LastNorm>;
template <Index classes = 1000, class Norm = BatchNorm, class LastNorm = Norm>
using ResNet34 = detail::ResNetOf<detail::BasicBlock, 3, 4, 6, 3, classes, Norm, LastNorm>;
template <Index classes = 1000, class Norm = BatchNorm, class LastNorm = Norm>
using ResNet50 = detail::ResNetOf<detail::Bottleneck, 3, 4, 6, 3, classes, Norm, LastNorm>;
template <Index classes = 1000, class Norm = BatchNorm, class LastNorm = Norm>
using ResNet101 = detail::ResNetOf<detail::Bottleneck, 3, 4, 23, 3, classes, Norm, LastNorm>;
template <Index classes = 1000, class Norm = BatchNorm, class LastNorm = Norm>
using ResNet152 = detail::ResNetOf<detail::Bottleneck, 3, 8, 36, 3, classes, Norm, LastNorm>;
}   // namespace lrcnn
