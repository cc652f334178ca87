#pragma once
// Squeeze-and-excitation: channels weighed by what is in them.
//
// Hu, Shen and Sun, "Squeeze-and-excitation networks" (arXiv 1709.01507), as torchvision has it, with its names: fc1.weight, fc1.bias,
// fc2.weight, fc2.bias.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
namespace lrcnn {
/// x times Gate(fc2(Activation(fc1(mean of x over rows and columns)))): fc1 gives channels / reduction, fc2 channels again.
/// Shapes:  x [N,channels,H,W] -> y [N,channels,H,W]
/// Errors:  the map must have so many channels; reduction must divide them
/// The pooling needs all rows of x, so a stage ends there, and x is kept in full height for the product.
template <Index channels, Index reduction = 16, class Activation = ReLU, class Gate = Sigmoid>
struct SqueezeExcitation {
  static_assert(channels > 0 && reduction > 0 && channels % reduction == 0,
                "lrcnn: the channels of a squeeze-and-excitation are not divisible by its reduction; they are squeezed into channels / "
                "reduction; change one of the two");
  using Weights = Sequential<GlobalAvgPool, Named<"fc1", Conv<channels / reduction, Window{.kernel = 1}>>, Activation,
                             Named<"fc2", Conv<channels, Window{.kernel = 1}>>, Gate>;
  using Content = typename Scale<Identity, Weights>::Content;
  static constexpr auto layers = Content::layers;
};
}   // namespace lrcnn
