#pragma once
// Convolution by plain loops: the oracle.
//
// A tap of the window turns a row of the input into a contribution to a row of the output: a loop over the columns
// for which the tap lies inside the map, with the bounds found beforehand. Every sum has one order, forward r, s, c,
// that depends on nothing but the position in the whole map, so slabs give the bits of the whole map.
#include <lrcnn/backend/host/bias.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/sums.hpp>
namespace lrcnn::host {
namespace detail {
/// to[j * to_step] += factor * from[j * from_step]
template <class T>
void multiply_add(master_t<T>* __restrict to, Index to_step, const T* __restrict from, Index from_step, master_t<T> factor, Index count) {
  using W = Words<T, 16>;
  using Value = typename W::Value;
  Index j = 0;
  if (to_step == 1 && from_step == 1)
    for (; j + W::width <= count; j += W::width) store_word(to + j, load_word<Value>(to + j) + factor * load_word<Value>(from + j));
  for (; j < count; ++j) to[j * to_step] += factor * from[j * from_step];
}
/// Sum of a[j * a_step] * b[j * b_step]
template <class T>
master_t<T> dot(const T* a, Index a_step, const T* b, Index b_step, Index count) {
  master_t<T> even{}, odd{};
  Index j = 0;
  for (; j + 1 < count; j += 2) {
    even += a[j * a_step] * b[j * b_step];
    odd += a[(j + 1) * a_step] * b[(j + 1) * b_step];
  }
  if (j < count) even += a[j * a_step] * b[j * b_step];
  return even + odd;
}
/// A convolution's numbers, gathered once per call.
struct ConvLoops {
  Axis rows, columns;
  Index h, w, q;            ///< of the whole map; q: output columns
  Index c_group, k_group;   ///< channels of one group
  Index k;
  explicit ConvLoops(const Node& node)
      : rows(row_axis(node.layer.window)),
        columns(column_axis(node.layer.window)),
        h(node.in.h),
        w(node.in.w),
        q(node.out.w),
        c_group(node.in.c / node.layer.groups),
        k_group(node.out.c / node.layer.groups),
        k(node.out.c) {}
  constexpr Index taps() const { return rows.kernel * columns.kernel; }
  constexpr Range columns_inside(Index s) const { return outputs_inside(columns, s, w, q); }
  /// Output columns whose tap s lies within some input columns.
  constexpr Range columns_within(Index s, Range in) const { return outputs_within(columns, s, in, q); }
  /// Element of the filter [K, C/groups, R, S].
  constexpr Index weight(Index out, Index in, Index r, Index s) const { return ((out * c_group + in) * rows.kernel + r) * columns.kernel + s; }
};
}   // namespace detail
/// y = w * x + b.
/// Shapes:  x [N,C,rows,W], parameters w [K,C/groups,R,S] and, if the layer has one, b [K] -> y [N,K,rows,Q]
/// Pre:     x holds the rows inside the map that y's rows read
/// Post:    writes y; rows computed by slabs equal those of the whole map to the bit
template <class T>
void conv_forward(const Operands<T>& o, int threads) {
  using A = master_t<T>;
  const detail::ConvLoops loops(*o.node);
  const A* bias = o.node->layer.bias ? o.parameters[1] : nullptr;
  const Index block = o.y.block, step = loops.columns.stride * o.x.block;
  for_rows(
      o.y, threads,
      [&](Index i, Index b, Index row) {
        T* y = o.y.row(i, b, row);
        const Range taps = taps_inside(loops.rows, row, loops.h);
        for (Index lane = 0; lane < block; ++lane) {
          const Index k = b * block + lane;
          sum_columns(Lanes<1>{}, y + lane, block, loops.q, [&](A* sums, Index sum_step, Range piece) {
            const A start = bias && k < loops.k ? bias[k] : A(0);
            for (Index q = 0; q < piece.size(); ++q) sums[q * sum_step] = start;
            if (k >= loops.k) return;
            const Index first = k / loops.k_group * loops.c_group;
            for (Index r = taps.begin; r < taps.end; ++r) {
              const Index h = tap_position(loops.rows, row, r);
              assert(o.x.range().contains({h, h + 1}));
              for (Index s = 0; s < loops.columns.kernel; ++s) {
                const Range q = intersect(loops.columns_inside(s), piece);
                if (q.empty()) continue;
                const Index from = tap_position(loops.columns, q.begin, s) * o.x.block;
                A* to = sums + (q.begin - piece.begin) * sum_step;
                for (Index c = 0; c < loops.c_group; ++c)
                  detail::multiply_add(to, sum_step, channel_row(o.x, i, first + c, h) + from, step, o.parameters[0][loops.weight(k, c, r, s)],
                                       q.size());
              }
            }
          });
        }
      },
      loops.c_group * loops.taps());
}
/// dx = the gradient of x that dy's rows send.
/// Shapes:  dy [N,K,rows,Q] -> dx [N,C,rows,W]
/// Post:    writes all rows and columns of dx, 0 where no window of dy's rows reads
template <class T>
void conv_backward_data(const Operands<T>& o, int threads) {
  const detail::ConvLoops loops(*o.node);
  const Index block = o.dx.block;
  for_rows(
      o.dx, threads,
      [&](Index i, Index b, Index h) {
        T* dx = o.dx.row(i, b, h);
        std::fill_n(dx, o.dx.stride_row(), T(0));
        for (Index lane = 0; lane < std::min(block, o.dx.c - b * block); ++lane) {
          const Index c = b * block + lane, group = c / loops.c_group, first = group * loops.k_group;
          sum_columns(Lanes<1>{}, dx + lane, block, loops.w, [&](master_t<T>* sums, Index sum_step, Range piece) {
            for (Index r = 0; r < loops.rows.kernel; ++r) {
              const Index row = output_reading(loops.rows, h, r, o.dy.range());
              if (row < 0) continue;
              for (Index s = 0; s < loops.columns.kernel; ++s) {
                const Range q = loops.columns_within(s, piece);
                if (q.empty()) continue;
                master_t<T>* to = sums + (tap_position(loops.columns, q.begin, s) - piece.begin) * sum_step;
                for (Index k = first; k < first + loops.k_group; ++k)
                  detail::multiply_add(to, loops.columns.stride * sum_step, channel_row(o.dy, i, k, row) + q.begin * o.dy.block, o.dy.block,
                                       o.parameters[0][loops.weight(k, c - group * loops.c_group, r, s)], q.size());
              }
            }
          });
        }
      },
      loops.k_group * loops.taps());
}
/// dw, db = the gradients that dy's rows send; added to what is there if accumulate, else written.
/// Shapes:  x [N,C,rows,W], dy [N,K,rows,Q] -> d_parameters dw [K,C/groups,R,S] and, if the layer has one, db [K]
/// Post:    the order of additions is images, rows, columns
template <class T>
void conv_backward_parameters(const Operands<T>& o, int threads) {
  const detail::ConvLoops loops(*o.node);
  const Index filter = loops.c_group * loops.taps();
  const Index work = loops.k * filter * o.dy.n * o.dy.rows * loops.q;
  parallel_for(loops.k, useful_threads(work, threads), [&](Index k) {
    master_t<T>* dw = o.d_parameters[0];
    if (!o.accumulate) std::fill_n(dw + k * filter, filter, master_t<T>(0));
    const Index first = k / loops.k_group * loops.c_group;
    for (Index i = 0; i < o.dy.n; ++i)
      for (Index row = o.dy.row0; row < o.dy.row0 + o.dy.rows; ++row) {
        const Range taps = taps_inside(loops.rows, row, loops.h);
        const T* dy = channel_row(o.dy, i, k, row);
        for (Index s = 0; s < loops.columns.kernel; ++s) {
          const Range q = loops.columns_inside(s);
          if (q.empty()) continue;
          const Index from = tap_position(loops.columns, q.begin, s) * o.x.block;
          for (Index r = taps.begin; r < taps.end; ++r) {
            const Index h = tap_position(loops.rows, row, r);
            assert(o.x.range().contains({h, h + 1}));
            for (Index c = 0; c < loops.c_group; ++c)
              dw[loops.weight(k, c, r, s)] += detail::dot(dy + q.begin * o.dy.block, o.dy.block, channel_row(o.x, i, first + c, h) + from,
                                                          loops.columns.stride * o.x.block, q.size());
          }
        }
      }
  });
  bias_gradient(o, threads);
}
}   // namespace lrcnn::host
