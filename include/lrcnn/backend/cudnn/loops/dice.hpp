#pragma once
// Dice loss without leaving the device (layer/dice.hpp).
//
// Blocks take parts of an image, 256 pixels at a time: first each thread finds the softmax of a pixel, then threads add up probabilities by class.
// One block for each image adds up the parts in their order and finds the derivatives, and the last loop writes gradients. All in double, and how an
// image is cut depends on its extents alone: bits repeat, and differ from the host's in the order of sums.
#include <lrcnn/backend/cudnn/loops/pixel_logits.hpp>
#include <lrcnn/layer/dice.hpp>
namespace lrcnn::loops {
namespace detail {
/// Pixels of the images that are taken at once.
template <class T>
struct DicePixels {
  PixelLogits<T> all;
  double smooth;
  bool ignores;
  std::int32_t ignored;
  Index of_view, of_batch, images;     ///< the first image's number in the view, the view's in the batch; images
  Divisor positions, columns, parts;   ///< pixels of an image, of a row; parts of an image
  double* memory;
  /// P_k + T_k of each class in a part of an image, then I_k.
  LRCNN_HOST_DEVICE double* sums(Index image, Index part) const { return memory + (image * parts.value() + part) * 2 * all.channels; }
  /// An image's derivatives by each class's probability: at pixels of other labels, then where it is the label.
  LRCNN_HOST_DEVICE double* slopes(Index image) const { return sums(images, 0) + image * 2 * all.channels; }
  /// What a part counts; the first one of an image has its loss.
  LRCNN_HOST_DEVICE LossPart* totals(Index image) const { return reinterpret_cast<LossPart*>(slopes(images)) + image * parts.value(); }
  struct Pixel {
    const T* x;
    T* dx;
    std::int32_t label;
    bool counts;
    LRCNN_HOST_DEVICE double operator()(int k) const { return static_cast<double>(x[k]); }
  };
  LRCNN_HOST_DEVICE Pixel pixel(Index image, Index position) const {
    Index column = position;
    const Index row = columns.split(column), i = of_view + image, at = column * all.channels;
    const std::int32_t label = all.labels.classes[all.row_of_labels(of_batch + i, 0, row) + column];
    return {all.x + i * all.x_stride_n + row * all.x_stride_row + at,
            all.dx != nullptr ? all.dx + i * all.dx_stride_n + row * all.dx_stride_row + at : nullptr, label, !ignores || label != ignored};
  }
};
/// What a part of an image comes to: for each class P_k + T_k and I_k, and how many pixels count and are correct.
template <class T>
struct DiceSumsLoop {
  static constexpr int phases = 2 + tree_phases;
  struct Shared {
    lrcnn::detail::Softmax softmax[block_threads];   ///< of one class: its probability as the sum
    std::int32_t label[block_threads];
    bool counts[block_threads];
    double either[block_threads], both[block_threads];   ///< of a class, by some of the pixels
    int correct[block_threads], count[block_threads];
  };
  DicePixels<T> pixels;
  int width;   ///< threads beside each other, one for each class
  LRCNN_HOST_DEVICE Index rounds(Index) const { return ceil_div(pixels.positions.value(), pixels.parts.value() * block_threads); }
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared, Index round) const {
    Index part = block;
    const Index image = pixels.parts.split(part), first = (round * pixels.parts.value() + part) * block_threads;
    if constexpr (k == 0) {
      if (round == 0) shared.either[thread] = shared.both[thread] = 0, shared.correct[thread] = shared.count[thread] = 0;
      shared.counts[thread] = false;
      if (first + thread < pixels.positions.value()) look_at(image, first + thread, thread, shared);
    } else if constexpr (k == 1) {
      if (thread % width < pixels.all.channels) add_up(image, first, thread, shared);
    } else {
      if (round < rounds(block) - 1) return;
      tree_step<k - 2>(thread, block_threads / 2, width,
                       [&](int own, int other) { shared.either[own] += shared.either[other], shared.both[own] += shared.both[other]; });
      tree_step<k - 2>(thread, block_threads / 2, 1,
                       [&](int own, int other) { shared.correct[own] += shared.correct[other], shared.count[own] += shared.count[other]; });
      if constexpr (k == phases - 1) {
        if (thread < pixels.all.channels) {
          double* const to = pixels.sums(image, part);
          to[thread] = shared.either[thread], to[pixels.all.channels + thread] = shared.both[thread];
        }
        if (thread == 0) pixels.totals(image)[part] = {0, shared.correct[0], shared.count[0], 0};
      }
    }
  }

 private:
  LRCNN_HOST_DEVICE void look_at(Index image, Index position, int thread, Shared& shared) const {
    const auto pixel = pixels.pixel(image, position);
    if (!pixel.counts) return;
    shared.counts[thread] = true, shared.label[thread] = pixel.label;
    if (pixels.all.channels == 1) {
      shared.softmax[thread] = {0, lrcnn::detail::sigmoid(pixel(0))};
      shared.correct[thread] += (pixel(0) > 0) == (pixel.label == 1) ? 1 : 0;
    } else {
      int largest = 0;
      shared.softmax[thread] = lrcnn::detail::softmax_of(pixels.all.channels, pixel, largest);
      shared.correct[thread] += largest == pixel.label ? 1 : 0;
    }
    ++shared.count[thread];
  }
  /// A class's sums over the pixels of a thread.
  LRCNN_HOST_DEVICE void add_up(Index image, Index first, int thread, Shared& shared) const {
    const int classes = pixels.all.channels, k = thread % width;
    double either = shared.either[thread], both = shared.both[thread];
    LRCNN_ROLLED
    for (int i = thread / width; i < block_threads; i += block_threads / width) {
      if (!shared.counts[i]) continue;
      const lrcnn::detail::Softmax& softmax = shared.softmax[i];
      const double p = classes == 1 ? softmax.sum : softmax.probability(pixels.pixel(image, first + i)(k));
      const bool own = lrcnn::detail::is_dice_class(k, classes, shared.label[i]);
      either += p + (own ? 1 : 0), both += own ? p : 0;
    }
    shared.either[thread] = either, shared.both[thread] = both;
  }
};
/// A block for each image: its loss, into the first of its parts, and the derivatives by each class's probability.
template <class T>
struct DiceImageLoop {
  static constexpr int phases = 1 + tree_phases;
  struct Shared {
    double loss[block_threads];
    Index count[block_threads];
  };
  DicePixels<T> pixels;
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index image, int thread, Shared& shared) const {
    if constexpr (k == 0) {
      const int classes = pixels.all.channels;
      shared.count[thread] = thread < pixels.parts.value() ? pixels.totals(image)[thread].count : 0;
      shared.loss[thread] = 0;
      if (thread >= classes) return;
      double either = 0, both = 0;
      LRCNN_ROLLED
      for (Index part = 0; part < pixels.parts.value(); ++part) {
        const double* const from = pixels.sums(image, part);
        either += from[thread], both += from[classes + thread];
      }
      const lrcnn::detail::DiceClass made(both, either, pixels.smooth, classes);
      double* const to = pixels.slopes(image);
      to[thread] = made.absent, to[classes + thread] = made.present, shared.loss[thread] = made.loss;
    } else {
      tree_step<k - 1>(thread, block_threads / 2, 1,
                       [&](int own, int other) { shared.loss[own] += shared.loss[other], shared.count[own] += shared.count[other]; });
      if constexpr (k == phases - 1)
        if (thread == 0) pixels.totals(image)->sum = shared.count[0] > 0 ? shared.loss[0] : 0;
    }
  }
};
/// The gradient of a pixel.
template <class T>
struct DiceGradientLoop {
  DicePixels<T> pixels;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index position = unit;
    const Index image = pixels.positions.split(position);
    const int classes = pixels.all.channels;
    const auto pixel = pixels.pixel(image, position);
    if (!pixel.counts) {
      for (int k = 0; k < classes; ++k) pixel.dx[k] = static_cast<T>(0.0f);
      return;
    }
    const double* const slopes = pixels.slopes(image);
    const auto slope = [&](int k) { return slopes[lrcnn::detail::is_dice_class(k, classes, pixel.label) ? classes + k : k]; };
    const double scale = pixels.all.scale;
    if (classes == 1) {
      const double p = lrcnn::detail::sigmoid(pixel(0));
      pixel.dx[0] = static_cast<T>(scale * (p * (1 - p) * slope(0)));
      return;
    }
    int largest = 0;
    const lrcnn::detail::Softmax softmax = lrcnn::detail::softmax_of(classes, pixel, largest);
    double mean = 0;
    for (int k = 0; k < classes; ++k) mean += softmax.probability(pixel(k)) * slope(k);
    for (int k = 0; k < classes; ++k) pixel.dx[k] = static_cast<T>(scale * (softmax.probability(pixel(k)) * (slope(k) - mean)));
  }
};
}   // namespace detail
/// Bytes of workspace for an image in so many parts.
constexpr Index dice_bytes(Index classes, Index parts) {
  return (parts + 1) * 2 * classes * static_cast<Index>(sizeof(double)) + parts * static_cast<Index>(sizeof(detail::LossPart));
}
/// Parts of an image: about eight turns of a block's threads each, no more than a block can add up and the workspace has room for.
constexpr Index dice_parts(Index classes, Index positions) {
  Index parts = std::clamp<Index>(ceil_div(positions, Index{8 * block_threads}), 1, block_threads);
  while (dice_bytes(classes, parts) > pixel_loss_bytes) --parts;
  return parts;
}
static_assert(DiceLoss::most_classes <= block_threads && dice_parts(DiceLoss::most_classes, Index{1} << 40) >= 64);
/// Dice loss of whole images, the first of which is image `first` of the batch.
/// Shapes:  logits [N,K,H,W] with at most DiceLoss::most_classes channels, dx like logits or empty; labels: of these images at least
/// Pre:     the loss has found the labels good; workspace: pixel_loss_bytes, aligned to 8; logits and dx do not overlap
/// Post:    *sums, if there are some, grows by these images, in their order; dx = the gradient of scale times their sum
template <class Exec, class T>
void dice_loss(const Exec& exec, const DiceLoss& loss, const View<const T>& logits, const PixelLabels& labels, Index first,
               const View<std::type_identity_t<T>>& dx, double scale, LossSums* sums, std::byte* workspace) {
  if (empty(logits)) return;
  assert(channels_last(logits) && channels_last(dx) && logits.rows == labels.height);
  const Index positions = logits.rows * logits.w, parts = dice_parts(logits.c, positions);
  const Index at_once = std::min(logits.n, pixel_loss_bytes / dice_bytes(logits.c, parts));
  for (Index i = 0; i < logits.n; i += at_once) {
    const Index images = std::min(at_once, logits.n - i);
    const detail::DicePixels<T> pixels{pixel_logits(logits, labels, dx, scale),
                                       loss.smooth,
                                       loss.ignore.has_value(),
                                       loss.ignore.value_or(0),
                                       i,
                                       first,
                                       images,
                                       Divisor(positions),
                                       Divisor(logits.w),
                                       Divisor(parts),
                                       reinterpret_cast<double*>(workspace)};
    for_blocks(exec, images * parts, detail::DiceSumsLoop<T>{pixels, power_above(logits.c)});
    for_blocks(exec, images, detail::DiceImageLoop<T>{pixels});
    if (sums != nullptr) for_blocks(exec, 1, detail::TotalLoop{pixels.totals(0), images * parts, 1 / static_cast<double>(parts), sums});
    if (dx.data != nullptr) for_units(exec, images * positions, detail::DiceGradientLoop<T>{pixels});
  }
}
}   // namespace lrcnn::loops
