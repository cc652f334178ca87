#pragma once
// Passes of a norm that all images share over memory, each in one kernel: blocks work out the numbers of the few channels that they take, keep
// them in registers, and go through a part of the positions.
//
// For whole pieces of channels: their number is a multiple of eight. norm.hpp has the others.
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/norm_numbers.hpp>
#include <lrcnn/backend/cudnn/steps_along.hpp>
namespace lrcnn::loops::detail {
using cudnn::takes_whole_pieces;
static_assert(Lines::width == 8);
/// What such loops have in common: `count` numbers of each channel, which Loop::find(channel, to) works out, and Loop::take(piece, numbers).
template <class Loop, class T, int count>
struct BatchNormPass {
  using A = master_t<T>;
  static constexpr int phases = 2, width = Lines::width, at_once_on_device = sizeof(T) == 2 ? 4 : 3;
  struct Shared {
    A number[count][block_threads];
  };
  using Numbers = A[count][width];
  Lines lines;
  Tiles tiles;
  Divisor columns;
  Index groups;   ///< pieces of a position
  ChannelNorm<T> norm;
  BatchNormPass(const Lines& l, const ChannelNorm<T>& n)
      : lines(l),
        tiles(tiles_of_groups(1, l.count() / (n.channels / width), n.channels / width, 2)),
        columns(tiles.columns),
        groups(n.channels / width),
        norm(n) {}
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    Index column = block;
    const Index part = columns.split(column), first = column * tiles.width;
    if constexpr (k == 0) {
      const Index c = first * width + thread;
      if (thread >= tiles.width * width || c >= norm.channels) return;
      A number[count];
      self().find(c, number);
      for (int i = 0; i < count; ++i) shared.number[i][thread] = number[i];
    } else {
      const int row = thread / tiles.width, own = thread - row * tiles.width;
      if (first + own >= groups) return;
      Numbers number;
      for (int i = 0; i < count; ++i)
        for (int v = 0; v < width; ++v) number[i][v] = shared.number[i][own * width + v];
      const Index begin = part * tiles.part, end = begin + tiles.size(part), step = tiles.height;
      for (Index at = begin + row; at < end; at += step) self().take(lines.piece(at * groups + first + own), number);
    }
  }

 private:
  LRCNN_HOST_DEVICE const Loop& self() const { return static_cast<const Loop&>(*this); }
};
template <class T, class F>
struct BatchNormLoop : BatchNormPass<BatchNormLoop<T, F>, T, 2> {
  using Base = BatchNormPass<BatchNormLoop<T, F>, T, 2>;
  using typename Base::A, typename Base::Numbers;
  Line<const T> x;
  Activated<T, F> result;
  BatchNormLoop(const Lines& l, const ChannelNorm<T>& n, const Line<const T>& from, const Activated<T, F>& to) : Base(l, n), x(from), result(to) {}
  LRCNN_HOST_DEVICE void find(Index c, A (&to)[2]) const { this->norm.scale_and_shift(0, c, to[0], to[1]); }
  LRCNN_HOST_DEVICE void take(const Piece& piece, const Numbers& number) const {
    A value[Lines::width];
    load(x.at(piece), Lines::width, this->lines.packs(), value);
    for (int v = 0; v < Lines::width; ++v) value[v] = value[v] * number[0][v] + number[1][v];   // put() rounds
    result.put(this->lines, piece, value);
  }
};
/// y = f(scale * x + shift + other): a norm, and the join behind it.
template <class T, class F>
struct BatchNormJoinLoop : BatchNormPass<BatchNormJoinLoop<T, F>, T, 2> {
  using Base = BatchNormPass<BatchNormJoinLoop<T, F>, T, 2>;
  using typename Base::A, typename Base::Numbers;
  Line<const T> x, other;
  Activated<T, F> result;
  BatchNormJoinLoop(const Lines& l, const ChannelNorm<T>& n, const Line<const T>& from, const Line<const T>& added, const Activated<T, F>& to)
      : Base(l, n), x(from), other(added), result(to) {}
  LRCNN_HOST_DEVICE void find(Index c, A (&to)[2]) const { this->norm.scale_and_shift(0, c, to[0], to[1]); }
  LRCNN_HOST_DEVICE void take(const Piece& piece, const Numbers& number) const {
    A value[Lines::width], more[Lines::width];
    load(x.at(piece), Lines::width, this->lines.packs(), value);
    load(other.at(piece), Lines::width, this->lines.packs(), more);
    for (int v = 0; v < Lines::width; ++v) value[v] = ChannelNorm<T>::normalised(value[v], number[0][v], number[1][v]) + more[v];
    result.put(this->lines, piece, value);
  }
};
/// dx = down * dy + across * x + shift, or down * dy alone.
template <class T>
struct BatchNormBackwardLoop : BatchNormPass<BatchNormBackwardLoop<T>, T, 3> {
  using Base = BatchNormPass<BatchNormBackwardLoop<T>, T, 3>;
  using typename Base::A, typename Base::Numbers;
  Line<const T> x, dy;   ///< x: empty where running statistics were used
  Line<T> dx;
  BatchNormBackwardLoop(const Lines& l, const ChannelNorm<T>& n, const Line<const T>& value, const Line<const T>& down, const Line<T>& to)
      : Base(l, n), x(value), dy(down), dx(to) {}
  LRCNN_HOST_DEVICE void find(Index c, A (&to)[3]) const { this->norm.down_across_and_shift(0, c, to[0], to[1], to[2]); }
  LRCNN_HOST_DEVICE void take(const Piece& piece, const Numbers& number) const {
    A down[Lines::width], value[Lines::width];
    load(dy.at(piece), Lines::width, this->lines.packs(), down);
    if (x.data != nullptr) {
      load(x.at(piece), Lines::width, this->lines.packs(), value);
      for (int v = 0; v < Lines::width; ++v) down[v] = value[v] * number[1][v] + (number[2][v] + down[v] * number[0][v]);
    } else {
      for (int v = 0; v < Lines::width; ++v) down[v] *= number[0][v];
    }
    store(dx.at(piece), Lines::width, this->lines.packs(), down);
  }
};
/// dx = down * dy + across * x + shift, where the norm's output is positive, else across * x + shift: the ReLU behind the norm, and the norm.
template <class T>
struct BatchNormReluBackwardLoop : BatchNormPass<BatchNormReluBackwardLoop<T>, T, 5> {
  using Base = BatchNormPass<BatchNormReluBackwardLoop<T>, T, 5>;
  using typename Base::A, typename Base::Numbers;
  static constexpr int at_once_on_device = 2;   // 40 numbers of channels
  Line<const T> x, dy;
  Line<T> dx;
  BatchNormReluBackwardLoop(const Lines& l, const ChannelNorm<T>& n, const Line<const T>& value, const Line<const T>& down, const Line<T>& to)
      : Base(l, n), x(value), dy(down), dx(to) {}
  LRCNN_HOST_DEVICE void find(Index c, A (&to)[5]) const {
    this->norm.down_across_and_shift(0, c, to[0], to[1], to[2]);
    this->norm.scale_and_shift(0, c, to[3], to[4]);
  }
  LRCNN_HOST_DEVICE void take(const Piece& piece, const Numbers& number) const {
    A down[Lines::width], value[Lines::width];
    load(dy.at(piece), Lines::width, this->lines.packs(), down);
    load(x.at(piece), Lines::width, this->lines.packs(), value);
    for (int v = 0; v < Lines::width; ++v) {
      const A passed = ChannelNorm<T>::normalised(value[v], number[3][v], number[4][v]) > A(0) ? down[v] : A(0);
      down[v] = value[v] * number[1][v] + (number[2][v] + passed * number[0][v]);
    }
    store(dx.at(piece), Lines::width, this->lines.packs(), down);
  }
};
}   // namespace lrcnn::loops::detail
