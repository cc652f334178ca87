#pragma once
// Losses of the user's own, from a functor of one sample, which the host's loops and a device's call alike. A sample is an image, or a pixel of
// a map.
//
//     struct SquaredHinge {   // sum over classes of max(0, margin - t z)^2, t = 1 for the label's class and -1 for all others
//       static constexpr std::string_view name = "squared_hinge";
//       double margin = 1;
//       template <class S>
//       LRCNN_HOST_DEVICE SampleLoss loss(const S& s) const {
//         SampleLoss result{.correct = s.largest() == s.label};
//         for (Index k = 0; k < s.channels; ++k) {
//           const double t = k == s.label ? 1 : -1, gap = margin - t * s.logit(k);
//           if (gap > 0) result.loss += gap * gap;
//           s.gradient(k, gap > 0 ? -2 * t * gap : 0);
//         }
//         return result;
//       }
//     };
//     Trainer<LeNet<10>, Policy<Share<4>>, Cudnn, ImageLoss<SquaredHinge>> trainer(input, Sgd{}, {}, {{.margin = 2}});
//
// PixelLoss<SquaredHinge> is the same over the pixels of a map. For a GPU the functor says on_device, and one .cu file of the program compiles
// its loop (backend/cudnn/custom_loops.hpp):
//
//     template const lrcnn::CustomDeviceLoss<SquaredHinge>& lrcnn::loss_on_device<SquaredHinge>();
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
namespace lrcnn {
/// What a functor finds of a sample.
struct SampleLoss {
  double loss = 0;
  bool correct = false;   ///< for the accuracy
};
namespace detail {
/// Where the channels of a place lie, from the first one on: one behind the other, as on a device, or in blocks.
struct ChannelsTogether {
  LRCNN_HOST_DEVICE Index operator()(Index k) const { return k; }
};
struct ChannelsInBlocks {
  Index block = 1, stride = 0;
  LRCNN_HOST_DEVICE Index operator()(Index k) const { return k / block * stride + k % block; }
};
}   // namespace detail
/// What a functor sees of one sample. Functors are templates over it.
template <class T, class At>
class LossSample {
 public:
  Index channels = 0;       ///< of the network's output
  std::int32_t label = 0;   ///< its class, 0 .. channels - 1 (of a mask for an output of one channel, 0 or 1); 0 if labels are targets
  LRCNN_HOST_DEVICE double logit(Index k) const { return static_cast<double>(x_[at_x_(k)]); }
  /// Pre: F::targets.
  LRCNN_HOST_DEVICE double target(Index k) const { return static_cast<double>(targets_[k * plane_]); }
  /// Says what the derivative of the sample's loss by its logit k is. To be called for each channel, after logit(k) has been asked for last.
  LRCNN_HOST_DEVICE void gradient(Index k, double derivative) const {
    if (dx_ != nullptr) dx_[at_dx_(k)] = static_cast<T>(scale_ * derivative);
  }
  /// The channel of the largest logit, the first of equals.
  LRCNN_HOST_DEVICE Index largest() const {
    Index best = 0;
    for (Index k = 1; k < channels; ++k)
      if (logit(k) > logit(best)) best = k;
    return best;
  }

  // ---- for the library's loops -------------------------------------------------------------------------------------
  /// `dx`: null if no gradient is wanted; it is of `scale` times the loss.
  LRCNN_HOST_DEVICE LossSample(Index count, const T* x, At at_x, T* dx, At at_dx, double scale)
      : channels(count), x_(x), dx_(dx), at_x_(at_x), at_dx_(at_dx), scale_(scale) {}
  /// The target of its first channel; those of others are `plane` elements apart.
  LRCNN_HOST_DEVICE void set_targets(const float* targets, Index plane) { targets_ = targets, plane_ = plane; }
  LRCNN_HOST_DEVICE void weigh(double weight) { scale_ *= weight; }

 private:
  const T* x_;
  T* dx_;
  const float* targets_ = nullptr;
  Index plane_ = 0;
  At at_x_, at_dx_;
  double scale_;
};
/// A functor of one sample.
///
///     static constexpr std::string_view name          // of the loss
///     SampleLoss loss(const S& sample) const          // a template; calls sample.gradient() for each channel
///     static constexpr bool targets = true;           // only of PixelLoss: labels are targets, not masks; may be left out
///     bool counts(std::int32_t label) const           // only for masks: whether pixels of that label count, whatever it is; may be left out: all
///     double weight(std::int32_t label) const         // only for masks: of a class, at least 0; may be left out: 1
///
/// All functions are marked LRCNN_HOST_DEVICE where the loss is for a GPU. A functor is copied freely, to a device byte by byte: it holds numbers.
template <class F>
concept SampleFunctor = requires(const F& f, const LossSample<float, detail::ChannelsTogether>& sample) {
  { F::name } -> std::convertible_to<std::string_view>;
  { f.loss(sample) } -> std::same_as<SampleLoss>;
};
namespace detail {
template <class F>
concept TakesTargets = requires {
  requires F::targets;
};
template <class F>
concept LeavesOut = requires(const F& f) {
  { f.counts(std::int32_t{}) } -> std::same_as<bool>;
};
template <class F>
concept Weighs = requires(const F& f) {
  { f.weight(std::int32_t{}) } -> std::convertible_to<double>;
};
template <class F>
LRCNN_HOST_DEVICE bool counts_label(const F& f, std::int32_t label) {
  if constexpr (LeavesOut<F>) return f.counts(label);
  else return true;
}
template <class F>
LRCNN_HOST_DEVICE double weight_of_label(const F& f, std::int32_t label) {
  if constexpr (Weighs<F>) return f.weight(label);
  else return 1;
}
/// Calls take(SampleLoss) if the sample counts. Post: the sample's gradient is written.
template <class F, class S, class Take>
LRCNN_HOST_DEVICE void take_sample(const F& f, S& sample, Take take) {
  if (!counts_label(f, sample.label)) {
    for (Index k = 0; k < sample.channels; ++k) sample.gradient(k, 0);
    return;
  }
  if constexpr (Weighs<F>) {
    const double weight = f.weight(sample.label);
    sample.weigh(weight);
    SampleLoss of_sample = f.loss(sample);
    of_sample.loss *= weight;
    take(of_sample);
  } else {
    take(f.loss(sample));
  }
}
/// Adds up the samples of a row: calls prepare(sample, column) before each.
template <class F, class T, class Prepare>
LossResult row_of_samples(const F& f, const View<const T>& logits, Index image, Index row, const View<T>& dx, double scale, Prepare prepare) {
  LossResult own;
  const T* const x = logits.row(image, 0, row);
  T* const to = dx.data ? dx.row(image, 0, row) : nullptr;
  for (Index column = 0; column < logits.w; ++column) {
    LossSample<T, ChannelsInBlocks> sample(logits.c, x + column * logits.block, {logits.block, logits.stride_c},
                                           to ? to + column * dx.block : nullptr, {dx.block, dx.stride_c}, scale);
    prepare(sample, column);
    take_sample(f, sample, [&](const SampleLoss& of_sample) { own.sum += of_sample.loss, own.correct += of_sample.correct, ++own.count; });
  }
  for (Index k = dx.c; to && k < round_up(dx.c, dx.block); ++k)   // channels that only storage has
    for (Index column = 0; column < dx.w; ++column) dx(image, k, row, column) = static_cast<T>(0);
  return own;
}
}   // namespace detail
/// The mean over images of a functor's loss; labels are classes.
template <SampleFunctor F>
struct ImageLoss {
  static_assert(!detail::TakesTargets<F> && !detail::LeavesOut<F> && !detail::Weighs<F>,
                "lrcnn: an ImageLoss has one class for each image, and all images count the same; use PixelLoss, or leave targets, counts() and "
                "weight() out of the functor");
  using Functor = F;
  static constexpr std::string_view name = F::name;
  F functor{};
  /// Shapes:  logits [N,K,1,1], labels [N] in [0,K) (the caller has checked), dx like logits or empty
  template <class T>
  void operator()(const View<const T>& logits, std::span<const std::int32_t> labels, const View<T>& dx, double scale, LossResult& result) const {
    for (Index i = 0; i < logits.n; ++i)
      result += detail::row_of_samples(functor, logits, i, 0, dx, scale, [&](auto& sample, Index) { sample.label = item(labels, i); });
  }
};
/// The mean over the pixels of a map that count, each with the weight of its class, of a functor's loss. Local to rows: see DenseLoss.
template <SampleFunctor F>
struct PixelLoss {
  static constexpr bool targets = detail::TakesTargets<F>;
  static_assert(!targets || (!detail::LeavesOut<F> && !detail::Weighs<F>),
                "lrcnn: counts() and weight() of a loss's functor are asked for labels of masks; leave them out, or take masks");
  using Functor = F;
  static constexpr std::string_view name = F::name;
  F functor{};
  friend bool operator==(const PixelLoss& a, const PixelLoss& b) requires std::equality_comparable<F> { return a.functor == b.functor; }
  /// The weights of all pixels that count.
  /// Errors:  DataError if a label that counts is no class, a target is not finite, or labels are of the other kind
  double total(const Labels& labels, const Shape& output) const {
    if constexpr (targets) {
      detail::count_numbers(name, labels, output);
      return static_cast<double>(output.n * output.h * output.w);
    } else {
      if (labels.kind() != LabelKind::pixels)
        throw DataError(error_text("targets are given to the loss '" + std::string(name) + "'", "its functor is given a class for each pixel",
                                   "give Labels::of_pixels, or let the functor say targets"));
      return detail::with_counts(std::max<Index>(2, output.c), [&](std::span<Index> count) {
        if constexpr (detail::LeavesOut<F>) count_some(labels, output, count);
        else detail::count_classes(labels, output, {}, count);
        double sum = 0;
        for (std::int32_t k = 0; k < static_cast<std::int32_t>(count.size()); ++k)
          if (item(count, k) > 0) sum += detail::weight_of_label(functor, k) * static_cast<double>(item(count, k));
        return sum;
      });
    }
  }
  /// Labels that were read again since total() has seen them, before a device uses them as indices.
  /// Errors:  DataError if a label of these rows counts and is no class
  void check_again(const Labels& labels, Index channels, Range images, Range rows) const requires(!targets) {
    for (Index i = images.begin; i < images.end; ++i)
      for (Index row = rows.begin; row < rows.end; ++row)
        for (Index x = 0; x < labels.width(); ++x) check(labels.classes(i, row)[x], channels, i, row, x);
  }
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    for (Index i = 0; i < logits.n; ++i)
      for (Index row = logits.row0; row < logits.row0 + logits.rows; ++row) {
        if constexpr (targets) {
          const float* const values = labels.values(first + i, 0, row);
          const Index plane = logits.c > 1 ? labels.values(first + i, 1, row) - values : 0;
          result += detail::row_of_samples(functor, logits, i, row, dx, scale, [&](auto& sample, Index x) { sample.set_targets(values + x, plane); });
        } else {
          const std::int32_t* const classes = labels.classes(first + i, row);
          result += detail::row_of_samples(functor, logits, i, row, dx, scale, [&](auto& sample, Index x) {
            check(classes[x], logits.c, first + i, row, x);   // labels by rows may have changed
            sample.label = classes[x];
          });
        }
      }
  }

 private:
  void check(std::int32_t label, Index channels, Index image, Index row, Index column) const {
    if (detail::counts_label(functor, label)) detail::check_class(label, channels, image, row, column);
  }
  /// Counts the pixels of each class that count.
  void count_some(const Labels& labels, const Shape& output, std::span<Index> count) const {
    std::fill(count.begin(), count.end(), 0);
    for (Index i = 0; i < output.n; ++i)
      for (Index row = 0; row < output.h; ++row) {
        const std::int32_t* const classes = labels.classes(i, row);
        for (Index x = 0; x < output.w; ++x) {
          check(classes[x], output.c, i, row, x);
          if (functor.counts(classes[x])) ++item(count, classes[x]);
        }
      }
  }
};
}   // namespace lrcnn
