#pragma once
// Dropout: a thread draws four columns of a channel, which is what one draw is for.
//
// The run's key is read from memory that the loops reach, each time: so a step that was recorded draws the masks of the run at hand.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/layer/drop_mask.hpp>
namespace lrcnn::loops {
namespace detail {
/// to = from / (1 - probability), or 0. `to` may be the same memory as `from`.
template <class T>
struct DropLoop {
  using A = master_t<T>;
  Strided<const T> from;
  Strided<T> to;
  Drop drop;
  const RunKey* run;
  Index layer, first_image, row0, w;
  A factor;
  Divisor channels, quads, rows;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index c = unit, quad = channels.split(c), y = quads.split(quad);
    const Index image = rows.split(y), first = 4 * quad;
    const auto kept = DropMask(drop, *run, layer).keeps(first_image + image, c, row0 + y, quad);
    for (int i = 0; i < 4; ++i) {
      if (first + i >= w) continue;
      const A value = static_cast<A>(*from.at(image, y, first + i, c));
      *to.at(image, y, first + i, c) = kept[i] ? static_cast<T>(value * factor) : static_cast<T>(A(0));
    }
  }
};
template <class Exec, class T>
void drop_rows(const Exec& exec, const Operands<T>& o, const View<const T>& from, const View<T>& to) {
  if (empty(to)) return;
  assert(channels_last(from) && channels_last(to) && from.range().contains(to.range()));
  const Drop& drop = o.node->layer.drop;
  const View<const T> x = from.slice(to.range());
  if (o.run == nullptr || drop.probability <= 0) {
    if (x.data != to.data) copy_rows(exec, x, to);
    return;
  }
  const Index quads = ceil_div(to.w, 4);
  for_units(exec, to.n * to.rows * quads * to.c,
            DropLoop<T>{Strided<const T>(x), Strided<T>(to), drop, o.run, o.layer, o.first_image, to.row0, to.w,
                        static_cast<master_t<T>>(1 / (1 - drop.probability)), Divisor(to.c), Divisor(quads), Divisor(to.rows)});
}
}   // namespace detail
/// As host::dropout_forward. Pre: o.run, if there is one, lies in memory that `exec` reaches
template <class Exec, class T>
void dropout_forward(const Exec& exec, const Operands<T>& o) {
  detail::drop_rows(exec, o, o.x, o.y);
}
/// As host::dropout_backward. Pre: likewise
template <class Exec, class T>
void dropout_backward(const Exec& exec, const Operands<T>& o) {
  const Range both = detail::zero_others(exec, o);
  if (!both.empty()) detail::drop_rows(exec, o, o.dy, o.dx.slice(both));
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::dropout, Exec, T>{dropout_forward<Exec, T>, dropout_backward<Exec, T>};
}   // namespace lrcnn::loops
