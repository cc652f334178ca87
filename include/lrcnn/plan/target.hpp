#pragma once
// What the planner must know of the backend a plan is for: sizes only, as a plain constant.
#include <lrcnn/network/table.hpp>
namespace lrcnn {
/// Storage rules of a backend. Two plans for targets that compare equal have equal arenas; so have two that differ in vector_block
/// alone, where tensors take the first bytes of the same buffers.
struct Target {
  static constexpr Index all_channels = 0;   ///< a storage block as large as the tensor has channels
  Index element_bytes = 4;
  Index gradient_bytes = 0;          ///< of an element of filter gradients in the backend's own layout; 0: element_bytes
  Index channel_block = 1;           ///< storage has room for a multiple of so many channels; 1 is NCHW; all_channels is NHWC
  Index plain_channels = 0;          ///< tensors with at most so many channels are stored as NCHW all the same
  Index alignment = 64;              ///< of every buffer, in bytes
  bool uses_workspace = true;        ///< steps get the workspace that the policy bounds
  bool packs_weights = false;        ///< convolutions want their filters in a layout of the backend's own
  bool activates = false;            ///< a step can apply the activation behind its layer, where the layer's rules take one (takes_activation)
  bool sums_use_workspace = false;   ///< steps of norms, and of factors of channels, get the workspace, too
  bool packs_transposed = false;     ///< transposed convolutions want their filters so too
  bool packs_linear = false;         ///< linear layers want their weights so too: as elements, where parameters are something else
  bool packs_bias = false;           ///< behind such weights lies their layer's bias, as elements
  bool convolves_rows = false;       ///< convolutions of one image work on rows of a larger piece where they lie; others want dense pieces
  bool packs_alike = false;          ///< a filter packed for the forward pass serves the data gradient, too
  bool packs_together = false;       ///< one kernel packs several filters: plans bring such steps together where there is room
  Index default_workspace = 4_MiB;   ///< of a policy that names none
  Index vector_block = 0;            ///< channels that lie side by side on the machine at hand; divides channel_block; 0: channel_block
  /// A policy's workspace: as it says, or the default for -1.
  constexpr Index workspace(Index bytes) const { return bytes == -1 ? default_workspace : bytes; }
  /// Channels that lie side by side in tensors that are stored in blocks.
  constexpr Index lanes() const { return vector_block > 0 ? vector_block : channel_block; }
  /// Channels of a tensor with c channels that lie side by side.
  constexpr Index block(Index c) const { return c <= plain_channels ? 1 : channel_block == all_channels ? c : lanes(); }
  /// Channels that storage has room for.
  constexpr Index stored(Index c) const { return c <= plain_channels || channel_block == all_channels ? c : round_up(c, channel_block); }
  /// Bytes of `rows` rows of images `n` of a tensor.
  constexpr Index bytes(Index n, Index c, Index rows, Index w) const { return n * stored(c) * rows * w * element_bytes; }
  /// Bytes of saved state for rows of a layer's output: one byte per element for pool indices, one bit for masks.
  constexpr Index index_bytes(Index n, Index c, Index rows, Index w) const { return n * stored(c) * rows * w; }
  constexpr Index mask_bytes(Index n, Index c, Index rows, Index w) const {
    const Index unit = c <= plain_channels ? 1 : channel_block == all_channels ? c : channel_block;
    return n * (stored(c) / unit) * rows * ceil_div(w * unit, 8);
  }
  constexpr Index saved_bytes(const Layer& layer, Index n, Index c, Index rows, Index w) const {
    return rules_of(layer).backward(layer).indices ? index_bytes(n, c, rows, w) : mask_bytes(n, c, rows, w);
  }
  /// Whether steps of a layer get a workspace.
  constexpr bool gives_workspace(const Layer& layer) const {
    const LayerRules& rules = rules_of(layer);
    return rules.uses_workspace || (rules.sums_channels && sums_use_workspace);
  }
  /// Whether steps of a layer work on a packed copy of its weights.
  constexpr bool packs(const Layer& layer) const {
    return (packs_weights && layer.kind == Kind::conv) || (packs_transposed && layer.kind == Kind::conv_transpose) ||
           (packs_linear && layer.kind == Kind::linear);
  }
  /// Bytes of one packed filter, or of packed weights, and of the bias behind it: an upper bound over the layouts that the backend may choose.
  constexpr Index packed_bytes(const Node& node) const {
    return packs_bias && packs(node.layer) && node.layer.bias ? packed_bias_offset(node) + node.out.c * element_bytes : filter_bytes(node);
  }
  /// Where the bias lies in a packed filter, in bytes. Pre: packs_bias, and the layer has one.
  constexpr Index packed_bias_offset(const Node& node) const { return round_up(filter_bytes(node), 16); }
  /// Bytes of one packed filter without a bias.
  constexpr Index filter_bytes(const Node& node) const {
    if (!packs(node.layer)) return 0;
    if (node.layer.kind == Kind::linear) return node.layer.channels * node.in.c * element_bytes;
    const Index taps = node.layer.window.kernel.h * node.layer.window.kernel.w;
    const Index groups = node.layer.groups;
    if (node.layer.kind == Kind::conv_transpose) return node.in.c * (node.layer.channels / groups) * taps * element_bytes;
    const bool blocked = channel_block != all_channels, plain = node.in.c <= plain_channels;
    const Index pair = element_bytes == 2 ? 2 : 1;   // blocked layouts of two-byte elements have input channels in pairs
    const Index from = !blocked ? 1 : plain ? pair : round_up(channel_block, pair), to = blocked ? channel_block : 1;
    return groups * round_up(node.layer.channels / groups, to) * round_up(node.in.c / groups, from) * taps * element_bytes;
  }
  /// Bytes of one filter gradient in that layout.
  constexpr Index scratch_bytes(const Node& node) const {
    return gradient_bytes > 0 ? filter_bytes(node) / element_bytes * gradient_bytes : filter_bytes(node);
  }
  friend constexpr bool operator==(const Target&, const Target&) = default;
};
}   // namespace lrcnn
