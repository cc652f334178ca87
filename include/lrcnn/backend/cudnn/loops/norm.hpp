#pragma once
// Norms over a batch or over groups of channels: numbers of channels are worked out first, into the step's workspace; then one pass over
// memory uses them. Formulas are in backend/host/norm.hpp.
#include <lrcnn/backend/cudnn/loops/batch_norm.hpp>
#include <lrcnn/backend/cudnn/loops/layer_norm.hpp>
namespace lrcnn::loops {
namespace detail {
/// y = scale * x + shift.
template <class T>
struct ScaleLoop {
  using A = master_t<T>;
  ChannelNorm<T> norm;
  Divisor channels;
  A *scales, *shifts;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index c = unit;
    const Index set = channels.split(c);
    norm.scale_and_shift(set, c, scales[unit], shifts[unit]);
  }
};
/// dx = down * dy + across * x + shift.
/// The numbers of all channels of a unit.
template <class T>
struct DownLoop {
  using A = master_t<T>;
  ChannelNorm<T> norm;
  Divisor units;
  A* numbers;   ///< planes: down, across, shift
  Index plane;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index u = unit;
    const Index set = units.split(u), size = norm.unit_channels.value(), first = u * size;
    const auto down = norm.down(set, u);
    for (Index c = first; c < first + size; ++c) {
      A* const to = numbers + set * norm.channels + c;
      to[0] = static_cast<A>(norm.weight(c) * down.inverse), to[plane] = static_cast<A>(down.across), to[2 * plane] = static_cast<A>(down.shift);
    }
  }
};
template <class T, class F>
struct NormLoop {
  using A = master_t<T>;
  Lines lines;
  ChannelNumbers<A> numbers;
  Line<const T> x;
  Activated<T, F> result;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A value[Lines::width], number[2][Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    numbers.get(p, number);
    for (int v = 0; v < Lines::width; ++v) value[v] = value[v] * number[0][v] + number[1][v];
    result.put(lines, p, value);
  }
};
template <class T>
struct NormBackwardLoop {
  using A = master_t<T>;
  Lines lines;
  ChannelNumbers<A> numbers;
  Line<const T> x, dy;   ///< x: empty where running statistics were used
  Line<T> dx;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A value[Lines::width], down[Lines::width];
    load(dy.at(p), p.count, lines.packs(), down);
    if (x.data != nullptr) {
      A number[3][Lines::width];
      load(x.at(p), p.count, lines.packs(), value);
      numbers.get(p, number);
      for (int v = 0; v < Lines::width; ++v) down[v] = value[v] * number[1][v] + (number[2][v] + down[v] * number[0][v]);
    } else {
      A number[1][Lines::width];
      numbers.get(p, number);
      for (int v = 0; v < Lines::width; ++v) down[v] *= number[0][v];
    }
    store(dx.at(p), p.count, lines.packs(), down);
  }
};
constexpr Lines::Images images_of(bool batch) { return batch ? Lines::Images::together : Lines::Images::apart; }
}   // namespace detail
/// Bytes of workspace that a norm's step needs at least.
template <class T>
constexpr Index norm_workspace_bytes(const Operands<T>& o) {
  using A = master_t<T>;
  const Norm& norm = o.node->layer.norm;
  const Index channels = o.node->in.c, w = o.node->in.w, images = std::max({o.x.n, o.dy.n, o.dx.n, o.saved.n});
  if (norm.over == Norm::Over::channels) return detail::layer_norm_bytes<T>(o.op, images * w, channels);
  const bool batch = shares_statistics(norm);
  const Index sets = statistics_sets(norm, images);
  if ((o.op == Op::forward || o.op == Op::backward_data) && detail::takes_whole_pieces(o)) return 0;
  if (o.op == Op::forward) return 2 * sets * channels * static_cast<Index>(sizeof(A));
  if (o.op == Op::backward_data) return 3 * sets * channels * static_cast<Index>(sizeof(A));
  return detail::part_bytes<T>(sets, o.op == Op::statistics ? detail::set_positions(o.x, batch) : detail::set_positions(o.dy, batch), channels);
}
/// As host::norm_forward, for the rows of y, or of saved if there is no y. With o.along, what the join behind it makes; y is not written then.
/// Pre:     a workspace of norm_workspace_bytes()
template <class Exec, class T>
void norm_forward(const Exec& exec, const Operands<T>& o) {
  if (o.node->layer.norm.over == Norm::Over::channels) return layer_norm_forward(exec, o);
  const View<const T> x = o.x.slice(detail::made_rows(o));
  if (empty(x)) return;
  assert(channels_last(x) && channels_last(o.y) && o.workspace_bytes >= norm_workspace_bytes(o));
  const detail::ChannelNorm<T> norm(o);
  if (o.along) {
    const Operands<T>& join = *o.along;
    const Range made = detail::made_rows(join);
    const View<const T> others = join.x.slice(made).data == o.y.data ? join.other.slice(made) : join.x.slice(made);
    const View<std::uint8_t> bits = detail::made_saved(join);
    return detail::with_activation(join, [&](const auto& f) {
      const detail::BatchNormJoinLoop<T, std::remove_cvref_t<decltype(f)>> loop(Lines(detail::images_of(true), bits, x, others, join.y), norm, x,
                                                                                others, {join.y, bits, f});
      for_blocks(exec, loop.tiles.blocks(), loop);
    });
  }
  const View<std::uint8_t> saved = detail::made_saved(o);
  const Lines lines(detail::images_of(norm.batch), saved, x, o.y);
  if (detail::takes_whole_pieces(o))
    return detail::with_activation(o, [&](const auto& f) {
      const detail::BatchNormLoop<T, std::remove_cvref_t<decltype(f)>> loop(lines, norm, x, {o.y, saved, f});
      for_blocks(exec, loop.tiles.blocks(), loop);
    });
  auto* numbers = reinterpret_cast<master_t<T>*>(o.workspace);
  const Index sets = norm.sets(x.n), count = sets * norm.channels;
  for_units(exec, count, detail::ScaleLoop<T>{norm, Divisor(norm.channels), numbers, numbers + count});
  detail::with_activation(o, [&](const auto& f) {
    for_units(exec, lines.count(),
              detail::NormLoop<T, std::remove_cvref_t<decltype(f)>>{lines, {numbers, sets, norm.channels, norm.batch}, x, {o.y, saved, f}});
  });
}
/// As host::norm_backward_data. With o.along, dy is what comes from above the ReLU behind it. Pre: a workspace of norm_workspace_bytes()
template <class Exec, class T>
void norm_backward_data(const Exec& exec, const Operands<T>& o) {
  if (o.node->layer.norm.over == Norm::Over::channels) return layer_norm_backward_data(exec, o);
  const Range both = detail::zero_others(exec, o);
  if (both.empty() || empty(o.dx)) return;
  assert(channels_last(o.x) && channels_last(o.dy) && channels_last(o.dx) && o.workspace_bytes >= norm_workspace_bytes(o));
  const detail::ChannelNorm<T> norm(o);
  if (o.along) {
    const View<const T> x = o.x.slice(both), dy = o.dy;
    const detail::BatchNormReluBackwardLoop<T> loop(Lines(detail::images_of(true), {}, o.dx, dy, x), norm, x, dy, o.dx);
    return for_blocks(exec, loop.tiles.blocks(), loop);
  }
  auto* numbers = reinterpret_cast<master_t<T>*>(o.workspace);
  const Index sets = norm.sets(o.dx.n);
  const bool whole = detail::takes_whole_pieces(o);
  if (!whole) for_units(exec, sets * norm.units, detail::DownLoop<T>{norm, Divisor(norm.units), numbers, sets * norm.channels});
  const auto go = [&](Range rows, bool sums) {
    if (rows.empty()) return;
    const View<const T> x = sums ? o.x.slice(rows) : View<const T>{}, dy = o.dy.slice(rows);
    const View<T> dx = o.dx.slice(rows);
    const Lines lines(detail::images_of(norm.batch), {}, dx, dy, x);
    if (whole) {
      const detail::BatchNormBackwardLoop<T> loop(lines, norm, x, dy, dx);
      return for_blocks(exec, loop.tiles.blocks(), loop);
    }
    for_units(exec, lines.count(), detail::NormBackwardLoop<T>{lines, {numbers, sets, norm.channels, norm.batch}, x, dy, dx});
  };
  if (o.sums == nullptr) return go(both, false);
  const Range part = intersect(both, o.part);   // rows outside it get nothing of what the sums give
  go({both.begin, part.empty() ? both.end : part.begin}, false);
  go(part, true);
  if (!part.empty()) go({part.end, both.end}, false);
}
/// As host::norm_backward_parameters: gradients of a norm without statistics. Pre: a workspace of norm_workspace_bytes()
template <class Exec, class T>
void norm_backward_parameters(const Exec& exec, const Operands<T>& o) {
  if (!o.node->layer.norm.affine) return;
  if (o.node->layer.norm.over == Norm::Over::channels) return layer_norm_backward_parameters(exec, o);
  detail::add_sums(exec, o, o.accumulate);
}
}   // namespace lrcnn::loops
