#pragma once
// The gradient of a bias: for each channel the sum over all images, rows and columns.
//
// Positions are cut into pieces, a thread adds up a few channels of one piece, and the sums of pieces are added up in
// the same way until one is left. How positions are cut depends on nothing but their number, so bits repeat.
#include <lrcnn/backend/cudnn/loops/rows.hpp>
namespace lrcnn::loops {
namespace detail {
/// How one round of additions cuts its positions.
struct SumRound {
  Index positions, piece;
  constexpr Index pieces() const { return ceil_div(positions, piece); }
};
/// The first round keeps 2^16 threads busy where there is enough to do, the others add 32 numbers each.
constexpr SumRound first_round(Index positions, Index channels) {
  const Index groups = ceil_div(channels, Index{4}), pieces = std::max<Index>(1, (Index{1} << 16) / groups);
  return {positions, std::max<Index>(32, ceil_div(positions, pieces))};
}
constexpr SumRound next_round(const SumRound& round) { return {round.pieces(), 32}; }
/// to[piece][c] = the sum over the positions of a piece.
template <class S, class A>
struct SumLoop {
  static constexpr int V = lanes<S>;
  const S* from;
  Index stride_n;
  Divisor per_image, groups;
  SumRound round;
  Index channels;
  A* to;
  bool packs, accumulate;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Index number = groups.split(unit), c = unit * V;
    const int count = channels - c < V ? static_cast<int>(channels - c) : V;
    const Index begin = number * round.piece, limit = begin + round.piece;
    const Index end = limit < round.positions ? limit : round.positions;
    A sum[V] = {};
    for (Index at = begin; at < end;) {
      Index position = at;
      const Index image = per_image.split(position), left = per_image.value() - position;
      const S* p = from + image * stride_n + position * channels + c;
      for (const Index stop = at + left < end ? at + left : end; at < stop; ++at, p += channels) {
        A value[V];
        load(p, count, packs, value);
        for (int v = 0; v < V; ++v) sum[v] += value[v];
      }
    }
    A* result = to + number * channels + c;
    for (int v = 0; v < V; ++v)
      if (v < count) result[v] = accumulate ? result[v] + sum[v] : sum[v];
  }
};
template <class Exec, class S, class A>
void sum_round(const Exec& exec, const S* from, Index stride_n, Index per_image, const SumRound& round, Index channels, A* to, bool accumulate) {
  constexpr int V = lanes<S>;
  const Index groups = ceil_div(channels, Index{V});
  const bool packs = takes_packs<V>(from, channels, stride_n);
  for_units(exec, round.pieces() * groups,
            SumLoop<S, A>{from, stride_n, Divisor(per_image), Divisor(groups), round, channels, to, packs, accumulate});
}
}   // namespace detail
/// Bytes of workspace that bias_gradient() needs for a view [n,c,rows,w] of elements T.
template <class T>
constexpr Index bias_gradient_bytes(Index n, Index c, Index rows, Index w) {
  Index numbers = 0;
  for (auto round = detail::first_round(n * rows * w, c); round.pieces() > 1; round = detail::next_round(round)) numbers += round.pieces() * c;
  return numbers * static_cast<Index>(sizeof(master_t<T>));
}
/// db = the sum of dy over images, rows and columns; added to what is there if accumulate, else written.
/// Shapes:  dy [N,C,rows,W] -> db [C]
/// Pre:     workspace: bias_gradient_bytes<T>(dy.n, dy.c, dy.rows, dy.w) bytes, aligned to 16
/// Post:    the same bits for the same shape and values
template <class Exec, class T>
void bias_gradient(const Exec& exec, const View<T>& dy, master_t<std::remove_const_t<T>>* db, bool accumulate, std::byte* workspace) {
  using A = master_t<std::remove_const_t<T>>;
  assert(channels_last(dy));
  if (empty(dy)) {
    if (!accumulate) zero_rows(exec, dense_view(db, 1, dy.c, {0, 1}, 1, dy.c));
    return;
  }
  auto round = detail::first_round(dy.n * dy.rows * dy.w, dy.c);
  A* to = reinterpret_cast<A*>(workspace);
  detail::sum_round(exec, dy.data, dy.n > 1 ? dy.stride_n : 0, dy.rows * dy.w, round, dy.c, round.pieces() > 1 ? to : db,
                    round.pieces() == 1 && accumulate);
  while (round.pieces() > 1) {
    const A* from = to;
    to += round.pieces() * dy.c;
    round = detail::next_round(round);
    detail::sum_round(exec, from, 0, round.positions, round, dy.c, round.pieces() > 1 ? to : db, round.pieces() == 1 && accumulate);
  }
}
}   // namespace lrcnn::loops
