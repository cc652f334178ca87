#pragma once
// U-Net for maps of classes.
//
// Ronneberger, Fischer and Brox, "U-Net: convolutional networks for biomedical image segmentation" (arXiv 1505.04597), in the
// variant that most implementations have: convolutions keep the extents (padding 1), and a batch norm follows each. Going up is
// the paper's 2x2 up-convolution to half as many channels, or an upsampling with a unit of 3x3 convolution, norm and ReLU behind it.
// Channels of the way down come first in each concatenation.
// Layers are called down1.conv1, ..., bottom.conv1, ..., up1.conv1, merge1.conv1, ...; level 1 is that of the input's extents.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/resample.hpp>
#include <lrcnn/network/graph.hpp>
namespace lrcnn {
namespace detail {
template <Index channels, class Norm>
using UNetUnit = Sequential<Conv<channels, Window{.kernel = 3, .pad = 1}, ConvOptions{.bias = false}>, Norm, ReLU>;
template <Index channels, class Norm>
using UNetDouble = Sequential<UNetUnit<channels, Norm>, UNetUnit<channels, Norm>>;
}  // namespace detail
/// Ways up, from a level to the one above it.
struct UpConv {
  template <Index channels, class>
  using layers = Named<"conv1", ConvTranspose<channels>>;
};
template <Upsampling::Rule rule = Upsampling::Rule::nearest>
struct UpsampleConv {
  template <Index channels, class Norm>
  using layers = Sequential<Upsample<Pair{2}, rule>, detail::UNetUnit<channels, Norm>>;
};
namespace detail {
/// A level and those below it: Inner works on maps of half the extents and has twice as many channels.
template <Index level, Index channels, class Inner, class Up, class Norm>
using UNetLevel =
    Sequential<Scope<numbered("down", level), UNetDouble<channels, Norm>>,
               Concat<Identity, Sequential<MaxPool<>, Inner, Scope<numbered("up", level), typename Up::template layers<channels, Norm>>>>,
               Scope<numbered("merge", level), UNetDouble<channels, Norm>>>;
template <Index width, class Up, class Norm>
using UNetTrunk =
    UNetLevel<1, width,
              UNetLevel<2, 2 * width,
                        UNetLevel<3, 4 * width, UNetLevel<4, 8 * width, Scope<"bottom", UNetDouble<16 * width, Norm>>, Up, Norm>, Up, Norm>,
                        Up, Norm>,
              Up, Norm>;
}  // namespace detail
/// U-Net with four levels above the bottom.
/// Shapes:  x [N,C,H,W] -> y [N,classes,H,W]; the levels have width, 2, 4, 8 and 16 times width channels
/// Errors:  H and W must be multiples of 16, so that both branches of every concatenation have the same extents
template <Index classes, Index width = 64, class Up = UpConv, class Norm = BatchNorm>
using UNet = Sequential<detail::UNetTrunk<width, Up, Norm>, Named<"head", Conv<classes, Window{.kernel = 1}>>>;
}  // namespace lrcnn
