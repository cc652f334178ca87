#pragma once
// Seeded random networks of residual blocks whose bodies end in norms, for tests of what becomes of a sum's gradient.
#include "support/random_network.hpp"
namespace lrcnn::testing {
/// A convolution and a norm, then blocks of one to three convolutions with a norm behind each. A block's sum has the skip connection as its first
/// or second input, sometimes from a norm, and an activation behind it or none. A block may halve rows and columns, by a convolution with strides
/// in its body and in its shortcut. Some skip connections reach over two blocks, some blocks are followed by a convolution.
inline RandomNetwork random_blocks(Dice& dice) {
  RandomNetwork net;
  net.input = {dice.upto(1, 3), dice.upto(1, 3), dice.upto(8, 30), dice.upto(3, 6)};
  const Index width = dice.upto(2, 4);
  std::vector<Layer>& list = net.layers;
  const auto add = [&](Layer layer) { return list.push_back(layer), static_cast<Index>(list.size()); };   // the number of the tensor that it writes
  const auto conv = [&](Index channels, Index stride = 1) {
    const Index kernel = dice.pick<Index>({1, 3});
    const Window window{.kernel = kernel, .stride = stride, .pad = kernel / 2};
    return add({.kind = Kind::conv, .window = window, .channels = channels, .bias = dice.chance(0.2)});
  };
  const auto norm = [&] {
    Layer layer{.kind = Kind::norm};
    layer.norm.over = dice.pick({Norm::Over::batch, Norm::Over::batch, Norm::Over::group});
    layer.norm.frozen = layer.norm.over == Norm::Over::batch && dice.chance(0.1);
    return add(layer);
  };
  const auto activation = [&] {
    Layer layer;
    layer.activation.function = dice.pick({Function::relu, Function::relu, Function::leaky_relu, Function::silu, Function::sigmoid});
    if (layer.activation.function == Function::leaky_relu) layer.activation.slope = dice.chance(0.5) ? 0.125 : -0.25;
    return add(layer);
  };
  conv(width);
  if (dice.chance(0.8)) norm(), activation();
  Index earlier = 0;   // a tensor that a later block may read, too
  bool halved = false;
  for (Index blocks = dice.upto(1, 4); blocks > 0; --blocks) {
    Index skip = static_cast<Index>(list.size());
    const Index stride = !halved && dice.chance(0.25) ? 2 : 1;
    const Index convs = dice.upto(1, 3), strided = dice.upto(1, convs);
    for (Index c = 1; c <= convs; ++c) {
      conv(c == convs ? width : dice.upto(1, 4), c == strided ? stride : 1), norm();
      if (c < convs) activation();
    }
    Index body = static_cast<Index>(list.size());
    if (stride > 1 || dice.chance(0.25)) {   // from a norm
      Layer shortcut{.kind = Kind::conv, .window = {.kernel = 1, .stride = stride}, .channels = width};
      shortcut.input = body + 1 - skip;
      add(shortcut), skip = norm();
      if (stride > 1) halved = true, earlier = 0;
    } else if (earlier > 0 && dice.chance(0.1)) {
      skip = earlier;
    }
    if (dice.chance(0.3)) std::swap(skip, body);
    const Index here = static_cast<Index>(list.size()) + 1;
    Index out = add({.kind = Kind::sum, .input = here - body, .other = here - skip});
    if (dice.chance(0.8)) out = activation();
    if (dice.chance(0.3)) earlier = out;
    else if (dice.chance(0.4)) conv(width), activation();   // they alone read the block's output
  }
  if (dice.chance(0.9)) add({.kind = Kind::global_avg_pool}), add({.kind = Kind::linear, .channels = 3, .bias = true});
  return net;
}
/// A policy for it: random_policy() with checkpoints behind blocks, and with one extra pass more often than not.
inline PolicySpec random_blocks_policy(Dice& dice, const RandomNetwork& net) {
  PolicySpec policy = random_policy(dice, net);
  if (dice.chance(0.8)) policy.checkpoints = {.rule = Checkpoints::Rule::sums, .every = dice.upto(1, 2)};
  if (dice.chance(0.8)) policy.images = 0;   // a batch norm refuses groups
  for (Index i = 0; i < policy.partition_count; ++i) {
    Partition& p = item(policy.partitions, i);
    if (p.cut == Cut::share || dice.chance(0.4)) continue;
    p.passes = dice.pick({NormPasses::one, NormPasses::one, NormPasses::all});
    p.forward_passes = dice.chance(0.4);
  }
  if (dice.chance(0.6)) policy.gradients_in_place = true;
  return policy;
}
}   // namespace lrcnn::testing
