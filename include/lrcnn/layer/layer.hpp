#pragma once
// One layer as a value: what the layer table holds and everything below the type level reads.
//
// Descriptors (Conv<64>, ReLU, ...) are types that users compose; each has `static constexpr Layer layer()`. From
// there on a network is plain data: the planner, the checker and the executor never see a type. A layer of a user's
// own is a descriptor whose Layer has Kind::custom and points to its operations (layer/custom.hpp).
#include <lrcnn/shape/shape.hpp>
#include <lrcnn/shape/upsampling.hpp>
#include <lrcnn/shape/window.hpp>
namespace lrcnn {
struct CustomLayer;
enum class Kind : std::uint8_t {
  conv,             ///< x [N,C,H,W] * w [K,C/groups,R,S] (+ b [K]) -> y [N,K,P,Q]
  activation,       ///< pointwise, x -> y of the same shape
  max_pool,         ///< pads with -inf; ties go to the first in row-major window order
  avg_pool,         ///< count_padding says whether padded positions count
  global_avg_pool,  ///< x [N,C,H,W] -> y [N,C,1,1]; a barrier that accumulates row by row
  flatten,          ///< x [N,C,H,W] -> y [N,C*H*W,1,1] in NCHW order; a barrier
  linear,           ///< x [N,F,1,1] * w [K,F] (+ b [K]) -> y [N,K,1,1]
  custom,           ///< a user's own
  norm,             ///< x -> weight * (x - mean) / sqrt(variance + epsilon) + bias; `norm` says over what
  sum,              ///< a join: x + other, both of one shape
  concat,           ///< a join: the channels of x, then those of other
  upsample,         ///< x [N,C,H,W] -> y [N,C,u*H,v*W]; `upsampling` says how
  conv_transpose,   ///< x [N,C,H,W], w [C,K/groups,R,S] (+ b [K]) -> y [N,K,P,Q]: what a convolution with w sends back
  pad,              ///< rows and columns added around a map, zeros or reflected ones, or taken away
  layer_scale,      ///< x -> weight * x, a weight for each channel
  channel_shuffle,  ///< channel i * C / groups + j becomes channel j * groups + i
  adaptive_avg_pool,  ///< x [N,C,H,W] -> y [N,C,P,Q], P and Q given: means of windows of about H / P x W / Q
  scale,            ///< a join: x [N,C,H,W] * other [N,C,1,1], a factor for each channel of each image
  dropout,          ///< x -> x / (1 - probability) or 0 in training, x otherwise; `drop` says of what each is drawn
};
enum class Function : std::uint8_t { relu, leaky_relu, silu, relu6, gelu, hardswish, sigmoid };
/// What a norm takes mean and variance of, and whether it keeps running ones.
struct Norm {
  enum class Over : std::uint8_t {
    batch,      ///< a channel of all images: BatchNorm
    group,      ///< a group of channels of one image: GroupNorm, and InstanceNorm with groups of one channel
    channels,   ///< all channels of one pixel: LayerNorm
    slab,       ///< a channel of the rows and images that are computed together: SlabBatchNorm
  };
  Over over = Over::batch;
  bool frozen = false;      ///< batch: running statistics in training, too, and they stay as they are
  bool affine = true;       ///< weight and bias, one for each channel
  Index groups = 0;         ///< group: their number; 0: as many as channels
  double epsilon = 1e-5;
  double momentum = 0.1;    ///< batch: share of a step's statistics in the running ones
  double weight = 1;        ///< first value of weight
  friend constexpr bool operator==(const Norm&, const Norm&) = default;
};
/// What a dropout draws for, and how often it drops it (layer/drop_mask.hpp).
struct Drop {
  enum class Each : std::uint8_t {
    element,   ///< Dropout
    channel,   ///< a channel of an image: SpatialDropout
    image,     ///< StochasticDepth
  };
  Each each = Each::element;
  double probability = 0;   ///< from 0 up to, and without, 1
  friend constexpr bool operator==(const Drop&, const Drop&) = default;
};
/// A pointwise function; `slope` is that of leaky_relu below zero.
struct Activation {
  Function function = Function::relu;
  double slope = 0;
  friend constexpr bool operator==(const Activation&, const Activation&) = default;
};
/// A layer without shapes. Its place in a list of layers says what it reads.
struct Layer {
  Kind kind = Kind::activation;
  Name name{};                 ///< empty: named after its kind and ordinal ("conv3") by the table
  Window window{1};            ///< conv, conv_transpose, pools, custom; pad: its padding; others: 1x1
  Index channels = 0;          ///< output channels; 0: as many as the input has
  Index groups = 1;            ///< conv, conv_transpose, channel_shuffle
  bool bias = false;           ///< conv, conv_transpose, linear
  bool count_padding = true;   ///< avg_pool
  Activation activation{};     ///< activation
  Norm norm{};                 ///< norm
  Upsampling upsampling{};     ///< upsample
  bool reflect = false;        ///< pad: with the rows and columns inside, in reverse, rather than with zeros
  Pair pooled = 1;             ///< adaptive_avg_pool: rows and columns of its output
  double scale = 1;            ///< layer_scale: first value of its weights
  Drop drop{};                 ///< dropout
  Index input = 1;             ///< it reads the output of the layer so many places before it; beyond the first: the network's input
  Index other = 0;             ///< joins: likewise their second input; 0: none
  const CustomLayer* custom = nullptr;   ///< custom: what it does, never null there
  friend constexpr bool operator==(const Layer&, const Layer&) = default;
};
constexpr bool is_join(const Layer& layer) {
  return layer.kind == Kind::sum || layer.kind == Kind::concat || layer.kind == Kind::scale;
}
/// "batch_norm", "group_norm", "instance_norm", "layer_norm" or "slab_batch_norm"
constexpr std::string_view norm_name(const Norm& norm) {
  if (norm.over == Norm::Over::batch) return "batch_norm";
  if (norm.over == Norm::Over::channels) return "layer_norm";
  if (norm.over == Norm::Over::slab) return "slab_batch_norm";
  return norm.groups == 0 ? "instance_norm" : "group_norm";
}
/// "dropout", "spatial_dropout" or "stochastic_depth"
constexpr std::string_view drop_name(const Drop& drop) {
  if (drop.each == Drop::Each::element) return "dropout";
  return drop.each == Drop::Each::channel ? "spatial_dropout" : "stochastic_depth";
}
constexpr std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::conv: return "conv";
    case Kind::activation: return "activation";
    case Kind::max_pool: return "max_pool";
    case Kind::avg_pool: return "avg_pool";
    case Kind::global_avg_pool: return "global_avg_pool";
    case Kind::flatten: return "flatten";
    case Kind::linear: return "linear";
    case Kind::custom: return "custom";
    case Kind::norm: return "norm";
    case Kind::sum: return "sum";
    case Kind::concat: return "concat";
    case Kind::upsample: return "upsample";
    case Kind::conv_transpose: return "conv_transpose";
    case Kind::pad: return "pad";
    case Kind::layer_scale: return "layer_scale";
    case Kind::channel_shuffle: return "channel_shuffle";
    case Kind::adaptive_avg_pool: return "adaptive_avg_pool";
    case Kind::scale: return "scale";
    case Kind::dropout: return "dropout";
  }
  return "?";
}
constexpr std::string_view function_name(Function f) {
  switch (f) {
    case Function::relu: return "relu";
    case Function::leaky_relu: return "leaky_relu";
    case Function::silu: return "silu";
    case Function::relu6: return "relu6";
    case Function::gelu: return "gelu";
    case Function::hardswish: return "hardswish";
    case Function::sigmoid: return "sigmoid";
  }
  return "?";
}
}  // namespace lrcnn
