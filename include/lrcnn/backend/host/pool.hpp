#pragma once
// Max and average pooling.
//
// Forward walks output rows, backward walks input rows and gathers from the output rows whose windows hold them, so
// every row is written once, by one thread, in a fixed order. Lanes of a storage block are the innermost loop.
// Dilation can put a window wholly in padding: its maximum is -inf, its mean 0.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/sums.hpp>
#include <array>
#include <limits>
namespace lrcnn::host {
namespace detail {
/// One row of max pooling. x_row(r) is the input row under tap row r. y and index may be null.
template <class T, Index L, class XRow>
void max_pool_row(Lanes<L>, Index lane, const Window& window, Range r, Index w, Index q_count, Index block, XRow x_row, T* y, std::uint8_t* index) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  using Code = typename W::Code;
  const Axis axis = column_axis(window);
  for (Index q = 0; q < q_count; ++q) {
    const Range s = taps_inside(axis, q, w);
    std::array<Value, W::count> best;
    std::array<Code, W::count> winner;
    best.fill(Value{} - std::numeric_limits<master_t<T>>::infinity());
    const Index first = r.empty() || s.empty() ? 0 : r.begin * axis.kernel + s.begin;
    winner.fill(Code{} + static_cast<typename W::CodeElement>(first));
    for (Index tap_r = r.begin; tap_r < r.end; ++tap_r) {
      const T* from = x_row(tap_r) + lane;
      for (Index tap_s = s.begin; tap_s < s.end; ++tap_s) {
        const T* x = from + tap_position(axis, q, tap_s) * block;
        read_ahead(x);
        const Code code = Code{} + static_cast<typename W::CodeElement>(tap_r * axis.kernel + tap_s);
        for (std::size_t p = 0; p < best.size(); ++p) {
          const Value v = load_word<Value>(x + static_cast<Index>(p) * W::width);
          const auto wins = (v > best[p]) | (v != v);
          best[p] = wins ? v : best[p];
          winner[p] = wins ? code : winner[p];
        }
      }
    }
    const Index at = q * block + lane;
    if (y != nullptr) write_ahead(y + at), store_words(y + at, best);
    if (index == nullptr) continue;
    const auto codes = load_word<std::array<typename W::CodeElement, L>>(&winner);
    for (std::size_t l = 0; l < L; ++l) index[at + static_cast<Index>(l)] = static_cast<std::uint8_t>(codes[l]);
  }
}
/// An output row whose windows hold a row of dx, as their tap row `tap`.
template <class T>
struct PoolRow {
  Index tap;
  const T* dy;
  const std::uint8_t* index;
};
/// dy where the winner's place is `code`, added to sums.
template <class T, Index L, class Sums>
void add_where_won(Lanes<L>, const PoolRow<T>& from, Index at, Index code, Sums& sums) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  const auto wanted = typename W::Code{} + static_cast<typename W::CodeElement>(code);
  for (std::size_t p = 0; p < sums.size(); ++p) {
    const Index first = at + static_cast<Index>(p) * W::width;
    sums[p] += load_codes<typename W::Code, W::width>(from.index + first) == wanted ? load_word<Value>(from.dy + first) : Value{};
  }
}
/// A row of dx: each element is the sum of dy over the windows that it won, in the order of their taps.
template <class T, Index L>
void max_pool_row_backward(Lanes<L> lanes, const Axis& columns, Index w, Index q_count, Index block, const PoolRow<T>* rows, Index row_count, T* dx) {
  using W = Words<T, L>;
  Index first = columns.pad_begin / columns.stride, first_tap = columns.pad_begin % columns.stride;   // the last window that begins at or before x
  for (Index x = 0; x < w; ++x) {
    std::array<typename W::Value, W::count> sums{};
    for (Index r = 0; r < row_count; ++r) {
      if (x < q_count) read_ahead(rows[r].dy + x * block);
      if (columns.dilation == 1) {
        for (Index s = first_tap, q = first; s < columns.kernel && q >= 0; s += columns.stride, --q)
          if (q < q_count) add_where_won(lanes, rows[r], q * block, rows[r].tap * columns.kernel + s, sums);
      } else {
        for (Index s = 0; s < columns.kernel; ++s)
          if (const Index q = output_reading(columns, x, s, {0, q_count}); q >= 0)
            add_where_won(lanes, rows[r], q * block, rows[r].tap * columns.kernel + s, sums);
      }
    }
    write_ahead(dx + x * block);
    store_words(dx + x * block, sums);
    if (++first_tap == columns.stride) first_tap = 0, ++first;
  }
}
/// Positions that average pooling counts along one axis, at one output position: those inside the map, or also those in the padding.
constexpr Index average_count(const Axis& axis, Index out, Index extent, bool count_padding) {
  return counted_taps(tap_position(axis, out, 0), axis.kernel, axis.dilation, extent, extent + axis.pad_end, count_padding);
}
}   // namespace detail
/// y = the largest value in each window, saved = its place in the window (row-major), one byte.
/// Shapes:  x [N,C,rows,W] -> y [N,C,rows,Q], saved in y's layout; y or saved may be empty
/// Post:    padding counts as -inf, the first of equals wins; not-a-number wins over everything
template <class T>
void max_pool_forward(const Operands<T>& o, int threads) {
  const Window& window = o.node->layer.window;
  const Axis axis = row_axis(window);
  const Index h = o.node->in.h, w = o.node->in.w;
  const auto row_at = [&](Index i, Index b, Index row) {
    const Range r = taps_inside(axis, row, h);
    assert(o.x.range().contains(positions(axis, row, r)));
    T* y = o.y.data ? o.y.row(i, b, row) : nullptr;
    std::uint8_t* index = o.saved.data ? o.saved.row(i, b, row) : nullptr;
    const Index block = o.x.block;
    for_lanes(block, [&](auto lanes, Index lane) {
      detail::max_pool_row(
          lanes, lane, window, r, w, o.node->out.w, block, [&](Index tap) { return o.x.row(i, b, tap_position(axis, row, tap)); }, y, index);
    });
  };
  if (o.y.data) for_rows(o.y, threads, row_at);
  else for_rows(o.saved, threads, row_at);
  if (o.y.data && window.dilation != Pair{1}) zero_padded_channels(o.y);
}
/// dx = dy where a window's winner lies, added up over windows.
/// Post:    writes all rows of dx; only windows of dy's rows contribute
template <class T>
void max_pool_backward(const Operands<T>& o, int threads) {
  const Axis rows = row_axis(o.node->layer.window), columns = column_axis(o.node->layer.window);
  const Index w = o.node->in.w, block = o.dx.block;
  assert(rows.kernel <= 256);   // a winner's place is a byte
  for_rows(o.dx, threads, [&](Index i, Index b, Index h) {
    for_lanes(block, [&](auto lanes, Index lane) {
      std::array<detail::PoolRow<T>, 256> from;
      Index count = 0;
      for (Index r = 0; r < rows.kernel; ++r)
        if (const Index y = output_reading(rows, h, r, o.dy.range()); y >= 0)
          item(from, count++) = {r, o.dy.row(i, b, y) + lane, o.saved.row(i, b, y) + lane};
      detail::max_pool_row_backward(lanes, columns, w, o.node->out.w, block, from.data(), count, o.dx.row(i, b, h) + lane);
    });
  });
}
/// y = the mean of each window, over its positions inside the map, or all of them if padding counts.
/// Shapes:  x [N,C,rows,W] -> y [N,C,rows,Q]
template <class T>
void avg_pool_forward(const Operands<T>& o, int threads) {
  const Layer& layer = o.node->layer;
  const Axis rows = row_axis(layer.window), columns = column_axis(layer.window);
  const Index w = o.node->in.w, block = o.x.block;
  for_rows(o.y, threads, [&](Index i, Index b, Index row) {
    const Range r = taps_inside(rows, row, o.node->in.h);
    assert(o.x.range().contains(positions(rows, row, r)));
    const Index row_count = detail::average_count(rows, row, o.node->in.h, layer.count_padding);
    T* y = o.y.row(i, b, row);
    for_lanes(block, [&](auto lanes, Index lane) {
      using W = Words<T, decltype(lanes)::value>;
      using Value = typename W::Value;
      for (Index q = 0; q < o.node->out.w; ++q) {
        const Range s = taps_inside(columns, q, w);
        std::array<Value, W::count> sum{};
        for (Index tap_r = r.begin; tap_r < r.end; ++tap_r) {
          const T* from = o.x.row(i, b, tap_position(rows, row, tap_r)) + lane;
          for (Index tap_s = s.begin; tap_s < s.end; ++tap_s) {
            const T* v = from + tap_position(columns, q, tap_s) * block;
            for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += load_word<Value>(v + static_cast<Index>(p) * W::width);
          }
        }
        const Index column_count = detail::average_count(columns, q, w, layer.count_padding);
        const auto count = static_cast<master_t<T>>(std::max<Index>(1, row_count * column_count));
        for (Value& part : sum) part = part / (Value{} + count);
        store_words(y + q * block + lane, sum);
      }
    });
  });
}
/// dx = dy / count, added up over windows.
/// Post:    writes all rows of dx; only windows of dy's rows contribute
template <class T>
void avg_pool_backward(const Operands<T>& o, int threads) {
  const Layer& layer = o.node->layer;
  const Axis rows = row_axis(layer.window), columns = column_axis(layer.window);
  const Index w = o.node->in.w, block = o.dx.block;
  for_rows(o.dx, threads, [&](Index i, Index b, Index h) {
    T* dx = o.dx.row(i, b, h);
    std::fill_n(dx, o.dx.stride_row(), T(0));
    for_lanes(block, [&](auto lanes, Index lane) {
      sum_columns(lanes, dx + lane, block, w, [&](master_t<T>* sums, Index step, Range piece) {
        using W = Words<T, decltype(lanes)::value>;
        using Value = typename W::Value;
        for (Index r = 0; r < rows.kernel; ++r) {
          const Index y = output_reading(rows, h, r, o.dy.range());
          if (y < 0) continue;
          const T* dy = o.dy.row(i, b, y) + lane;
          const Index row_count = detail::average_count(rows, y, o.node->in.h, layer.count_padding);
          for (Index s = 0; s < columns.kernel; ++s) {
            const Range q = outputs_within(columns, s, piece, o.node->out.w);
            for (Index at = q.begin; at < q.end; ++at) {
              master_t<T>* to = sums + (tap_position(columns, at, s) - piece.begin) * step;
              const T* from = dy + at * block;
              const Index column_count = detail::average_count(columns, at, w, layer.count_padding);
              const Value count = Value{} + static_cast<master_t<T>>(row_count * column_count);
              for (Index p = 0; p < W::count * W::width; p += W::width)
                store_word(to + p, load_word<Value>(to + p) + load_word<Value>(from + p) / count);
            }
          }
        }
      });
    });
  });
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::max_pool, T>{max_pool_forward<T>, max_pool_backward<T>};
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::avg_pool, T>{avg_pool_forward<T>, avg_pool_backward<T>};
}   // namespace lrcnn::host
