#pragma once
// One layer as a value: what the layer table holds and everything below the type level reads.
//
// Descriptors (Conv<64>, ReLU, ...) are types that users compose; each has `static constexpr Layer layer()`. From
// there on a network is plain data: the planner, the checker and the executor never see a type. A layer of a user's
// own is a descriptor whose Layer has Kind::custom and points to its operations (layer/custom.hpp). What the planner must know about
// a kind is in its row of rules (layer/rules.hpp), beside its descriptor.
#include <lrcnn/shape/shape.hpp>
#include <lrcnn/shape/upsampling.hpp>
#include <lrcnn/shape/window.hpp>
namespace lrcnn {
struct CustomLayer;
enum class Kind : std::uint8_t {
  conv,                ///< x [N,C,H,W] * w [K,C/groups,R,S] (+ b [K]) -> y [N,K,P,Q]
  activation,          ///< pointwise, x -> y of the same shape
  max_pool,            ///< pads with -inf; ties go to the first in row-major window order
  avg_pool,            ///< count_padding says whether padded positions count
  global_avg_pool,     ///< x [N,C,H,W] -> y [N,C,1,1]; a barrier that accumulates row by row
  flatten,             ///< x [N,C,H,W] -> y [N,C*H*W,1,1] in NCHW order; a barrier
  linear,              ///< x [N,F,1,1] * w [K,F] (+ b [K]) -> y [N,K,1,1]
  custom,              ///< a user's own
  norm,                ///< x -> weight * (x - mean) / sqrt(variance + epsilon) + bias; `norm` says over what
  sum,                 ///< a join: x + other, both of one shape
  concat,              ///< a join: the channels of x, then those of other
  upsample,            ///< x [N,C,H,W] -> y [N,C,u*H,v*W]; `upsampling` says how
  conv_transpose,      ///< x [N,C,H,W], w [C,K/groups,R,S] (+ b [K]) -> y [N,K,P,Q]: what a convolution with w sends back
  pad,                 ///< rows and columns added around a map, zeros or reflected ones, or taken away
  layer_scale,         ///< x -> weight * x, a weight for each channel
  channel_shuffle,     ///< channel i * C / groups + j becomes channel j * groups + i
  adaptive_avg_pool,   ///< x [N,C,H,W] -> y [N,C,P,Q], P and Q given: means of windows of about H / P x W / Q
  scale,               ///< a join: x [N,C,H,W] * other [N,C,1,1], a factor for each channel of each image
  dropout,             ///< x -> x / (1 - probability) or 0 in training, x otherwise; `drop` says of what each is drawn
};
inline constexpr std::size_t kind_count = static_cast<std::size_t>(Kind::dropout) + 1;   // behind the last one
enum class Function : std::uint8_t { relu, leaky_relu, silu, relu6, gelu, hardswish, sigmoid, hardsigmoid };
/// What a norm takes mean and variance of, and whether it keeps running ones.
struct Norm {
  enum class Over : std::uint8_t {
    batch,      ///< a channel of all images: BatchNorm
    group,      ///< a group of channels of one image: GroupNorm, and InstanceNorm with groups of one channel
    channels,   ///< all channels of one pixel: LayerNorm
    slab,       ///< a channel of the rows and images that are computed together: SlabBatchNorm
  };
  Over over = Over::batch;
  bool frozen = false;   ///< batch: running statistics in training, too, and they stay as they are
  bool affine = true;    ///< weight and bias, one for each channel
  Index groups = 0;      ///< group: their number; 0: as many as channels
  double epsilon = 1e-5;
  double momentum = 0.1;   ///< batch: share of a step's statistics in the running ones
  double weight = 1;       ///< first value of weight
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
  Name name{};                           ///< empty: named after its kind and ordinal ("conv3") by the table
  Window window{1};                      ///< conv, conv_transpose, pools, custom; pad: its padding; others: 1x1
  Index channels = 0;                    ///< output channels: conv, conv_transpose, linear, custom; 0: as many as the input has
  Index groups = 1;                      ///< conv, conv_transpose, channel_shuffle
  bool bias = false;                     ///< conv, conv_transpose, linear
  bool count_padding = true;             ///< avg_pool
  Activation activation{};               ///< activation
  Norm norm{};                           ///< norm
  Upsampling upsampling{};               ///< upsample
  bool reflect = false;                  ///< pad: with the rows and columns inside, in reverse, rather than with zeros
  Pair pooled = 1;                       ///< adaptive_avg_pool: rows and columns of its output
  double scale = 1;                      ///< layer_scale: first value of its weights
  Drop drop{};                           ///< dropout
  Index input = 1;                       ///< it reads the output of the layer so many places before it; beyond the first: the network's input
  Index other = 0;                       ///< joins: likewise their second input; 0: none
  const CustomLayer* custom = nullptr;   ///< custom: what it does, never null there
  friend constexpr bool operator==(const Layer&, const Layer&) = default;
};
constexpr bool is_activation(const Layer& layer) { return layer.kind == Kind::activation; }
constexpr bool is_join(const Layer& layer) { return layer.kind == Kind::sum || layer.kind == Kind::concat || layer.kind == Kind::scale; }
}   // namespace lrcnn
