#pragma once
// Rows and columns added around a map, zeros or reflected ones, or taken away.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
namespace lrcnn::host {
namespace detail {
/// Where zeros are padded or the map is cropped: row and column `at` of `to` is `at` - (top, left) of `from`, zero where that has none.
template <class T>
void shift_rows(const View<const T>& from, const View<T>& to, Index top, Index left, int threads) {
  const Index block = to.block;
  const Range all{0, to.w}, inside = intersect({left, left + from.w}, all);
  for_rows(to, threads, [&](Index i, Index b, Index row) {
    T* y = to.row(i, b, row);
    const bool there = from.range().contains({row - top, row - top + 1}) && !inside.empty();
    if (!there) {
      std::fill_n(y, to.stride_row(), T(0));
      return;
    }
    std::fill_n(y, inside.begin * block, T(0));
    std::copy_n(from.row(i, b, row - top) + (inside.begin - left) * block, inside.size() * block, y + inside.begin * block);
    std::fill_n(y + inside.end * block, (to.w - inside.end) * block, T(0));
  });
}
}   // namespace detail
/// y = x with rows and columns around it, or without some of its own.
/// Shapes:  x [N,C,rows,W] -> y [N,C,rows,W+left+right]
/// Pre:     x holds the rows inside the map that y's rows show
template <class T>
void pad_forward(const Operands<T>& o, int threads) {
  const Pad& pad = o.node->layer.window.pad;
  if (!o.node->layer.reflect) return detail::shift_rows(o.x, o.y, pad.top, pad.left, threads);
  const Index block = o.y.block, h = o.node->in.h, w = o.node->in.w;
  for_rows(o.y, threads, [&](Index i, Index b, Index row) {
    const Index from = reflected_position(row, pad.top, h);
    assert(o.x.range().contains({from, from + 1}));
    const T* x = o.x.row(i, b, from);
    T* y = o.y.row(i, b, row);
    for (Index q = 0; q < pad.left; ++q) std::copy_n(x + reflected_position(q, pad.left, w) * block, block, y + q * block);
    std::copy_n(x, w * block, y + pad.left * block);
    for (Index q = pad.left + w; q < o.y.w; ++q) std::copy_n(x + reflected_position(q, pad.left, w) * block, block, y + q * block);
  });
}
/// dx = what dy's rows send back to each position that they show.
/// Shapes:  dy [N,C,rows,W+left+right] -> dx [N,C,rows,W]
/// Post:    writes all rows of dx; only rows that dy has contribute
template <class T>
void pad_backward(const Operands<T>& o, int threads) {
  const Pad& pad = o.node->layer.window.pad;
  if (!o.node->layer.reflect) return detail::shift_rows(View<const T>(o.dy), o.dx, -pad.top, -pad.left, threads);
  const Index block = o.dx.block, w = o.node->in.w;
  for_rows(o.dx, threads, [&](Index i, Index b, Index row) {
    const Reflections down(pad.top, pad.bottom, row, o.node->in.h, o.dy.range());
    T* dx = o.dx.row(i, b, row);
    for (Index column = 0; column < w; ++column) {
      const Reflections across(pad.left, pad.right, column, w, {0, o.node->out.w});
      for_lanes(block, [&](auto lanes, Index lane) {
        using W = Words<T, decltype(lanes)::value>;
        using Value = typename W::Value;
        std::array<Value, W::count> sum{};
        for (int p = 0; p < down.count; ++p)
          for (int q = 0; q < across.count; ++q) {
            const T* dy = o.dy.row(i, b, down.at[p]) + across.at[q] * block + lane;
            for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += load_word<Value>(dy + static_cast<Index>(k) * W::width);
          }
        store_words(dx + column * block + lane, sum);
      });
    }
  });
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::pad, T>{pad_forward<T>, pad_backward<T>};
}   // namespace lrcnn::host
