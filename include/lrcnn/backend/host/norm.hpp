#pragma once
// Norms over a batch or over groups of channels: once their numbers are known, a scale and a shift for each channel.
//
// The numbers are statistics that slabs were added to before (norm_sums.hpp), or a BatchNorm's running ones. Either way forward is one pass
// over memory, through the activation that follows where a step has one, and so is backward:
//     dx = weight / s * (dy - S1 / M - (x - mean) / s * S2 / M),   s = sqrt(variance + epsilon),  S1 = sum dy,  S2 = sum dy (x - mean) / s
// for a batch; for a group with weight * dy for dy and the weight left out. M: elements of a unit. Running statistics depend on nothing:
// S1 = S2 = 0. LayerNorm is in layer_norm.hpp, SlabBatchNorm in slab_norm.hpp.
// Source: Ioffe and Szegedy, "Batch Normalization", arXiv 1502.03167, section 3; Wu and He, "Group Normalization", arXiv 1803.08494.
#include <lrcnn/backend/host/layer_norm.hpp>
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/norm_sums.hpp>
#include <lrcnn/backend/host/slab_norm.hpp>
namespace lrcnn::host {
namespace detail {
/// The three numbers of a channel in dx = down * dy + across * x + shift.
struct BackwardNumbers {
  double down = 0, across = 0, shift = 0;
};
/// Numbers of channels of one image. Sums over a group are kept from channel to channel.
template <class T>
class BackwardOf {
 public:
  BackwardOf(const ChannelNorm<T>& n, Index i) : n_(n), i_(i) {}
  BackwardNumbers operator()(Index c) {
    const double inverse = n_.inverse(i_, c), down = n_.weight(c) * inverse;
    if (!n_.o.sums) return {down, 0, 0};
    if (n_.batch) sum_ = n_.weight(c) * n_.sums(i_).sum(c), product_ = n_.weight(c) * n_.sums(i_).product(c);
    else if (n_.unit(c) != unit_) add_up(n_.unit(c));
    const auto [across, shift] = across_and_shift(inverse, n_.mean(i_, c), sum_, product_, n_.statistics(i_).count());
    return {down, across, shift};
  }

 private:
  void add_up(Index unit) {
    unit_ = unit, sum_ = product_ = 0;
    for (Index c = unit * n_.unit_channels; c < (unit + 1) * n_.unit_channels; ++c) {
      sum_ += n_.weight(c) * n_.sums(i_).sum(c);
      product_ += n_.weight(c) * n_.sums(i_).product(c);
    }
  }
  const ChannelNorm<T>& n_;
  Index i_, unit_ = -1;
  double sum_ = 0, product_ = 0;
};
}   // namespace detail
/// y = weight * (x - mean) / sqrt(variance + epsilon) + bias, then through the step's activation, with saved = the bits that are positive.
/// Shapes:  x, y [N,C,rows,W], saved as an activation's; statistics as norm_statistics leaves them, complete, or null for running ones
/// Pre:     y or saved may be empty; x may be the same memory as y and may hold more rows
template <class T>
void norm_forward(const Operands<T>& o, int threads) {
  if (o.node->layer.norm.over == Norm::Over::channels) return layer_norm_forward(o, threads);
  if (o.node->layer.norm.over == Norm::Over::slab) return slab_norm_forward(o, threads);
  using A = master_t<T>;
  const detail::ChannelNorm<T> n(o);
  const Index block = o.x.block, elements = o.x.stride_row();
  detail::make_activated(o, o.x.w, block, threads, [&](Index i, Index b, Range rows, auto begin) {
    detail::Strip<A> scale{}, shift{};
    const auto lay_out = [&](Index at) {
      detail::lay_out(scale, n.channels, block, b, at, [&](Index c) { return static_cast<A>(n.scale_and_shift_of(i, c).scale); });
      detail::lay_out(shift, n.channels, block, b, at, [&](Index c) { return static_cast<A>(n.scale_and_shift_of(i, c).shift); });
    };
    const bool regular = 16 % block == 0;
    if (regular) lay_out(0);
    detail::Strip<T> copy;
    for (Index row = rows.begin; row < rows.end; ++row) {
      const T* x = o.x.row(i, b, row);
      const auto write = begin(row);
      detail::for_strips(elements, [&](Index at, Index size) {
        if (!regular) lay_out(at);
        read_ahead(x + at);
        write(at, detail::scaled_strip(scale, shift, detail::whole_strip(x + at, size, copy)), size);
      });
    }
  });
}
/// dx from dy, and from x and sums where there are statistics.
/// Shapes:  dy, dx, x [N,C,rows,W]; statistics and sums complete, or null for running statistics
/// Pre:     dx may be the same memory as dy; x holds dy's rows
/// Post:    writes all rows of dx; rows that dy does not have get 0, and those outside o.part nothing of what the sums give to each
template <class T>
void norm_backward_data(const Operands<T>& o, int threads) {
  if (o.node->layer.norm.over == Norm::Over::channels) return layer_norm_backward_data(o, threads);
  if (o.node->layer.norm.over == Norm::Over::slab) return slab_norm_backward_data(o, threads);
  const detail::ChannelNorm<T> n(o);
  assert((o.statistics == nullptr) == (o.sums == nullptr));
  const Index block = o.dx.block, elements = o.dx.stride_row();
  detail::for_parts(o.dx, elements, threads, [&](Index i, Index b, Range rows) {
    std::array<detail::Strip<master_t<T>>, 3> numbers{};
    detail::Strip<detail::BackwardNumbers> of_place{};
    const auto lay_out = [&](Index at) {
      detail::lay_out(of_place, n.channels, block, b, at, detail::BackwardOf<T>(n, i));
      for (std::size_t e = 0; e < 16; ++e) {
        numbers[0][e] = static_cast<master_t<T>>(of_place[e].down);
        numbers[1][e] = static_cast<master_t<T>>(of_place[e].across);
        numbers[2][e] = static_cast<master_t<T>>(of_place[e].shift);
      }
    };
    const bool regular = 16 % block == 0;
    if (regular) lay_out(0);
    detail::Strip<T> dy_copy, x_copy;
    for (Index row = rows.begin; row < rows.end; ++row) {
      T* dx = o.dx.row(i, b, row);
      if (!o.dy.range().contains({row, row + 1})) {
        std::fill_n(dx, elements, T(0));
        continue;
      }
      const T *dy = o.dy.row(i, b, row), *x = o.sums && o.part.contains({row, row + 1}) ? o.x.row(i, b, row) : nullptr;
      detail::for_strips(elements, [&](Index at, Index size) {
        if (!regular) lay_out(at);
        read_ahead(dy + at);
        write_ahead(dx + at);
        if (x) read_ahead(x + at);
        const T* values = x ? detail::whole_strip(x + at, size, x_copy) : nullptr;
        const T* down = detail::whole_strip(dy + at, size, dy_copy);
        if (size == 16) return detail::combine_strip(numbers, down, values, dx + at);
        detail::combine_strip(numbers, down, values, dy_copy.data());
        std::copy_n(dy_copy.data(), size, dx + at);
      });
    }
  });
}
/// Gradients of weight and bias of a norm without statistics: with running ones, or over channels.
/// Shapes:  dy, x [N,C,rows,W]. Pre: x holds dy's rows. Post: gradients are added to what is there if accumulate, else written.
template <class T>
void norm_backward_parameters(const Operands<T>& o, int threads) {
  if (!o.node->layer.norm.affine) return;
  if (o.node->layer.norm.over == Norm::Over::channels) return layer_norm_backward_parameters(o, threads);
  if (o.node->layer.norm.over == Norm::Over::slab) return slab_norm_backward_parameters(o, threads);
  detail::add_sums(o, o.accumulate, threads);
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::norm, T>{norm_forward<T>, norm_backward_data<T>, norm_backward_parameters<T>};
}   // namespace lrcnn::host
