#pragma once
// Joins, with the host's results to the bit.
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
namespace lrcnn::loops {
namespace detail {
/// y = f(x + other), and the bits x + other > 0.
template <class T, class F>
struct JoinLoop {
  using A = master_t<T>;
  Lines lines;
  Line<const T> x, other;
  Activated<T, F> result;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A value[Lines::width], more[Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    load(other.at(p), p.count, lines.packs(), more);
    for (int v = 0; v < Lines::width; ++v) value[v] += more[v];
    result.put(lines, p, value);
  }
};
/// Copies the channels of the map with fewer of them, at any place of the one with more.
template <class T>
struct ChannelsLoop {
  static constexpr int V = lanes<T>;
  Positions positions;
  Image<const T> from;
  Image<T> to;
  bool packs;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    master_t<T> value[V];
    load(from.at(at.image, at.y, at.x, at.channel), at.count, packs, value);
    store(to.at(at.image, at.y, at.x, at.channel), at.count, packs, value);
  }
};
/// A view whose pixels begin at channel `first`; the step from pixel to pixel stays.
template <class T>
View<T> from_channel(View<T> view, Index first) {
  view.data += first;
  return view;
}
/// Copies as many channels as `narrow`, one of the two views, has.
template <class Exec, class T, class V>
void copy_channels(const Exec& exec, const V& narrow, const View<const T>& from, const View<T>& to) {
  if (empty(narrow)) return;
  constexpr int lanes_of_thread = lanes<T>;
  const Positions positions(narrow, lanes_of_thread);
  const bool packs = position_packs<lanes_of_thread>(from) && position_packs<lanes_of_thread>(to);
  for_units(exec, positions.count(), ChannelsLoop<T>{positions, from, to, packs});
}
}   // namespace detail
/// As host::sum_forward: y = x + other, then through the step's activation; the rows of y, or of saved if there is no y.
/// Pre:     y may be the same memory as x or other, which may hold more rows
template <class Exec, class T>
void sum_forward(const Exec& exec, const Operands<T>& o) {
  const Range rows = detail::made_rows(o);
  const View<const T> x = o.x.slice(rows), other = o.other.slice(rows);
  if (empty(x)) return;
  assert(channels_last(x) && channels_last(other) && channels_last(o.y));
  const View<std::uint8_t> saved = detail::made_saved(o);
  const Lines lines(saved, x, other, o.y);
  detail::with_activation(o, [&](const auto& f) {
    for_units(exec, lines.count(), detail::JoinLoop<T, std::remove_cvref_t<decltype(f)>>{lines, x, other, {o.y, saved, f}});
  });
}
/// As host::sum_backward: dx = dy, of either input. Post: writes all rows of dx; rows that dy does not have get 0
template <class Exec, class T>
void sum_backward(const Exec& exec, const Operands<T>& o) {
  if (o.dx.data == o.dy.data && o.dx.data != nullptr) return;   // in place: it is there
  const Range both = detail::zero_others(exec, o);
  if (!both.empty()) copy_rows(exec, o.dy.slice(both), o.dx.slice(both));
}
/// As host::concat_forward: y = the channels of x, then those of other. Pre: x and other hold y's rows
template <class Exec, class T>
void concat_forward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.y)) return;
  assert(channels_last(o.x) && channels_last(o.other) && channels_last(o.y));
  const View<const T> x = o.x.slice(o.y.range()), other = o.other.slice(o.y.range());
  detail::copy_channels<Exec, T>(exec, x, x, o.y);
  detail::copy_channels<Exec, T>(exec, other, other, detail::from_channel(o.y, o.node->in.c));
}
/// As host::concat_backward: dx = the channels of dy that are input number `operand`'s.
/// Post:    writes all rows of dx; rows that dy does not have get 0
template <class Exec, class T>
void concat_backward(const Exec& exec, const Operands<T>& o) {
  const Range both = detail::zero_others(exec, o);
  if (both.empty()) return;
  assert(channels_last(o.dy) && channels_last(o.dx));
  const View<T> dx = o.dx.slice(both);
  detail::copy_channels<Exec, T>(exec, dx, detail::from_channel(o.dy.slice(both), o.operand == 0 ? 0 : o.node->in.c), dx);
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::sum, Exec, T>{sum_forward<Exec, T>, sum_backward<Exec, T>};
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::concat, Exec, T>{concat_forward<Exec, T>, concat_backward<Exec, T>};
}   // namespace lrcnn::loops
