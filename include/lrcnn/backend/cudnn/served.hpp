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
    case Kind::channel_shuffle:
    case Kind::adaptive_avg_pool: return "this layer has no loops for a GPU yet";
    case Kind::avg_pool:
      if (!layer.window.ceil || !layer.count_padding) return "";
      return "its extents are rounded up while its padding counts, which its loops do not know";
    case Kind::conv:
    case Kind::activation:
    case Kind::max_pool:
    case Kind::global_avg_pool:
    case Kind::flatten:
    case Kind::linear:
    case Kind::custom:
    case Kind::norm:
    case Kind::sum:
    case Kind::concat:
    case Kind::upsample: return "";
  }
  return "";
}
}  // namespace lrcnn::cudnn
