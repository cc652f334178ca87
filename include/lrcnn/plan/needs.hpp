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
  Flags saved_kept;   ///< saved state of layer l is kept from the forward pass
  std::vector<BackwardRun> runs;  ///< in execution order
  bool output = false;            ///< the stage's full-height output is read by its last layer's backward step
  bool any_kept = false;          ///< the forward pass leaves pieces for the backward slabs: both use the same cuts
};
constexpr bool is_conv(const Layer& layer) { return layer.kind == Kind::conv; }
/// Whether a layer's output can be had from its input in little more than a memory pass.
constexpr bool is_cheap(const Layer& layer) {
  return layer.kind == Kind::custom ? layer.custom && layer.custom->cheap : layer.kind != Kind::conv && layer.kind != Kind::linear;
}
/// Whether the sign of an activation's output tells the sign of its input, so that backward can do without the input.
constexpr bool is_sign_activation(const Layer& layer) {
  return layer.kind == Kind::activation &&
         (layer.activation.function == Function::relu || layer.activation.function == Function::leaky_relu);
}
/// Whether a layer may write its output over its input, as far as the layer itself is concerned.
constexpr bool can_overwrite(const Layer& layer) { return layer.kind == Kind::activation; }
constexpr StageNeeds stage_needs(const Table& table, const Stage& stage, Recompute recompute) {
  const Index count = stage.chain_layers();
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const auto layer = [&](Index l) -> const Layer& { return table.node(stage.first + l).layer; };
  StageNeeds needs;
  needs.layer.assign(at(count), LayerNeeds{});
  needs.value.assign(at(count + 1), 0);
  needs.kept.assign(at(count + 1), 0);
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
  for (Index l = 0; l < count; ++l) {   // a sign comes from the output if that is wanted anyway, else from mask bits
    if (!is_sign_activation(layer(l))) continue;
    const bool from_output = l + 1 < count && needs.value[at(l + 1)] && layer(l).activation.slope >= 0;
    (from_output ? needs.layer[at(l)].output : needs.layer[at(l)].saved) = true;
  }
  if (count > 0) {
    LayerNeeds& top = needs.layer[at(count - 1)];
    needs.output = top.output;
    needs.value[at(count)] = false;   // never kept in slabs: it exists in full height
    if (is_sign_activation(layer(count - 1))) needs.saved_kept[at(count - 1)] = true;   // one bit, instead of a re-run
  }
  for (Index t = 1; t < count; ++t) {
    if (recompute == Recompute::none) needs.kept[at(t)] = needs.value[at(t)];
    if (recompute == Recompute::cheap) needs.kept[at(t)] = !is_cheap(layer(t - 1));
    needs.any_kept = needs.any_kept || needs.kept[at(t)];
  }
  for (Index l = 0; l + 1 < count || (l < count && recompute == Recompute::none); ++l)
    if (recompute == Recompute::none && needs.layer[at(l)].saved) {
      needs.saved_kept[at(l)] = true;
      needs.any_kept = needs.any_kept || l + 1 < count;
    }
  Flags at_hand = needs.kept, saved_at_hand = needs.saved_kept;
  at_hand[0] = true;
  for (Index l = count - 1; l >= 0; --l) {
    const LayerNeeds& n = needs.layer[at(l)];
    const bool lacks_top = (n.saved && !saved_at_hand[at(l)]) || (n.output && l + 1 < count && !at_hand[at(l + 1)]);
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
