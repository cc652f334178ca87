#pragma once
// Layers that the CUDA backend does not have.
#include <lrcnn/layer/layer.hpp>
namespace lrcnn::cudnn {
/// Why a layer cannot be had on the device; empty if it can.
constexpr std::string_view refusal(const Layer& layer) {
  switch (layer.kind) {
    case Kind::conv_transpose:
    case Kind::pad:
    case Kind::layer_scale:
    case Kind::scale:
    case Kind::channel_shuffle:
    case Kind::adaptive_avg_pool: return "this layer has no loops for a GPU yet";
    case Kind::dropout: return "steps are recorded on a GPU with their numbers, and its mask changes from step to step";
    case Kind::avg_pool:
      if (!layer.window.ceil || !layer.count_padding) return "";
      return "its extents are rounded up while its padding counts, which its loops do not know";
    case Kind::norm: return layer.norm.over == Norm::Over::slab ? "this layer has no loops for a GPU yet" : "";
    case Kind::conv:
    case Kind::activation:
    case Kind::max_pool:
    case Kind::global_avg_pool:
    case Kind::flatten:
    case Kind::linear:
    case Kind::custom:
    case Kind::sum:
    case Kind::concat:
    case Kind::upsample: return "";
  }
  return "";
}
}  // namespace lrcnn::cudnn
