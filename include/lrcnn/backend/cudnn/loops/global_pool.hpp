#pragma once
// Global average pooling, fed by rows.
//
// Each row is summed by itself, with the host's partial sums, and added to what y holds; at the map's last row y is
// divided. So float and double give the host's bits however rows are cut. Two-byte elements would lose most of such a
// sum, or overflow: there y grows by each slab's share of the mean, rounded once per slab.
#include <lrcnn/backend/cudnn/loops/lines.hpp>
#include <lrcnn/backend/concepts.hpp>
namespace lrcnn::loops {
namespace detail {
/// One channel of one image: y = (accumulate ? y : 0) + the sum of x's rows, divided at the end.
template <class T>
struct GlobalPoolLoop {
  using A = master_t<T>;
  static constexpr bool two_byte = sizeof(T) == 2;
  const T* x;
  T* y;
  Index x_stride_n, y_stride_n, row_count;
  Divisor channels;
  int w;
  A count;
  bool accumulate, last, wide;   ///< wide: blocks of this many channels have one running sum on the host
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index c = unit;
    const Index image = channels.split(c), step = channels.value();
    const T* from = x + image * x_stride_n + c;
    T* to = y + image * y_stride_n + c;
    A total = accumulate && !two_byte ? static_cast<A>(*to) : A(0);
    for (Index row = 0; row < row_count; ++row, from += w * step) total += wide ? row_sum<1>(from) : row_sum<8>(from);
    if constexpr (two_byte) {
      *to = static_cast<T>((accumulate ? static_cast<A>(*to) : A(0)) + total / count);
    } else {
      *to = last ? total / count : total;
    }
  }
  /// The sum of a row, in running sums by column modulo their number.
  template <int parts>
  LRCNN_HOST_DEVICE A row_sum(const T* from) const {
    const Index step = channels.value();
    A sum[parts] = {};
    int column = 0;
    for (; column + parts <= w; column += parts)
      for (int p = 0; p < parts; ++p) sum[p] += static_cast<A>(from[(column + p) * step]);
    for (; column < w; ++column) sum[0] += static_cast<A>(from[column * step]);
    for (int p = 1; p < parts; ++p) sum[0] += sum[p];
    return sum[0];
  }
};
/// dx = dy / (H*W).
template <class T>
struct GlobalPoolBackwardLoop {
  using A = master_t<T>;
  Lines lines;
  Line<T> dx;
  const T* dy;
  Index dy_stride_n;
  Divisor image, channels;
  A count;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    Index rest = p.first;   // of an image, if all images are one line
    const Index i = p.image + image.split(rest);
    channels.split(rest);
    const T* from = dy + i * dy_stride_n;
    A share[Lines::width];
    Index at = p.first - (i - p.image) * image.value();
    for (int v = 0; v < Lines::width; ++v) {
      share[v] = v < p.count ? static_cast<A>(from[rest]) / count : A(0);
      if (++rest == channels.value()) rest = 0;
      if (++at == image.value()) at = 0, from += dy_stride_n;
    }
    store(dx.at(p), p.count, lines.packs(), share);
  }
};
}  // namespace detail
/// As host::global_pool_forward: y = (accumulate ? y : 0) + the sum of x's rows; divided by H*W at the last row.
/// Shapes:  x [N,C,rows,W] -> y [N,C,1,1]. Pre: slabs come from the top down
/// Post:    float, double: the same bits however rows are cut; two bytes: an error of half a last place per slab
template <class Exec, class T>
void global_pool_forward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.y)) return;
  assert(channels_last(o.x) && channels_last(o.y));
  using Loop = detail::GlobalPoolLoop<T>;
  const Index h = o.node->in.h, w = o.node->in.w;
  const bool last = o.x.rows > 0 && o.x.range().end == h;
  for_units(exec, o.y.n * o.y.c,
            Loop{o.x.data, o.y.data, o.x.stride_n, o.y.stride_n, o.x.rows, Divisor(o.y.c), static_cast<int>(w),
                 static_cast<typename Loop::A>(h * w), o.accumulate, last, o.y.c == 8 || o.y.c == 16});
}
/// As host::global_pool_backward: dx = dy / (H*W) everywhere. Shapes: dy [N,C,1,1] -> dx [N,C,rows,W]
template <class Exec, class T>
void global_pool_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  assert(channels_last(o.dx) && channels_last(o.dy));
  const Lines lines({}, o.dx);
  for_units(exec, lines.count(),
            detail::GlobalPoolBackwardLoop<T>{lines, o.dx, o.dy.data, o.dy.stride_n,
                                              Divisor(o.dx.rows * o.dx.stride_row()), Divisor(o.dx.c),
                                              static_cast<master_t<T>>(o.node->in.h * o.node->in.w)});
}
}  // namespace lrcnn::loops
