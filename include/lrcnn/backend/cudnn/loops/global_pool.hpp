#pragma once
// Global average pooling, fed by rows.
//
// Pieces of rows are added up in what elements are computed in, with the host's partial sums, and pieces in doubles, which are kept between
// slabs. So all elements give the host's bits however rows are cut.
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/lines.hpp>
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/shape/rows.hpp>
namespace lrcnn::loops {
namespace detail {
/// Some channels of one image: sums = (accumulate ? sums : 0) + the sum of x's rows, y = sums / count. A thread adds up a piece of a row.
template <class T>
struct GlobalPoolLoop {
  using A = master_t<T>;
  static constexpr int phases = 2, V = 4;
  struct Shared {
    double piece[V][block_threads], total[V][block_threads];
  };
  const T* x;
  T* y;
  double* sums;   ///< null: x has all rows
  Index x_stride_n, y_stride_n, row_count, channels;
  Divisor columns, pieces;   ///< blocks of an image; pieces of a row
  int w, width;              ///< threads beside each other
  double count;
  bool accumulate, wide, packs;   ///< wide: blocks of this many channels have one running sum on the host
  GlobalPoolLoop(const Operands<T>& o, int threads)
      : x(o.x.data),
        y(o.y.data),
        sums(o.sums),
        x_stride_n(o.x.stride_n),
        y_stride_n(o.y.stride_n),
        row_count(o.x.rows),
        channels(o.y.c),
        columns(ceil_div(o.y.c, Index{V} * threads)),
        pieces(ceil_div(o.node->in.w, sum_piece)),
        w(static_cast<int>(o.node->in.w)),
        width(threads),
        count(static_cast<double>(o.node->in.h * o.node->in.w)),
        accumulate(o.accumulate),
        wide(o.y.c == 8 || o.y.c == 16),
        packs(position_packs<V>(o.x)) {}
  LRCNN_HOST_DEVICE Index rounds(Index) const {
    const Index all = row_count * pieces.value(), height = block_threads / width;
    return all > height ? ceil_div(all, height) : 1;
  }
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared, Index round) const {
    Index column = block;
    const Index image = columns.split(column);
    const int height = block_threads / width, below = thread / width;
    const Index c = (column * width + thread - below * width) * V;
    const int left = channels - c < V ? static_cast<int>(channels - c) : V;
    if constexpr (k == 0) {
      Index piece = round * height + below;
      A sum[V] = {};
      if (left > 0 && piece < row_count * pieces.value()) {
        const Index row = pieces.split(piece), first = piece * sum_piece;
        const T* from = x + image * x_stride_n + (row * w + first) * channels + c;
        const int size = w - first < sum_piece ? static_cast<int>(w - first) : static_cast<int>(sum_piece);
        if (wide) add_up<1>(from, size, left, sum);
        else add_up<8>(from, size, left, sum);
      }
      for (int v = 0; v < V; ++v) shared.piece[v][thread] = static_cast<double>(sum[v]);
    } else if (below == 0) {
      for (int v = 0; v < V; ++v)
        if (v < left) add_pieces(v, thread, image, c + v, shared, round);
    }
  }

 private:
  /// The sum of columns of a row, in running sums by column modulo their number.
  template <int parts>
  LRCNN_HOST_DEVICE void add_up(const T* from, int size, int left, A (&result)[V]) const {
    A sum[parts][V] = {};
    int column = 0;
    for (; column + 8 <= size; column += 8) {
      Pack<T, V> element[8];
      load_all([&](int i) { return from + (column + i) * channels; }, left, packs, element);
      for (int i = 0; i < 8; ++i)
        for (int v = 0; v < V; ++v) sum[i % parts][v] += static_cast<A>(element[i].element[v]);
    }
    for (; column < size; ++column) {
      A value[V];
      load(from + column * channels, left, packs, value);
      for (int v = 0; v < V; ++v) sum[0][v] += value[v];
    }
    for (int v = 0; v < V; ++v) {
      result[v] = sum[0][v];
      for (int p = 1; p < parts; ++p) result[v] += sum[p][v];
    }
  }
  /// Pieces of all threads of a channel, in their order; with the last ones the result.
  LRCNN_HOST_DEVICE void add_pieces(int v, int thread, Index image, Index c, Shared& shared, Index round) const {
    double* const kept = sums != nullptr ? sums + image * channels + c : nullptr;
    double total = round > 0 ? shared.total[v][thread] : accumulate && kept != nullptr ? *kept : 0;
    const Index left = row_count * pieces.value() - round * (block_threads / width);
    for (int i = 0; i < block_threads / width && i < left; ++i) total += shared.piece[v][thread + i * width];
    shared.total[v][thread] = total;
    if (round != rounds(0) - 1) return;
    if (kept != nullptr) *kept = total;
    y[image * y_stride_n + c] = static_cast<T>(static_cast<A>(total / count));
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
  const int width = power_above(std::min<Index>(32, ceil_div(o.y.c, Index{detail::GlobalPoolLoop<T>::V})));
  const detail::GlobalPoolLoop<T> loop(o, width);
  for_blocks(exec, o.y.n * loop.columns.value(), loop);
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
