#pragma once
// Global average pooling, fed by rows.
//
// Pieces of rows are added up in what elements are computed in, with the host's partial sums, and pieces in doubles, which are kept between
// slabs. So all elements give the host's bits however rows are cut.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/lines.hpp>
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/shape/rows.hpp>
namespace lrcnn::loops {
namespace detail {
/// One channel of one image: sums = (accumulate ? sums : 0) + the sum of x's rows, y = sums / count.
template <class T>
struct GlobalPoolLoop {
  using A = master_t<T>;
  const T* x;
  T* y;
  double* sums;   ///< null: x has all rows
  Index x_stride_n, y_stride_n, row_count;
  Divisor channels;
  int w;
  double count;
  bool accumulate, wide;   ///< wide: blocks of this many channels have one running sum on the host
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index c = unit;
    const Index image = channels.split(c), step = channels.value();
    const T* from = x + image * x_stride_n + c;
    double total = accumulate && sums ? sums[unit] : 0;
    for (Index row = 0; row < row_count; ++row, from += w * step)
      for (int first = 0; first < w; first += piece) {
        const int end = first + piece < w ? first + piece : w;
        total += static_cast<double>(wide ? piece_sum<1>(from, first, end) : piece_sum<8>(from, first, end));
      }
    if (sums) sums[unit] = total;
    y[image * y_stride_n + c] = static_cast<T>(static_cast<A>(total / count));
  }

 private:
  static constexpr int piece = static_cast<int>(sum_piece);
  /// The sum of columns of a row, in running sums by column modulo their number.
  template <int parts>
  LRCNN_HOST_DEVICE A piece_sum(const T* from, int column, int end) const {
    const Index step = channels.value();
    A sum[parts] = {};
    for (; column + parts <= end; column += parts)
      for (int p = 0; p < parts; ++p) sum[p] += static_cast<A>(from[(column + p) * step]);
    for (; column < end; ++column) sum[0] += static_cast<A>(from[column * step]);
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
}   // namespace detail
/// As host::global_pool_forward: sums = (accumulate ? sums : 0) + the sum of x's rows; y = sums / (H*W).
/// Shapes:  x [N,C,rows,W] -> sums [N,C], y [N,C,1,1]. Pre: slabs come from the top down
/// Post:    the host's bits, however rows are cut
template <class Exec, class T>
void global_pool_forward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.y)) return;
  assert(channels_last(o.x) && channels_last(o.y));
  assert(o.sums != nullptr || (o.x.rows == o.node->in.h && !o.accumulate));
  const Index h = o.node->in.h, w = o.node->in.w;
  for_units(exec, o.y.n * o.y.c,
            detail::GlobalPoolLoop<T>{o.x.data, o.y.data, o.sums, o.x.stride_n, o.y.stride_n, o.x.rows, Divisor(o.y.c), static_cast<int>(w),
                                      static_cast<double>(h * w), o.accumulate, o.y.c == 8 || o.y.c == 16});
}
/// As host::global_pool_backward: dx = dy / (H*W) everywhere. Shapes: dy [N,C,1,1] -> dx [N,C,rows,W]
template <class Exec, class T>
void global_pool_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  assert(channels_last(o.dx) && channels_last(o.dy));
  const Lines lines({}, o.dx);
  for_units(exec, lines.count(),
            detail::GlobalPoolBackwardLoop<T>{lines, o.dx, o.dy.data, o.dy.stride_n, Divisor(o.dx.rows * o.dx.stride_row()), Divisor(o.dx.c),
                                              static_cast<master_t<T>>(o.node->in.h * o.node->in.w)});
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::global_avg_pool, Exec, T>{global_pool_forward<Exec, T>, global_pool_backward<Exec, T>};
}   // namespace lrcnn::loops
