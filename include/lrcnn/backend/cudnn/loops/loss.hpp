#pragma once
// Softmax cross entropy of images without leaving the device; losses over pixels are in pixel_loss.hpp.
//
// As SoftmaxCrossEntropy in layer/loss.hpp, in double whatever the elements are. An image's logits are dealt out in
// turn to a few threads, first for their maxima, then for their sums of exponentials; the losses of images are added up
// one by one in their order, so the sum does not depend on how the batch is cut.
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
/// What is known of one part of an image's logits; part 0 also keeps what is known of the whole image.
struct LossPart {
  double sum, image_sum, image_loss;
  int largest, image_largest;
};
/// Threads for the logits of one image, about sixteen logits each.
constexpr Index loss_parts(Index outputs) { return std::clamp<Index>(ceil_div(outputs, Index{16}), 1, 64); }
template <class T>
struct Logits {
  const T* data;
  Index stride_n;
  int outputs;
  Divisor parts;
  LossPart* part;   ///< parts of the first image, of the second, ...
  LRCNN_HOST_DEVICE double at(Index image, int k) const { return static_cast<double>(data[image * stride_n + k]); }
  LRCNN_HOST_DEVICE int step() const { return static_cast<int>(parts.value()); }
  /// Index of the image's largest logit, the first of equals, once those of all parts are known.
  LRCNN_HOST_DEVICE int largest(Index image) const {
    const LossPart* p = part + image * step();
    int best = p[0].largest;
    double top = at(image, best);
    for (int j = 1; j < step(); ++j) {
      const int k = p[j].largest;
      const double value = at(image, k);
      if (value > top || (value == top && k < best)) best = k, top = value;
    }
    return best;
  }
};
/// The largest logit of a part.
template <class T>
struct LargestLoop {
  Logits<T> logits;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index first = unit;
    const Index image = logits.parts.split(first);
    int best = static_cast<int>(first);
    for (int k = best + logits.step(); k < logits.outputs; k += logits.step())
      if (logits.at(image, k) > logits.at(image, best)) best = k;
    logits.part[unit].largest = best;
  }
};
/// The sum of a part's exponentials, the image's largest logit taken off.
template <class T>
struct ExponentialsLoop {
  Logits<T> logits;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index first = unit;
    const Index image = logits.parts.split(first);
    const int largest = logits.largest(image);
    const double top = logits.at(image, largest);
    double sum = 0;
    for (int k = static_cast<int>(first); k < logits.outputs; k += logits.step()) sum += exp(logits.at(image, k) - top);
    logits.part[unit].sum = sum;
    if (first == 0) logits.part[unit].image_largest = largest;
  }
};
/// The loss of an image; not a number if its label is no class.
template <class T>
struct ImageLossLoop {
  Logits<T> logits;
  const std::int32_t* labels;
  LRCNN_HOST_DEVICE void operator()(Index image) const {
    LossPart& own = logits.part[image * logits.step()];
    double sum = 0;
    for (int j = 0; j < logits.step(); ++j) sum += logits.part[image * logits.step() + j].sum;
    own.image_sum = sum;
    const int label = labels[image];
    own.image_loss =
        label < 0 || label >= logits.outputs ? static_cast<double>(NAN) : log(sum) + logits.at(image, own.image_largest) - logits.at(image, label);
  }
};
/// Adds the images to the sums. One thread.
struct TotalLoop {
  const LossPart* part;
  Index parts, images;
  int outputs;
  const std::int32_t* labels;
  LossSums* sums;
  LRCNN_HOST_DEVICE void operator()(Index) const {
    LossSums s = *sums;
    for (Index i = 0; i < images; ++i) {
      s.sum += part[i * parts].image_loss;
      s.correct += part[i * parts].image_largest == labels[i] ? 1 : 0;
      s.invalid_labels += labels[i] < 0 || labels[i] >= outputs ? 1 : 0;
      if (s.sum - s.sum != 0) s.finite = 0;
      s.count += s.finite, s.images += s.finite;
    }
    *sums = s;
  }
};
/// Before the first image.
struct ResetLoop {
  LossSums* sums;
  LRCNN_HOST_DEVICE void operator()(Index) const { *sums = LossSums{}; }
};
/// dx = scale * (softmax - onehot).
template <class T>
struct LossGradientLoop {
  Logits<T> logits;
  const std::int32_t* labels;
  T* dx;
  Index dx_stride_n;
  Divisor outputs;
  double scale;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Index image = outputs.split(unit);
    const int k = static_cast<int>(unit);
    const LossPart& own = logits.part[image * logits.step()];
    const double p = exp(logits.at(image, k) - logits.at(image, own.image_largest)) / own.image_sum;
    dx[image * dx_stride_n + k] = static_cast<T>(scale * (p - (k == labels[image] ? 1.0 : 0.0)));
  }
};
}   // namespace detail
/// Begins the sums anew.
template <class Exec>
void reset_sums(const Exec& exec, LossSums* sums) {
  for_units(exec, 1, detail::ResetLoop{sums});
}
/// Bytes of workspace that softmax_cross_entropy() needs for n images of k logits.
constexpr Index loss_bytes(Index n, Index k) { return n * detail::loss_parts(k) * static_cast<Index>(sizeof(detail::LossPart)); }
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
  const Index n = logits.n, parts = detail::loss_parts(logits.c);
  const detail::Logits<T> all{logits.data, logits.stride_n, static_cast<int>(logits.c), Divisor(parts),
                              reinterpret_cast<detail::LossPart*>(workspace)};
  for_units(exec, n * parts, detail::LargestLoop<T>{all});
  for_units(exec, n * parts, detail::ExponentialsLoop<T>{all});
  for_units(exec, n, detail::ImageLossLoop<T>{all, labels});
  for_units(exec, 1, detail::TotalLoop{all.part, parts, n, all.outputs, labels, sums});
  if (dx.data != nullptr) for_units(exec, n * logits.c, detail::LossGradientLoop<T>{all, labels, dx.data, dx.stride_n, Divisor(logits.c), scale});
}
}   // namespace lrcnn::loops
