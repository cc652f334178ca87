#pragma once
// Max and average pooling.
//
// Forward walks output rows, backward walks input rows and gathers from the output rows whose windows hold them, so
// every row is written once, by one thread, in a fixed order. Lanes of a storage block are the innermost loop.
// Dilation can put a window wholly in padding: its maximum is -inf, its mean 0.
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/sums.hpp>
#include <array>
#include <limits>
namespace lrcnn::host {
namespace detail {
/// One row of max pooling. x_row(r) is the input row under tap row r. y and index may be null.
template <class T, Index L, class XRow>
void max_pool_row(Lanes<L>, Index lane, const Window& window, Range r, Index w, Index q_count, Index block,
                  XRow x_row, T* y, std::uint8_t* index) {
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
    if (y != nullptr) store_words(y + at, best);
    if (index == nullptr) continue;
    const auto codes = load_word<std::array<typename W::CodeElement, L>>(&winner);
    for (std::size_t l = 0; l < L; ++l) index[at + static_cast<Index>(l)] = static_cast<std::uint8_t>(codes[l]);
  }
}
/// One tap's share of a row of dx: dy where the winner's place is `code`.
template <class T, Index L>
void max_pool_tap(Lanes<L>, const std::uint8_t* index, Index code, const T* dy, master_t<T>* dx) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  std::array<typename W::CodeElement, L> places;
  for (std::size_t l = 0; l < L; ++l) places[l] = index[l];
  const auto codes = load_word<std::array<typename W::Code, W::count>>(&places);
  for (std::size_t p = 0; p < codes.size(); ++p) {
    const Index at = static_cast<Index>(p) * W::width;
    const auto wins = codes[p] == typename W::Code{} + static_cast<typename W::CodeElement>(code);
    store_word(dx + at, load_word<Value>(dx + at) + (wins ? load_word<Value>(dy + at) : Value{}));
  }
}
/// Positions that average pooling counts along one axis, at one output position: those inside the map, or also those in the padding.
constexpr Index average_count(const Axis& axis, Index out, Index extent, bool count_padding) {
  if (!count_padding) return taps_inside(axis, out, extent).size();
  if (!axis.ceil) return axis.kernel;
  const Axis padded{.kernel = axis.kernel, .stride = axis.stride, .dilation = axis.dilation};
  return taps_inside(padded, out, extent + axis.pad_begin + axis.pad_end).size();
}
}  // namespace detail
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
      detail::max_pool_row(lanes, lane, window, r, w, o.node->out.w, block, [&](Index tap) {
        return o.x.row(i, b, tap_position(axis, row, tap));
      }, y, index);
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
  for_rows(o.dx, threads, [&](Index i, Index b, Index h) {
    T* dx = o.dx.row(i, b, h);
    std::fill_n(dx, o.dx.stride_row(), T(0));
    for_lanes(block, [&](auto lanes, Index lane) {
      sum_columns(lanes, dx + lane, block, w, [&](master_t<T>* sums, Index step, Range piece) {
        for (Index r = 0; r < rows.kernel; ++r) {
          const Index y = output_reading(rows, h, r, o.dy.range());
          if (y < 0) continue;
          const T* dy = o.dy.row(i, b, y) + lane;
          const std::uint8_t* index = o.saved.row(i, b, y) + lane;
          for (Index s = 0; s < columns.kernel; ++s) {
            const Range q = outputs_within(columns, s, piece, o.node->out.w);
            for (Index at = q.begin; at < q.end; ++at)
              detail::max_pool_tap(lanes, index + at * block, r * columns.kernel + s, dy + at * block,
                                   sums + (tap_position(columns, at, s) - piece.begin) * step);
          }
        }
      });
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
            for (std::size_t p = 0; p < sum.size(); ++p)
              sum[p] += load_word<Value>(v + static_cast<Index>(p) * W::width);
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
}  // namespace lrcnn::host
