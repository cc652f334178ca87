#pragma once
// Softmax cross entropy of images without leaving the device; losses over pixels are in pixel_loss.hpp.
//
// As SoftmaxCrossEntropy in layer/loss.hpp, in double whatever the elements are. An image's logits are dealt out in
// turn to a few threads, first for their maxima, then for their sums of exponentials; the losses of images are added up
// one by one in their order, so the sum does not depend on how the batch is cut.
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/layer/loss.hpp>
namespace lrcnn::loops {
/// LossResult in the device's memory.
struct LossSums {
  double sum = 0;
  long long correct = 0;
  long long count = 0;            ///< images, or pixels, before the first whose loss is not finite
  double images = 0;              ///< likewise; of a loss over pixels each row is a part of one
  long long invalid_labels = 0;   ///< that are no class
  int finite = 1;
};
/// Images before the first whose loss is not finite.
inline Index whole_images(const LossSums& sums) { return static_cast<Index>(sums.images + 1e-6); }   // rows add up to almost one
inline LossResult result_of(const LossSums& sums) { return {sums.sum, sums.correct, sums.count}; }
namespace detail {
/// What some pixels, or an image, come to.
struct LossPart {
  double sum;
  int correct, count, invalid;   ///< invalid: labels that are no class
};
/// Threads for the logits of one image, about sixteen logits each.
constexpr Index loss_parts(Index outputs) { return std::clamp<Index>(ceil_div(outputs, Index{16}), 1, 64); }
/// Images with some threads each: losses, and dx = scale * (softmax - onehot).
template <class T>
struct SoftmaxLoop {
  static constexpr int phases = 3;
  struct Shared {
    double top[block_threads], sum[block_threads];
    int largest[block_threads];
  };
  const T* data;
  Index stride_n, images;
  int outputs, parts, width;   ///< parts: threads that take logits; width: threads of an image
  const std::int32_t* labels;
  T* dx;   ///< null if not wanted
  Index dx_stride_n;
  double scale;
  LossPart* to;
  Index blocks() const { return ceil_div(images, Index{block_threads / width}); }
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const int row = thread / width, first = row * width, part = thread - first;
    const Index image = block * (block_threads / width) + row;
    if (image >= images) return;
    const T* x = data + image * stride_n;
    if constexpr (k == 0) {
      if (part < parts) find_largest(x, part, shared.largest[thread], shared.top[thread]);
    } else if constexpr (k == 1) {
      const double top = static_cast<double>(x[largest(shared, first)]);
      double sum = 0;
      for (int i = part; part < parts && i < outputs; i += parts) sum += std::exp(static_cast<double>(x[i]) - top);
      shared.sum[thread] = sum;
    } else {
      double sum = 0;
      for (int p = 0; p < parts; ++p) sum += shared.sum[first + p];
      const int best = largest(shared, first), label = labels[image];
      const lrcnn::detail::Softmax softmax{static_cast<double>(x[best]), sum};
      if (part == 0) {
        const bool invalid = label < 0 || label >= outputs;
        const double loss = invalid ? static_cast<double>(NAN) : softmax.loss(static_cast<double>(x[label]));
        to[image] = {loss, best == label ? 1 : 0, 1, invalid ? 1 : 0};
      }
      for (int i = part; dx != nullptr && i < outputs; i += width) {
        dx[image * dx_stride_n + i] = static_cast<T>(scale * softmax.derivative(static_cast<double>(x[i]), i == label));
      }
    }
  }

 private:
  /// The largest logit of a part.
  LRCNN_HOST_DEVICE void find_largest(const T* x, int part, int& best, double& top) const {
    best = part, top = static_cast<double>(x[part]);
    for (int i = part + parts; i < outputs; i += parts) {
      const double value = static_cast<double>(x[i]);
      if (value > top) best = i, top = value;
    }
  }
  /// Index of the image's largest logit, the first of equals.
  LRCNN_HOST_DEVICE int largest(const Shared& shared, int first) const {
    int best = shared.largest[first];
    double top = shared.top[first];
    for (int p = 1; p < parts; ++p) {
      const int k = shared.largest[first + p];
      const double value = shared.top[first + p];
      if (value > top || (value == top && k < best)) best = k, top = value;
    }
    return best;
  }
};
/// Adds parts to the sums, the losses in their order. One block.
struct TotalLoop {
  static constexpr int phases = 3 + tree_phases;
  struct Shared {
    LossSums sums;
    double sum[block_threads];
    int parts[block_threads];
    long long correct[block_threads], count[block_threads], invalid[block_threads];
  };
  const LossPart* from;
  Index parts;
  double share;   ///< of an image, that a part is
  LossSums* sums;
  LRCNN_HOST_DEVICE Index rounds(Index) const { return ceil_div(parts, Index{block_threads}); }
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared, Index round) const {
    const Index at = round * block_threads + thread;
    if constexpr (k == 0) {
      const LossPart part = at < parts ? from[at] : LossPart{0, 0, 0, 0};
      shared.sum[thread] = part.sum, shared.correct[thread] = part.correct, shared.count[thread] = part.count, shared.invalid[thread] = part.invalid;
      if (thread == 0 && round == 0) shared.sums = *sums;
    } else if constexpr (k == 1) {   // sums so far, one after the other
      double sum = shared.sums.sum;
      for (int i = 0; thread == 0 && i < block_threads; ++i) sum += shared.sum[i], shared.sum[i] = sum;
    } else if constexpr (k == 2) {
      const bool finite = shared.sums.finite != 0 && shared.sum[thread] - shared.sum[thread] == 0;
      shared.parts[thread] = finite && at < parts ? 1 : 0;
      if (!finite) shared.count[thread] = 0;
    } else {
      tree_step<k - 3>(thread, block_threads / 2, 1, [&](int own, int other) {
        shared.parts[own] += shared.parts[other], shared.count[own] += shared.count[other];
        shared.correct[own] += shared.correct[other], shared.invalid[own] += shared.invalid[other];
      });
      if constexpr (k == phases - 1)
        if (thread == 0) add(shared, round == rounds(block) - 1);
    }
  }

 private:
  LRCNN_HOST_DEVICE void add(Shared& shared, bool last) const {
    LossSums& s = shared.sums;
    s.sum = shared.sum[block_threads - 1];
    s.finite = s.finite != 0 && s.sum - s.sum == 0 ? 1 : 0;
    s.correct += shared.correct[0], s.count += shared.count[0], s.invalid_labels += shared.invalid[0];
    s.images += share * shared.parts[0];
    if (last) *sums = s;
  }
};
/// Before the first image.
struct ResetLoop {
  LossSums* sums;
  LRCNN_HOST_DEVICE void operator()(Index) const { *sums = LossSums{}; }
};
}   // namespace detail
/// Begins the sums anew.
template <class Exec>
void reset_sums(const Exec& exec, LossSums* sums) {
  for_units(exec, 1, detail::ResetLoop{sums});
}
/// Bytes of workspace that softmax_cross_entropy() needs for n images of however many logits.
constexpr Index loss_bytes(Index n, Index) { return n * static_cast<Index>(sizeof(detail::LossPart)); }
/// -log softmax(logits)[label], summed; dx = scale * (softmax - onehot).
/// Shapes:  logits [N,K,1,1], labels [N], dx like logits or empty; labels, sums: in the device's memory
/// Pre:     workspace: loss_bytes(N, K) bytes, aligned to 8; logits and dx do not overlap
/// Post:    *sums grows by these images, in their order; the first of equally large logits counts as the largest.
///          A label outside [0,K) makes the sum not a number, and is counted
template <class Exec, class T>
void softmax_cross_entropy(const Exec& exec, const View<const T>& logits, const std::int32_t* labels, const View<std::type_identity_t<T>>& dx,
                           double scale, LossSums* sums, std::byte* workspace) {
  if (empty(logits)) return;
  assert(channels_last(logits) && channels_last(dx) && logits.rows == 1 && logits.w == 1);
  auto* parts = reinterpret_cast<detail::LossPart*>(workspace);
  const int threads = static_cast<int>(detail::loss_parts(logits.c));
  const detail::SoftmaxLoop<T> loop{
      logits.data, logits.stride_n, logits.n, static_cast<int>(logits.c), threads, power_above(threads), labels, dx.data, dx.stride_n, scale, parts};
  for_blocks(exec, loop.blocks(), loop);
  for_blocks(exec, 1, detail::TotalLoop{parts, logits.n, 1, sums});
}
}   // namespace lrcnn::loops
