#pragma once
// Losses of a program's own on a device: the loop that a .cu file of the program compiles of a loss's functor (layer/sample_loss.hpp).
//
// It is that of the library's losses over pixels (pixel_loss.hpp); an image is a map of one pixel. One thread takes a sample at a time, so the
// gradient is the host's; images are added up in their order, and pixels of a row in a tree.
#include <lrcnn/backend/cudnn/loops/custom_policy.hpp>
#include <lrcnn/backend/cudnn/loops/pixel_loss.hpp>
#include <lrcnn/layer/sample_loss.hpp>
#include <type_traits>
namespace lrcnn {
namespace loops::detail {
template <class F>
struct CompiledFunctor {};
template <class T, class F>
struct PixelRule<T, CompiledFunctor<F>> {
  static constexpr bool sees_labels = true;
  F functor;
  LRCNN_HOST_DEVICE void operator()(const PixelLogits<T>& all, const T* x, T* dx, Index image, Index row, Index column, LossPart& part) const {
    LossSample<T, lrcnn::detail::ChannelsTogether> sample(all.channels, x, {}, dx, {}, all.scale);
    const Index at = all.row_of_labels(image, 0, row) + column;
    if constexpr (lrcnn::detail::TakesTargets<F>) {
      sample.set_targets(all.labels.values + at, all.labels.rows * all.labels.width);
    } else {
      sample.label = all.labels.classes[at];
      if (all.labels.unseen && (sample.label < 0 || sample.label >= all.channels)) return refuse(sample, part);
    }
    lrcnn::detail::take_sample(functor, sample,
                               [&](const SampleLoss& own) { part.sum += own.loss, part.correct += own.correct ? 1 : 0, ++part.count; });
  }

 private:
  /// A label that is no class, and no index either.
  template <class S>
  LRCNN_HOST_DEVICE static void refuse(const S& sample, LossPart& part) {
    for (Index k = 0; k < sample.channels; ++k) sample.gradient(k, 0);
    part.sum = static_cast<double>(NAN), ++part.count, ++part.invalid;
  }
};
}   // namespace loops::detail
namespace detail {
template <class F, class T>
void loss_loop(const F& functor, const loops::LossStrip<T>& strip, void* stream) {
  loops::for_blocks(custom_policy(stream), strip.blocks(), loops::detail::PixelLossLoop<T, loops::detail::CompiledFunctor<F>>{strip, {functor}});
}
}   // namespace detail
template <class F>
const CustomDeviceLoss<F>& loss_on_device() {
  static_assert(
      std::is_trivially_copyable_v<F> && sizeof(F) <= 2048,
      "lrcnn: the functor of a loss is handed to a kernel byte by byte; let it hold numbers alone, in arrays of a fixed size, 2 kB at most");
  static constexpr CustomDeviceLoss<F> loops{detail::loss_loop<F, float>, detail::loss_loop<F, float16>, detail::loss_loop<F, bfloat16>};
  return loops;
}
}   // namespace lrcnn
