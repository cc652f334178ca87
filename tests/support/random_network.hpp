#pragma once
// Seeded random networks and policies, as run-time tables, for tests of laws.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <string>
#include <vector>
namespace lrcnn::testing {
/// Draws from one stream, in order.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  Index upto(Index low, Index high) {   // inclusive
    return low + static_cast<Index>(random_.below(next_++, static_cast<std::uint64_t>(high - low + 1)));
  }
  bool chance(double p) { return random_.uniform(next_++) < p; }
  template <class T>
  T pick(std::initializer_list<T> items) {
    return items.begin()[upto(0, static_cast<Index>(items.size()) - 1)];
  }
 private:
  Random random_;
  std::uint64_t next_ = 0;
};
struct RandomNetwork {
  Input input;
  std::vector<Layer> layers;
};
/// Extra kinds of layers that a test wants mixed in.
using ExtraLayers = std::vector<Layer>;
/// A chain of convolutions, activations and pools (kernels 1-7, even kernels, strides up to beyond the kernel, dilation,
/// groups, asymmetric padding, overlapping pools), closed by global pooling or flatten and linear layers.
inline RandomNetwork random_network(Dice& dice, Index max_layers = 9, const ExtraLayers& extra = {}) {
  for (;;) {
    RandomNetwork net;
    net.input = {dice.upto(1, 4), dice.upto(1, 5), dice.upto(1, 40), dice.upto(1, 9)};
    Shape shape = net.input;
    const Index wanted = dice.upto(1, max_layers);
    for (Index tries = 0; static_cast<Index>(net.layers.size()) < wanted && tries < 60; ++tries) {
      Layer layer;
      const Index what = dice.upto(0, extra.empty() ? 9 : 11);
      const auto axis_pad = [&](Index kernel) { return dice.upto(0, std::max<Index>(0, kernel - 1)); };
      if (what <= 3) {
        layer.kind = Kind::conv;
        const Index kh = dice.upto(1, dice.chance(0.3) ? 7 : 3), kw = dice.upto(1, 3);
        layer.window = {.kernel = {kh, kw},
                        .stride = {dice.chance(0.65) ? 1 : dice.upto(1, 4), dice.upto(1, 2)},
                        .pad = {dice.upto(0, kh), dice.upto(0, kh), axis_pad(kw), axis_pad(kw)},
                        .dilation = {dice.chance(0.75) ? 1 : dice.upto(2, 3), dice.chance(0.8) ? 1 : 2}};
        layer.groups = dice.chance(0.7) ? 1 : (dice.chance(0.5) ? shape.c : (shape.c % 2 == 0 ? 2 : 1));
        layer.channels = layer.groups * dice.upto(1, layer.groups > 2 ? 2 : 4);
        layer.bias = dice.chance(0.6);
      } else if (what <= 6) {
        layer.activation.function = dice.pick({Function::relu, Function::relu, Function::leaky_relu, Function::silu});
        if (layer.activation.function == Function::leaky_relu) layer.activation.slope = dice.chance(0.8) ? 0.125 : -0.25;
      } else if (what <= 9) {
        layer.kind = dice.chance(0.6) ? Kind::max_pool : Kind::avg_pool;
        const Index k = dice.upto(1, 3), kw = dice.upto(1, 3);
        layer.window = {
            .kernel = {k, kw}, .stride = {dice.upto(1, 3), dice.upto(1, 2)}, .pad = {axis_pad(k), axis_pad(k), axis_pad(kw), axis_pad(kw)}};
        layer.count_padding = dice.chance(0.5);
      } else {
        layer = extra[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(extra.size()) - 1))];
      }
      if (fault_of(layer, shape) != Fault::none) continue;
      const Shape out = output_shape(layer, shape);
      if (out.c > 12 || out.h > 60 || out.w > 16) continue;
      net.layers.push_back(layer);
      shape = out;
    }
    if (net.layers.empty()) continue;
    const bool pooled = dice.chance(0.6);
    net.layers.push_back({.kind = pooled ? Kind::global_avg_pool : Kind::flatten});
    if (dice.chance(0.3)) {
      net.layers.push_back({.kind = Kind::linear, .channels = dice.upto(2, 5), .bias = dice.chance(0.5)});
      net.layers.push_back({.kind = Kind::activation});
    }
    net.layers.push_back({.kind = Kind::linear, .channels = dice.upto(2, 5), .bias = true});
    return net;
  }
}
/// A network without its last layers, from the global pooling or flatten on that closes it: its output is a map.
inline RandomNetwork without_head(RandomNetwork net) {
  const auto closes = [](const Layer& y) { return y.kind == Kind::global_avg_pool || y.kind == Kind::flatten; };
  const auto head = std::find_if(net.layers.rbegin(), net.layers.rend(), closes);
  if (head != net.layers.rend()) net.layers.erase(head.base() - 1, net.layers.end());
  return net;
}
/// Now and then without its head. Pre: `net` has layers.
inline RandomNetwork now_and_then_without_head(Dice& dice, RandomNetwork net) {
  if (dice.chance(0.3)) net = without_head(net);
  return net.layers.empty() ? random_network(dice, 10) : net;
}
/// Draws what of a plan's options depends on whether it is for training.
inline PlanOptions with_drawn_output(Dice& dice, PlanOptions options) {
  options.rows_loss = options.training && dice.chance(0.3);
  if (!options.training) options.stores_output = dice.chance(0.7);
  return options;
}
/// Any combination of the policies' parts, without workspaces. Counts may be more than the rows carry: then make_plan() throws.
inline PolicySpec random_policy(Dice& dice, const RandomNetwork& net) {
  PolicySpec p;
  const bool norms = std::any_of(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::norm; });
  const auto partition = [&] {
    Partition part;
    part.cut = dice.pick({Cut::column, Cut::overlap, Cut::share, Cut::overlap, Cut::share});
    if (part.cut != Cut::column) {
      part.forward = dice.upto(1, 6);
      part.backward = dice.chance(0.6) ? part.forward : dice.upto(1, 6);
      part.again_as_backward = part.backward != part.forward && (part.forward + part.backward) % 2 == 1;
    }
    if (dice.chance(0.3)) part.images = dice.upto(1, 2);
    if (dice.chance(0.15)) part.recompute = Recompute::none;
    else if (dice.chance(0.2)) part.recompute = dice.pick({Recompute::all, Recompute::cheap, Recompute::light});
    if (dice.chance(0.1)) part.conv_algorithm = dice.pick({ConvAlgorithm::direct, ConvAlgorithm::winograd});
    if (norms && part.cut != Cut::share && dice.chance(0.25)) part.passes = dice.pick({NormPasses::one, NormPasses::all});
    part.forward_passes = part.passes != NormPasses::none && dice.chance(0.5);
    return part;
  };
  p.partition_count = dice.chance(0.7) ? 1 : dice.upto(2, 4);
  for (Index i = 0; i < p.partition_count; ++i) p.partitions[static_cast<std::size_t>(i)] = partition();
  if (dice.chance(0.25)) p.images = dice.upto(1, net.input.n);
  p.checkpoints.rule = dice.pick({Checkpoints::Rule::none, Checkpoints::Rule::pools, Checkpoints::Rule::every, Checkpoints::Rule::named});
  if (p.checkpoints.rule == Checkpoints::Rule::every) p.checkpoints.every = dice.upto(1, 4);
  if (p.checkpoints.rule == Checkpoints::Rule::named) {
    const Table table = make_table(net.layers, net.input);
    p.checkpoints.names[0] = table.node(dice.upto(0, table.size() - 1)).layer.name;
    if (dice.chance(0.5)) p.checkpoints.names[1] = table.node(dice.upto(0, table.size() - 1)).layer.name;
  }
  p.recompute = dice.pick({Recompute::none, Recompute::all, Recompute::cheap, Recompute::light});
  p.conv_algorithm = dice.pick({ConvAlgorithm::direct, ConvAlgorithm::direct, ConvAlgorithm::winograd});
  p.workspace_bytes = 0;
  if (dice.chance(0.25)) p.streams = dice.upto(2, 3);
  p.prefetch = dice.chance(0.15);
  p.gradients_in_place = dice.chance(0.3);
  if (dice.chance(0.2)) {   // sections below one whose input is made again recompute all
    const bool alone = dice.chance(0.4);
    for (Index i = 0; i < p.partition_count; ++i) {
      Partition& part = item(p.partitions, i);
      if ((p.partition_count == 1 || i > 0) && dice.chance(0.8))   // the two kinds do not follow each other
        part.input = alone != dice.chance(0.03) ? SectionInput::recompute_alone : SectionInput::recompute;
      if (dice.chance(0.9)) part.recompute = Recompute::all;
      if (part.input == SectionInput::recompute_alone) part.maker_slabs = (2 * part.forward + part.backward) % 5;
    }
    if (dice.chance(0.7)) p.checkpoints = {.rule = Checkpoints::Rule::every, .every = dice.upto(1, 4)};
  }
  return p;
}
/// Gives some sections a workspace of their own, of one of these sizes.
inline void add_workspaces(Dice& dice, PolicySpec& p, std::initializer_list<Index> sizes) {
  for (Index i = 0; i < p.partition_count; ++i)
    if (dice.chance(0.4)) item(p.partitions, i).workspace_bytes = dice.pick(sizes);
}
/// Has all convolutions computed in one way, whatever sections say.
inline void compute_by(PolicySpec& p, ConvAlgorithm algorithm) {
  p.conv_algorithm = algorithm;
  for (Partition& part : p.partitions) part.conv_algorithm = ConvAlgorithm::of_policy;
}
}   // namespace lrcnn::testing
