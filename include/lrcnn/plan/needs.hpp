#pragma once
// What the backward pass of every layer of a stage reads, where it comes from, and in which order it is had.
//
// A layer's backward step may read its input, its output, or saved state (pool indices, mask bits). Each of those is
// either kept from the forward pass or made again from the nearest tensor below that is at hand. The policy only says
// what is kept; the order of re-runs follows: walking down from the stage's end, a re-run is made just before the
// first layer that lacks something, and makes all that the layers down to its start will need.
#include <lrcnn/plan/stage.hpp>
namespace lrcnn {
/// What one layer's backward step reads.
struct LayerNeeds {
  bool input = false;
  bool output = false;
  bool saved = false;   ///< pool indices or mask bits
};
/// A run of a stage's backward pass: layers [first, last) of the chain again, or one layer backward.
struct BackwardRun {
  bool recompute = false;
  Index first = 0;
  Index last = 0;
};
/// One truth value per tensor or layer. (Plain chars: compilers evaluate them cheaply in constant expressions.)
using Flags = std::vector<char>;
/// Needs and decisions for one stage. Tensors and layers are numbered from the stage's start.
struct StageNeeds {
  std::vector<LayerNeeds> layer;
  Flags value;        ///< tensor t is read by a backward step
  Flags kept;         ///< tensor t is kept from the forward pass, slab by slab
  Flags keeps_needs;  ///< RecomputeCheap: what the layers around tensor t need is kept, rather than made again
  Flags saved_kept;   ///< saved state of layer l is kept from the forward pass
  std::vector<BackwardRun> runs;  ///< in execution order
  bool output = false;            ///< the stage's full-height output is read by its last layer's backward step
  bool any_kept = false;          ///< the forward pass leaves pieces for the backward slabs: both use the same cuts
};
constexpr bool is_conv(const Layer& layer) { return layer.kind == Kind::conv; }
/// Whether a layer's output can be had from its input in little more than a memory pass.
constexpr bool is_cheap(const Layer& layer) {
  return layer.kind == Kind::custom ? layer.custom->cheap : layer.kind != Kind::conv && layer.kind != Kind::linear;
}
/// Whether the sign of an activation's output tells the sign of its input, so that backward can do without the input.
constexpr bool is_sign_activation(const Layer& layer) {
  return layer.kind == Kind::activation &&
         (layer.activation.function == Function::relu || layer.activation.function == Function::leaky_relu);
}
/// Whether a layer may write its output over its input, as far as the layer itself is concerned.
constexpr bool can_overwrite(const Layer& layer) { return layer.kind == Kind::activation; }
/// Multiply-adds for an element of a convolution's output up to which RecomputeLight makes it again: 3x3 filters from 64 channels.
/// Source:  VGG-16: its first convolution and those from 64 channels are 6.6 % of a forward pass; what they make for conv2 and conv4 to
///          read is half of all that KeepAll keeps at 224x224
inline constexpr Index light_products = 9 * 64;
namespace detail {
/// Whether tensor t of a stage's chain is a convolution's output, or that of activations behind it, that takes few products to make.
constexpr bool is_light(const Table& table, const Stage& stage, Index t) {
  Index l = t - 1;
  while (l >= 0 && table.node(stage.first + l).layer.kind == Kind::activation) --l;
  if (l < 0 || !is_conv(table.node(stage.first + l).layer)) return false;
  const Node& node = table.node(stage.first + l);
  return node.layer.window.kernel.h * node.layer.window.kernel.w * (node.in.c / node.layer.groups) <= light_products;
}
/// RecomputeCheap. What follows a convolution up to the next one is a run of cheap layers; all of it can be made again
/// from one tensor, the convolution's output or, where its activation may overwrite that, the activation's. Keeping
/// what the run's backward steps need may take less than that tensor (a pooled map, its indices, mask bits): then that.
constexpr void choose_bases(const Table& table, const Stage& stage, StageNeeds& needs) {
  const Index count = stage.chain_layers();
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const auto layer = [&](Index l) -> const Layer& { return table.node(stage.first + l).layer; };
  const auto bits = [&](Index t, Index each) { return table.shape(stage.first + t).count() * each; };
  for (Index t = 1; t < count; ++t) {
    if (is_cheap(layer(t - 1))) continue;
    Index end = t;   // tensors t .. end
    while (end < count && is_cheap(layer(end))) ++end;
    Index kept = 0;
    for (Index u = t; u <= end; ++u) {
      if (u < count && needs.value[at(u)]) kept += bits(u, 32);
      if (u < end && layer(u).kind == Kind::max_pool) kept += bits(u + 1, 8);
      if (u < end && is_sign_activation(layer(u)) && !(u + 1 < count && needs.value[at(u + 1)])) kept += bits(u + 1, 1);
    }
    const bool overwrites = t + 1 < count && t < end && is_sign_activation(layer(t)) && layer(t).activation.slope >= 0;
    const Index base = overwrites ? t + 1 : t;
    if (kept <= bits(base, 32)) {
      for (Index u = t; u <= end; ++u) needs.keeps_needs[at(u)] = 1;
      continue;
    }
    needs.kept[at(base)] = 1;
    if (overwrites) needs.value[at(base)] = 1;   // the sign is read from it
  }
}
}  // namespace detail
constexpr StageNeeds stage_needs(const Table& table, const Stage& stage, Recompute recompute) {
  const Index count = stage.chain_layers();
  const Index slab_tensors = stage.reduces ? count + 1 : count;   // a global pooling takes the chain's last one by slabs too
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const auto layer = [&](Index l) -> const Layer& { return table.node(stage.first + l).layer; };
  StageNeeds needs;
  needs.layer.assign(at(count), LayerNeeds{});
  needs.value.assign(at(count + 1), 0);
  needs.kept.assign(at(count + 1), 0);
  needs.keeps_needs.assign(at(count + 1), 0);
  needs.saved_kept.assign(at(count), 0);
  for (Index l = 0; l < count; ++l) {
    LayerNeeds& n = needs.layer[at(l)];
    const Layer& y = layer(l);
    switch (y.kind) {
      case Kind::conv:
      case Kind::linear: n.input = true; break;
      case Kind::activation: n.input = !is_sign_activation(y); break;
      case Kind::max_pool: n.saved = true; break;
      case Kind::custom: n.input = y.custom->needs_input, n.output = y.custom->needs_output; break;
      default: break;
    }
    if (n.input) needs.value[at(l)] = true;
    if (n.output) needs.value[at(l + 1)] = true;
  }
  if (recompute == Recompute::cheap) detail::choose_bases(table, stage, needs);
  for (Index l = 0; l < count; ++l) {   // a sign comes from the output if that is wanted anyway, else from mask bits
    if (!is_sign_activation(layer(l))) continue;
    const bool from_output = l + 1 < count && needs.value[at(l + 1)] && layer(l).activation.slope >= 0;
    (from_output ? needs.layer[at(l)].output : needs.layer[at(l)].saved) = true;
  }
  if (count > 0) {
    LayerNeeds& top = needs.layer[at(count - 1)];
    needs.output = top.output && !stage.reduces;
    if (!stage.reduces) needs.value[at(count)] = false;   // never kept in slabs: it exists in full height
    if (is_sign_activation(layer(count - 1))) needs.saved_kept[at(count - 1)] = true;   // one bit, instead of a re-run
  }
  const bool keeps_all = recompute == Recompute::none || recompute == Recompute::light;
  for (Index t = 1; t < slab_tensors; ++t) {
    const bool keeps_saved = keeps_all || (recompute == Recompute::cheap && needs.keeps_needs[at(t)]);
    const bool keeps = keeps_saved && !(recompute == Recompute::light && detail::is_light(table, stage, t));
    if (keeps) needs.kept[at(t)] = needs.value[at(t)];
    if (keeps_saved && t < count && needs.layer[at(t)].saved) needs.saved_kept[at(t)] = 1;
  }
  if (count > 0 && keeps_all && needs.layer[0].saved) needs.saved_kept[0] = 1;
  for (Index t = 0; t < slab_tensors; ++t)   // the last layer's saved state lies in full height, not in pieces
    needs.any_kept = needs.any_kept || needs.kept[at(t)] || (t + 1 < count && needs.saved_kept[at(t)]);
  Flags at_hand = needs.kept, saved_at_hand = needs.saved_kept;
  at_hand[0] = true;
  for (Index l = count - 1; l >= 0; --l) {
    const LayerNeeds& n = needs.layer[at(l)];
    const bool lacks_top = (n.saved && !saved_at_hand[at(l)]) || (n.output && l + 1 < slab_tensors && !at_hand[at(l + 1)]);
    if (lacks_top || (n.input && !at_hand[at(l)])) {
      const Index last = lacks_top ? l + 1 : l;
      Index first = last - 1;
      while (!at_hand[at(first)]) --first;
      needs.runs.push_back({true, first, last});
      for (Index t = first + 1; t <= last; ++t) {
        at_hand[at(t)] = at_hand[at(t)] || needs.value[at(t)];
        saved_at_hand[at(t - 1)] = true;
      }
    }
    needs.runs.push_back({false, l, l + 1});
  }
  return needs;
}
}  // namespace lrcnn
