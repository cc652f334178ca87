#pragma once
// Norms as descriptors: x -> weight * (x - mean) / sqrt(variance + epsilon) + bias, with mean and variance over
//
//     BatchNorm     a channel of all images       needs all rows of the batch first: a barrier, in training
//     GroupNorm     some channels of one image    a barrier
//     InstanceNorm  one channel of one image      a barrier
//     LayerNorm     all channels of one pixel     takes rows as they come
//
// All of these are exact however a map is cut (layer/statistics.hpp). SlabBatchNorm is not: it is there to be compared with.
// Epsilon and Momentum are std::ratios, since clang before 18 takes no floating template arguments.
#include <lrcnn/layer/rules.hpp>
#include <ratio>
namespace lrcnn {
/// Options that few norms need.
struct NormOptions {
  bool affine = true;    ///< weight and bias, one for each channel
  bool zero = false;     ///< weight begins at 0 rather than 1: the last norm of a residual block, which then begins as the identity
  bool frozen = false;   ///< batch norms: running statistics in training, too, and they stay as they are
  friend constexpr bool operator==(const NormOptions&, const NormOptions&) = default;
};
namespace detail {
template <class Ratio>
inline constexpr double ratio = static_cast<double>(Ratio::num) / static_cast<double>(Ratio::den);
constexpr Layer norm_layer(Norm::Over over, const NormOptions& options, double epsilon, double momentum, Index groups) {
  return {.kind = Kind::norm,
          .norm = {.over = over,
                   .frozen = options.frozen,
                   .affine = options.affine,
                   .groups = groups,
                   .epsilon = epsilon,
                   .momentum = momentum,
                   .weight = options.zero ? 0.0 : 1.0}};
}
}   // namespace detail
/// Batch normalisation with options; Momentum is the share of a step's statistics in the running ones.
/// Shapes:  x [N,C,H,W], weight, bias, running_mean, running_var [C] -> y [N,C,H,W]
/// Errors:  epsilon must be above 0, momentum between 0 and 1
template <NormOptions options = NormOptions{}, class Epsilon = std::ratio<1, 100000>, class Momentum = std::ratio<1, 10>>
struct BatchNormWith {
  static constexpr Layer layer() { return detail::norm_layer(Norm::Over::batch, options, detail::ratio<Epsilon>, detail::ratio<Momentum>, 0); }
};
/// Batch normalisation as usual: epsilon 1e-5, momentum 0.1, weight and bias.
struct BatchNorm {
  static constexpr Layer layer() { return BatchNormWith<>::layer(); }
};
/// Batch normalisation by its running statistics, which stay as they are: works on each pixel by itself.
struct FrozenBatchNorm {
  static constexpr Layer layer() { return BatchNormWith<NormOptions{.frozen = true}>::layer(); }
};
/// Batch normalisation whose weight begins at 0.
struct ZeroBatchNorm {
  static constexpr Layer layer() { return BatchNormWith<NormOptions{.zero = true}>::layer(); }
};
/// Normalisation over groups of channels of each image.
/// Shapes:  x [N,C,H,W], weight, bias [C] -> y [N,C,H,W]
/// Errors:  groups must divide C
template <Index groups, NormOptions options = NormOptions{}, class Epsilon = std::ratio<1, 100000>>
struct GroupNorm {
  static_assert(groups > 0, "lrcnn: a GroupNorm has no groups; it has at least one; write GroupNorm<32>, or InstanceNorm");
  static constexpr Layer layer() { return detail::norm_layer(Norm::Over::group, options, detail::ratio<Epsilon>, Norm{}.momentum, groups); }
};
/// Normalisation over each channel of each image, with options.
template <NormOptions options = NormOptions{}, class Epsilon = std::ratio<1, 100000>>
struct InstanceNormWith {
  static constexpr Layer layer() { return detail::norm_layer(Norm::Over::group, options, detail::ratio<Epsilon>, Norm{}.momentum, 0); }
};
/// Normalisation over each channel of each image, with weight and bias.
struct InstanceNorm {
  static constexpr Layer layer() { return InstanceNormWith<>::layer(); }
};
/// Batch normalisation by the statistics of each slab alone: of the rows and images that are computed together, those that overlapping
/// slabs both compute included. Its backward pass is as local: statistics are taken again from the slab.
///
/// WARNING: how a map is cut changes what the network computes. Slabs of other counts, another way of cutting, or forward slabs that are
///          not the backward ones, are another model; with one slab it is BatchNorm's training step. Row-centric training as published
///          normalises so; this is for comparing with it. For anything else use BatchNorm, which is exact however the map is cut.
/// It keeps no running statistics: evaluation, too, normalises each slab by its own, as PyTorch's without track_running_stats.
/// Shapes:  x [N,C,H,W], weight, bias [C] -> y [N,C,H,W]
/// Errors:  epsilon must be above 0
/// Source:  Wang et al., "LR-CNN", arXiv 2401.11471, whose program calls an ordinary BatchNorm for each slab
template <NormOptions options = NormOptions{}, class Epsilon = std::ratio<1, 100000>>
struct SlabBatchNormWith {
  static_assert(!options.frozen, "lrcnn: a SlabBatchNorm is frozen; it keeps no running statistics that could be used instead; use FrozenBatchNorm");
  static constexpr Layer layer() { return detail::norm_layer(Norm::Over::slab, options, detail::ratio<Epsilon>, Norm{}.momentum, 0); }
};
/// The same with weight and bias.
struct SlabBatchNorm {
  static constexpr Layer layer() { return SlabBatchNormWith<>::layer(); }
};
/// Normalisation over the channels of each pixel, with options.
template <NormOptions options = NormOptions{}, class Epsilon = std::ratio<1, 100000>>
struct LayerNormWith {
  static constexpr Layer layer() { return detail::norm_layer(Norm::Over::channels, options, detail::ratio<Epsilon>, Norm{}.momentum, 0); }
};
/// Normalisation over the channels of each pixel, with weight and bias.
struct LayerNorm {
  static constexpr Layer layer() { return LayerNormWith<>::layer(); }
};
/// "batch_norm", "group_norm", "instance_norm", "layer_norm" or "slab_batch_norm"
constexpr std::string_view norm_name(const Norm& norm) {
  if (norm.over == Norm::Over::batch) return "batch_norm";
  if (norm.over == Norm::Over::channels) return "layer_norm";
  if (norm.over == Norm::Over::slab) return "slab_batch_norm";
  return norm.groups == 0 ? "instance_norm" : "group_norm";
}
namespace detail {
constexpr std::string_view name_of_norm(const Layer& layer) { return norm_name(layer.norm); }
inline std::string norm_groups_text(const Layer& layer) {
  const bool grouped = layer.norm.over == Norm::Over::group && layer.norm.groups != 0;
  return grouped ? ", groups " + std::to_string(layer.norm.groups) : std::string();
}
constexpr Fault fault_of_norm(const Layer& layer, const Shape& in, const Shape&) {
  const Norm& norm = layer.norm;
  if (!(norm.epsilon > 0) || !(norm.momentum >= 0 && norm.momentum <= 1) || norm.groups < 0) return Fault::bad_norm;
  const bool grouped = norm.over == Norm::Over::group && norm.groups > 0;
  return grouped && known(in.c) && in.c % norm.groups != 0 ? Fault::norm_groups : Fault::none;
}
constexpr ParameterShapes parameters_of_norm(const Layer& layer, const Shape& in) {
  ParameterShapes shapes;
  const auto add = [&](Name name, double fill, bool running) {
    shapes.add({.name = name, .extents = {in.c, 1, 1, 1}, .fill = fill, .decay = false, .running = running});
  };
  if (layer.norm.affine) add("weight", layer.norm.weight, false), add("bias", 0, false);
  if (layer.norm.over == Norm::Over::batch) add("running_mean", 0, true), add("running_var", 1, true);
  return shapes;
}
}   // namespace detail
/// `overwrites_gradient` is not set: a norm's gradient takes the place of its output's in full height only, once the whole map's sums are
/// there, and the planner sees to that (plan/emit_backward.hpp).
template <>
inline constexpr LayerRules kind_rules<Kind::norm>{.name = "norm",
                                                   .variant = detail::name_of_norm,
                                                   .details = detail::norm_groups_text,
                                                   .backward = reads_input,
                                                   .overwrites_input = true,
                                                   .takes_activation = true,
                                                   .sums_channels = true,
                                                   .fault = detail::fault_of_norm,
                                                   .parameters = detail::parameters_of_norm};
}   // namespace lrcnn
