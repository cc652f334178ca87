#pragma once
// U-Net for maps of classes, as it was published and as it is mostly used.
//
// Ronneberger, Fischer and Brox, "U-Net: convolutional networks for biomedical image segmentation" (arXiv 1505.04597).
// UNet is the variant that most implementations have: convolutions keep the extents (padding 1), and a batch norm follows each. Going up is
// the paper's 2x2 up-convolution to half as many channels, or an upsampling with a unit of 3x3 convolution, norm and ReLU behind it.
// Channels of the way down come first in each concatenation.
// UNet2015 is the paper's: convolutions lose a pixel on each side, there are no norms, and what comes from the way down is cropped to what
// comes from below.
// Layers are called down1.conv1, ..., bottom.conv1, ..., up1.conv1, merge1.conv1, ...; level 1 is that of the input's extents.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pad.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/resample.hpp>
#include <lrcnn/network/graph.hpp>
namespace lrcnn {
namespace detail {
template <Index channels, class Norm>
using UNetUnit = Sequential<Conv<channels, Window{.kernel = 3, .pad = 1}, ConvOptions{.bias = false}>, Norm, ReLU>;
template <Index channels, class Norm>
using UNetDouble = Sequential<UNetUnit<channels, Norm>, UNetUnit<channels, Norm>>;
}   // namespace detail
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
using UNetTrunk = UNetLevel<
    1, width,
    UNetLevel<2, 2 * width, UNetLevel<3, 4 * width, UNetLevel<4, 8 * width, Scope<"bottom", UNetDouble<16 * width, Norm>>, Up, Norm>, Up, Norm>, Up,
              Norm>,
    Up, Norm>;
}   // namespace detail
/// U-Net with four levels above the bottom.
/// Shapes:  x [N,C,H,W] -> y [N,classes,H,W]; the levels have width, 2, 4, 8 and 16 times width channels
/// Errors:  H and W must be multiples of 16, so that both branches of every concatenation have the same extents
template <Index classes, Index width = 64, class Up = UpConv, class Norm = BatchNorm>
using UNet = Sequential<detail::UNetTrunk<width, Up, Norm>, Named<"head", Conv<classes, Window{.kernel = 1}>>>;
namespace detail {
template <Index channels>
using ValidDouble = Sequential<Conv<channels, Window{.kernel = 3}>, ReLU, Conv<channels, Window{.kernel = 3}>, ReLU>;
/// Rows that a level and those below it lose, at its own extents: two convolutions down and two up, and twice what the level below loses.
constexpr Index unpadded_loss(Index levels_below) { return levels_below == 0 ? 4 : 8 + 2 * unpadded_loss(levels_below - 1); }
template <Index level, Index channels, Index below>
struct ValidLevel {
  using Inner = typename ValidLevel<level + 1, 2 * channels, below - 1>::type;
  using Up = Scope<numbered("up", level), UpConv::layers<channels, void>>;
  using type =
      Sequential<Scope<numbered("down", level), ValidDouble<channels>>, Concat<Crop<Pad{unpadded_loss(below - 1)}>, Sequential<MaxPool<>, Inner, Up>>,
                 Scope<numbered("merge", level), ValidDouble<channels>>>;
};
template <Index level, Index channels>
struct ValidLevel<level, channels, 0> {
  using type = Scope<"bottom", ValidDouble<channels>>;
};
}   // namespace detail
/// U-Net of 2015, without padding: 572 x 572 pixels give 388 x 388 with four levels above the bottom, that is 184 less.
/// Shapes:  x [N,C,H,W] -> y [N,classes,H-d,W-d], d = 4 (3 * 2^levels - 2); the levels have width, 2, 4, ... times width channels
/// Errors:  H and W must be such that every pool finds even extents, so that both branches of every concatenation have the same, and large
///          enough that something is left at the bottom
template <Index classes, Index width = 64, Index levels = 4>
struct UNet2015 {
  static_assert(levels >= 1, "lrcnn: a U-Net has no levels; above its bottom there is at least one; give a positive number");
  using Levels = typename detail::ValidLevel<1, width, levels>::type;
  using Content = typename Sequential<Levels, Named<"head", Conv<classes, Window{.kernel = 1}>>>::Content;
  static constexpr auto layers = Content::layers;
};
}   // namespace lrcnn
