#pragma once
// Dropout: the same factors forward and backward, 0 or 1 / (1 - probability), drawn anew each time.
//
// Four columns of a channel at a time, since that is what one draw is for.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/concepts.hpp>
#include <cassert>
namespace lrcnn::host {
namespace detail {
/// to = from, or 0, for the rows that `from` has; zero in others. `to` may be the same memory as `from`.
template <class T>
void drop_rows(const Operands<T>& o, const View<const T>& from, const View<T>& to, int threads) {
  using A = master_t<T>;
  const Drop& drop = o.node->layer.drop;
  const bool drops = o.run != nullptr && drop.probability > 0;
  const DropMask mask(drop, o.run ? *o.run : RunKey{}, o.layer);
  const A factor = static_cast<A>(1 / (1 - drop.probability));
  const Index block = to.block, work = !drops ? 1 : mask.of_elements() ? 16 : 2;
  for_rows(
      to, threads,
      [&](Index i, Index b, Index row) {
        T* y = to.row(i, b, row);
        if (!from.range().contains({row, row + 1})) {
          std::fill_n(y, to.stride_row(), T(0));
          return;
        }
        const T* x = from.row(i, b, row);
        if (!drops) {
          if (x != y) std::copy_n(x, to.stride_row(), y);
          return;
        }
        for (Index lane = 0; lane < block; ++lane) {
          const Index c = b * block + lane;
          DropMask::Kept keeps{};
          if (c < to.c && !mask.of_elements()) keeps = mask.keeps(o.first_image + i, c, row, 0);
          for (Index quad = 0; 4 * quad < to.w; ++quad) {
            if (c < to.c && mask.of_elements()) keeps = mask.keeps(o.first_image + i, c, row, quad);
            for (Index q = 4 * quad; q < std::min(4 * quad + 4, to.w); ++q) {
              const Index at = q * block + lane;
              y[at] = keeps[q % 4] ? static_cast<T>(static_cast<A>(x[at]) * factor) : T(0);
            }
          }
        }
      },
      work);
}
}   // namespace detail
/// y = x where the mask keeps it, divided by 1 - probability, and 0 elsewhere; without a run's key y = x.
/// Shapes:  x, y [N,C,rows,W]. Pre: x holds y's rows, and may be the same memory
template <class T>
void dropout_forward(const Operands<T>& o, int threads) {
  assert(o.x.range().contains(o.y.range()));
  detail::drop_rows(o, o.x, o.y, threads);
}
/// dx = dy by the same mask. Post: writes all rows of dx, which may be the memory of dy; rows that dy does not have get 0.
template <class T>
void dropout_backward(const Operands<T>& o, int threads) {
  detail::drop_rows(o, View<const T>(o.dy), o.dx, threads);
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::dropout, T>{dropout_forward<T>, dropout_backward<T>};
}   // namespace lrcnn::host
