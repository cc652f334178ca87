#pragma once
// Means of windows that cover a map, to a given number of rows and columns.
//
// Windows may overlap by a row or a column. Both passes gather, so every row is written once, by one thread, in a fixed order.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
namespace lrcnn::host {
/// y = the mean of each window (adaptive_window() along either axis).
/// Shapes:  x [N,C,rows,W] -> y [N,C,rows,Q]
/// Pre:     x holds the rows that y's read
template <class T>
void adaptive_pool_forward(const Operands<T>& o, int threads) {
  const Shape &in = o.node->in, &out = o.node->out;
  const Index block = o.y.block;
  for_rows(
      o.y, threads,
      [&](Index i, Index b, Index row) {
        const Range h = adaptive_window(row, out.h, in.h);
        assert(o.x.range().contains(h));
        T* y = o.y.row(i, b, row);
        for (Index q = 0; q < out.w; ++q) {
          const Range w = adaptive_window(q, out.w, in.w);
          for_lanes(block, [&](auto lanes, Index lane) {
            using W = Words<T, decltype(lanes)::value>;
            using Value = typename W::Value;
            if (h.size() * w.size() > largest_window_sum) {   // one running sum would stop growing
              constexpr std::size_t L = decltype(lanes)::value;
              std::array<double, L> total{};
              for (Index r = h.begin; r < h.end; ++r)
                for (Index first = w.begin; first < w.end; first += sum_piece) {
                  std::array<master_t<T>, L> some{};
                  for (Index s = first; s < std::min(first + sum_piece, w.end); ++s)
                    for (std::size_t l = 0; l < L; ++l) some[l] += o.x.row(i, b, r)[s * block + lane + static_cast<Index>(l)];
                  for (std::size_t l = 0; l < L; ++l) total[l] += static_cast<double>(some[l]);
                }
              const auto count = static_cast<double>(h.size() * w.size());
              for (std::size_t l = 0; l < L; ++l)
                y[q * block + lane + static_cast<Index>(l)] = static_cast<T>(static_cast<master_t<T>>(total[l] / count));
              return;
            }
            std::array<Value, W::count> sum{};
            for (Index r = h.begin; r < h.end; ++r) {
              const T* x = o.x.row(i, b, r) + lane;
              for (Index s = w.begin; s < w.end; ++s)
                for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += load_word<Value>(x + s * block + static_cast<Index>(k) * W::width);
            }
            for (Value& part : sum) part = part / (Value{} + static_cast<master_t<T>>(h.size() * w.size()));
            store_words(y + q * block + lane, sum);
          });
        }
      },
      ceil_div(in.h, out.h) * ceil_div(in.w, out.w));
}
/// dx = dy / the window's size, added up over windows.
/// Shapes:  dy [N,C,rows,Q] -> dx [N,C,rows,W]
/// Post:    writes all rows of dx; only windows of dy's rows contribute
template <class T>
void adaptive_pool_backward(const Operands<T>& o, int threads) {
  const Shape &in = o.node->in, &out = o.node->out;
  const Index block = o.dx.block;
  for_rows(o.dx, threads, [&](Index i, Index b, Index row) {
    const Range p = intersect(adaptive_readers(row, out.h, in.h), o.dy.range());
    T* dx = o.dx.row(i, b, row);
    for (Index column = 0; column < in.w; ++column) {
      const Range q = adaptive_readers(column, out.w, in.w);
      for_lanes(block, [&](auto lanes, Index lane) {
        using W = Words<T, decltype(lanes)::value>;
        using Value = typename W::Value;
        std::array<Value, W::count> sum{};
        for (Index r = p.begin; r < p.end; ++r) {
          const T* dy = o.dy.row(i, b, r) + lane;
          for (Index s = q.begin; s < q.end; ++s) {
            const Index size = adaptive_window(r, out.h, in.h).size() * adaptive_window(s, out.w, in.w).size();
            const Value count = Value{} + static_cast<master_t<T>>(size);
            const T* from = dy + s * block;
            for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += load_word<Value>(from + static_cast<Index>(k) * W::width) / count;
          }
        }
        store_words(dx + column * block + lane, sum);
      });
    }
  });
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::adaptive_avg_pool, T>{adaptive_pool_forward<T>, adaptive_pool_backward<T>};
}   // namespace lrcnn::host
