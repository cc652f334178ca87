#pragma once
// Layers that work on channels alone, as descriptors.
#include <lrcnn/layer/layer.hpp>
#include <ratio>
namespace lrcnn {
/// A learnt factor for each channel, which begins at First: so small that a residual block begins as the identity.
/// Shapes:  x [N,C,H,W], layer_scale [C] -> y [N,C,H,W]
/// Source:  Touvron et al., "Going deeper with image transformers", arXiv 2103.17239, section 2.1
template <class First = std::ratio<1, 1000000>>
struct LayerScale {
  static constexpr Layer layer() {
    return {.kind = Kind::layer_scale, .scale = static_cast<double>(First::num) / static_cast<double>(First::den)};
  }
};
/// Channels of each group in turn: of the first group the first, of the second the first, ..., so that channel i * C / groups + j becomes
/// channel j * groups + i.
/// Shapes:  x [N,C,H,W] -> y [N,C,H,W]
/// Errors:  groups must divide C
/// Source:  Zhang et al., "ShuffleNet", arXiv 1707.01083, section 3.1
template <Index groups>
struct ChannelShuffle {
  static constexpr Layer layer() { return {.kind = Kind::channel_shuffle, .groups = groups}; }
};
}  // namespace lrcnn
