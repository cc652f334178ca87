#pragma once
// Losses over pixels without leaving the device: those of layer/pixel_loss.hpp that are local to rows.
//
// A row is dealt out in turn to the threads of a block, column by column; what they come to is added up in a tree, then rows in their order,
// in double whatever the elements are. So the gradient is the host's, and the sum differs from the host's in its last bits only. Rows are
// taken so many at a time that what they come to fits into a workspace of a fixed size.
#include <lrcnn/backend/cudnn/device_loss.hpp>
#include <lrcnn/backend/cudnn/loops/dice.hpp>
namespace lrcnn::loops {
using cudnn::DeviceLoss, cudnn::PixelClassLoss;
namespace detail {
/// One pixel of a loss over elements.
template <class T, class L>
struct PixelRule {
  L loss;
  LRCNN_HOST_DEVICE void operator()(const PixelLogits<T>& all, const T* x, T* dx, Index image, Index row, Index column, LossPart& part) const {
    for (int k = 0; k < all.channels; ++k) {
      const Index at = all.row_of_labels(image, k, row) + column;
      const double target = all.labels.values != nullptr ? static_cast<double>(all.labels.values[at]) : static_cast<double>(all.labels.classes[at]);
      const auto e = loss.element(static_cast<double>(x[k]), target);
      part.sum += e.loss, part.correct += e.correct ? 1 : 0, ++part.count;
      if (dx != nullptr) dx[k] = static_cast<T>(all.scale * e.derivative);
    }
  }
};
template <class T>
struct PixelRule<T, PixelClassLoss> {
  PixelClassLoss loss;
  LRCNN_HOST_DEVICE void operator()(const PixelLogits<T>& all, const T* x, T* dx, Index image, Index row, Index column, LossPart& part) const {
    const std::int32_t label = all.labels.classes[all.row_of_labels(image, 0, row) + column];
    if (loss.ignores && label == loss.ignored) {
      for (int k = 0; dx != nullptr && k < all.channels; ++k) dx[k] = static_cast<T>(0.0f);
      return;
    }
    const auto logit = [&](int k) { return static_cast<double>(x[k]); };
    const double weight = loss.weight(label);
    int largest = 0;
    const lrcnn::detail::Softmax softmax = lrcnn::detail::softmax_of(all.channels, logit, largest);
    part.sum += weight * softmax.loss(logit(label));
    part.correct += largest == label ? 1 : 0, ++part.count;
    for (int k = 0; dx != nullptr && k < all.channels; ++k) dx[k] = static_cast<T>(all.scale * weight * softmax.derivative(logit(k), k == label));
  }
};
}   // namespace detail
/// Rows that a loss goes through at once, with some threads each.
template <class T>
struct LossStrip {
  PixelLogits<T> all;
  Divisor rows;
  Index first_row, first_image, count;   ///< of this strip among the view's rows; of the view among the batch's images; rows
  int width;                             ///< threads of a row
  detail::LossPart* to;
  Index blocks() const { return ceil_div(count, Index{block_threads / width}); }
};
namespace detail {
/// A rule that may find labels that are no class.
template <class R>
concept SeesLabels = requires {
  requires R::sees_labels;
};
/// The rows of a strip, and what they come to.
template <class T, class L>
struct PixelLossLoop {
  using Rule = PixelRule<T, L>;
  static constexpr int phases = 1 + tree_phases;
  struct Shared {
    double sum[block_threads];
    int correct[block_threads], count[block_threads], invalid[SeesLabels<Rule> ? block_threads : 1];
  };
  LossStrip<T> strip;
  Rule rule;
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const int width = strip.width, below = thread / width, first = below * width;
    const Index place = block * (block_threads / width) + below;
    if constexpr (k == 0) {
      LossPart part{0, 0, 0, 0};
      if (place < strip.count) add_up(strip.first_row + place, thread - first, part);
      shared.sum[thread] = part.sum, shared.correct[thread] = part.correct, shared.count[thread] = part.count;
      if constexpr (SeesLabels<Rule>) shared.invalid[thread] = part.invalid;
    } else {
      tree_step<k - 1>(thread, width / 2, 1, [&](int own, int other) {
        shared.sum[own] += shared.sum[other], shared.correct[own] += shared.correct[other], shared.count[own] += shared.count[other];
        if constexpr (SeesLabels<Rule>) shared.invalid[own] += shared.invalid[other];
      });
      if constexpr (k == phases - 1)
        if (thread == first && place < strip.count)
          strip.to[place] = {shared.sum[thread], shared.correct[thread], shared.count[thread], invalid(shared, thread)};
    }
  }

 private:
  LRCNN_HOST_DEVICE static int invalid([[maybe_unused]] const Shared& shared, [[maybe_unused]] int thread) {
    if constexpr (SeesLabels<Rule>) return shared.invalid[thread];
    else return 0;
  }
  LRCNN_HOST_DEVICE void add_up(Index row, int column, LossPart& part) const {
    const PixelLogits<T>& all = strip.all;
    const Index image = strip.rows.split(row);
    const T* x = all.x + image * all.x_stride_n + row * all.x_stride_row;
    T* dx = all.dx != nullptr ? all.dx + image * all.dx_stride_n + row * all.dx_stride_row : nullptr;
    for (; column < all.width; column += strip.width) {
      const Index at = static_cast<Index>(column) * all.channels;
      rule(all, x + at, dx != nullptr ? dx + at : nullptr, strip.first_image + image, row, column, part);
    }
  }
};
}   // namespace detail
/// A loss of some rows of some images, the first of which is image `first` of the batch. start(strip) starts a PixelLossLoop over a strip.
/// Shapes:  logits [N,K,rows,W], dx like logits or empty; labels as the loss wants them, of the whole batch or at least these rows
/// Pre:     the loss has found the labels good; workspace: pixel_loss_bytes, aligned to 8; logits and dx do not overlap
/// Post:    *sums, if there are some, grows by these rows, in their order; dx = the gradient of scale times their sum. A row of
///          H counts as 1 / H of an image
template <class Exec, class T, class Start>
void loss_by_strips(const Exec& exec, const View<const T>& logits, const PixelLabels& labels, Index first, const View<std::type_identity_t<T>>& dx,
                    double scale, LossSums* sums, std::byte* workspace, Start start) {
  if (empty(logits)) return;
  const PixelLogits<T> all = pixel_logits(logits, labels, dx, scale);
  auto* parts = reinterpret_cast<detail::LossPart*>(workspace);
  const int width = power_above(std::min<Index>(logits.w, block_threads));
  const Index rows = logits.n * logits.rows;
  for (Index row = 0; row < rows; row += pixel_loss_rows) {
    const Index count = std::min(pixel_loss_rows, rows - row);
    start(LossStrip<T>{all, Divisor(logits.rows), row, first, count, width, parts});
    if (sums != nullptr) for_blocks(exec, 1, detail::TotalLoop{parts, count, 1 / static_cast<double>(labels.height), sums});
  }
}
/// One of the library's losses over pixels; DiceLoss is given whole maps.
template <class Exec, class T>
void pixel_loss(const Exec& exec, const DeviceLoss& loss, const View<const T>& logits, const PixelLabels& labels, Index first,
                const View<std::type_identity_t<T>>& dx, double scale, LossSums* sums, std::byte* workspace) {
  const auto by_strips = [&]<class L>(const L& rule) {
    loss_by_strips(exec, logits, labels, first, dx, scale, sums, workspace, [&](const LossStrip<T>& strip) {
      for_blocks(exec, strip.blocks(), detail::PixelLossLoop<T, L>{strip, {rule}});
    });
  };
  std::visit(
      [&]<class L>(const L& rule) {
        if constexpr (std::is_same_v<L, DiceLoss>) dice_loss(exec, rule, logits, labels, first, dx, scale, sums, workspace);
        else by_strips(rule);
      },
      loss);
}
}   // namespace lrcnn::loops
