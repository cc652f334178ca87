#pragma once
// Transposed convolution: y = sum over taps of w * x, where tap r takes input row i to output row i * stride - pad + r * dilation.
//
// Forward and backward gather in the same way. What is written is made in tiles of some rows, columns and up to sixteen channels, summed
// on the stack in the arithmetic of parameters and rounded once. For each tap and 64 of the other side's channels at a time, the filter's
// numbers are laid out as lanes, and four columns at a time are multiplied with them in registers. Every sum has one order, taps, then
// channels, whatever the tiles, so slabs give the bits of the whole map, and so does any number of threads.
#include <lrcnn/backend/host/bias.hpp>
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
#include <array>
namespace lrcnn::host {
namespace detail {
/// A transposed convolution's numbers, gathered once per call.
struct TransposedLoops {
  Axis rows, columns;
  Shape in, out;
  Index c_group, k_group;   ///< channels of one group
  explicit TransposedLoops(const Node& node)
      : rows(row_axis(node.layer.window)),
        columns(column_axis(node.layer.window)),
        in(node.in),
        out(node.out),
        c_group(node.in.c / node.layer.groups),
        k_group(node.out.c / node.layer.groups) {}
  constexpr Index taps() const { return rows.kernel * columns.kernel; }
  /// Element of the filter [C, K/groups, R, S]; k counts within its group.
  constexpr Index weight(Index c, Index k, Index r, Index s) const { return ((c * k_group + k) * rows.kernel + r) * columns.kernel + s; }
  /// Output position of an input position.
  static constexpr Index sent_to(const Axis& axis, Index in, Index tap) { return tap_position(axis, in, tap); }
  /// Input positions in [0, extent) that a tap sends into some output positions.
  static constexpr Range sent_into(const Axis& axis, Index tap, Range out, Index extent) { return outputs_within(axis, tap, out, extent); }
};
/// What is made at once: positions of some rows and columns, L lanes each.
template <class T, Index L>
struct TransposedTile {
  static constexpr Index positions = 512;
  Range rows{}, columns{};
  std::array<master_t<T>, static_cast<std::size_t>(positions* L)> sums;
  master_t<T>* at(Index row, Index column) { return sums.data() + ((row - rows.begin) * columns.size() + column - columns.begin) * L; }
};
/// Numbers of a filter for some channels of what is read: L lanes of what is written for each.
template <class T, Index L>
using TransposedLanes = std::array<master_t<T>, static_cast<std::size_t>(64 * L)>;
/// sums[j * to_step] += sum over channels c of from(c)[(column + j * step)] * filter(c), for n columns.
template <Index n, class T, Index L>
void gather_columns(const View<const T>& from, Index image, Range channels, Index row, Index column, Index step, const master_t<T>* filter,
                    master_t<T>* sums, Index to_step) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  std::array<std::array<Value, W::count>, n> sum;
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t p = 0; p < sum[j].size(); ++p)
      sum[j][p] = load_word<Value>(sums + static_cast<Index>(j) * to_step + static_cast<Index>(p) * W::width);
  const Index block = from.block;
  for (Index c = channels.begin; c < channels.end;) {
    const Index end = std::min(channels.end, (c / block + 1) * block);
    const T* x = from.row(image, c / block, row) + column * block + c % block;
    for (; c < end; ++c, ++x, filter += L) {
      std::array<Value, W::count> weight;
      for (std::size_t p = 0; p < weight.size(); ++p) weight[p] = load_word<Value>(filter + static_cast<Index>(p) * W::width);
      for (std::size_t j = 0; j < n; ++j) {
        const auto factor = static_cast<master_t<T>>(x[static_cast<Index>(j) * step * block]);
        for (std::size_t p = 0; p < weight.size(); ++p) sum[j][p] += factor * weight[p];
      }
    }
  }
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t p = 0; p < sum[j].size(); ++p) store_word(sums + static_cast<Index>(j) * to_step + static_cast<Index>(p) * W::width, sum[j][p]);
}
template <class T, Index L>
void gather_row(const View<const T>& from, Index image, Range channels, Index row, Index column, Index step, const master_t<T>* filter,
                master_t<T>* sums, Index to_step, Index count) {
  const auto columns = [&](auto n, Index j) {
    gather_columns<decltype(n)::value, T, L>(from, image, channels, row, column + j * step, step, filter, sums + j * to_step, to_step);
  };
  Index j = 0;
  for (; j + 4 <= count; j += 4) columns(Lanes<4>{}, j);
  for (; j < count; ++j) columns(Lanes<1>{}, j);
}
/// Calls make(tile, image, first channel, lanes) for tiles that cover a view, and stores what it leaves in their sums; padded channels as
/// zeros. `work`: multiplications for each element.
template <Index L, class T, class Make>
void for_transposed_tiles(const View<T>& to, int threads, Index work, Make make) {
  using Tile = TransposedTile<T, L>;
  if (to.rows <= 0) return;
  const Index block = to.block, groups = ceil_div(block, L), width = std::min(to.w, Tile::positions);
  const Index height = std::clamp<Index>(Tile::positions / width, 1, to.rows), pieces = ceil_div(to.rows, height), blocks = to.blocks();
  parallel_for(to.n * blocks * groups * pieces, useful_threads(to.n * blocks * block * to.rows * to.w * work, threads), [&](Index piece) {
    const Index image = piece / (blocks * groups * pieces), b = piece / (groups * pieces) % blocks, lane = piece / pieces % groups * L;
    const Index first = b * block + lane, stored = std::min(L, block - lane), lanes = std::clamp<Index>(to.c - first, 0, stored);
    Tile tile;
    tile.rows.begin = to.row0 + piece % pieces * height, tile.rows.end = std::min(tile.rows.begin + height, to.row0 + to.rows);
    for (Index column = 0; column < to.w; column += width) {
      tile.columns = {column, std::min(column + width, to.w)};
      make(tile, image, first, lanes);
      for (Index row = tile.rows.begin; row < tile.rows.end; ++row) {
        T* y = to.row(image, b, row) + lane;
        for (Index q = tile.columns.begin; q < tile.columns.end; ++q) {
          const master_t<T>* sums = tile.at(row, q);
          for (Index l = 0; l < stored; ++l) y[q * block + l] = l < lanes ? static_cast<T>(sums[l]) : T(0);
        }
      }
    }
  });
}
/// Calls f with the number of lanes that suits a storage block.
template <class F>
void with_lanes(Index block, F f) {
  if (block == 1) return f(Lanes<1>{});
  if (block <= 8) return f(Lanes<8>{});
  f(Lanes<16>{});
}
/// Channels of the other side that some channels are connected with. `mine`, `others`: channels of a group on either side.
constexpr Range connected(Index first, Index lanes, Index mine, Index others) {
  if (lanes == 0) return {0, 0};
  return {first / mine * others, ((first + lanes - 1) / mine + 1) * others};
}
/// dw of the channels of x from `c` on, `n` of them, and L channels of dy from `lane` of block b on: of all taps.
template <Index n, Index L, class T>
void transposed_filter(const Operands<T>& o, const TransposedLoops& loops, Index c, Index b, Index lane) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  const Index k = b * o.dy.block + lane, step = loops.columns.stride * o.dy.block;
  if (k >= loops.out.c) return;
  for (Index r = 0; r < loops.rows.kernel; ++r)
    for (Index s = 0; s < loops.columns.kernel; ++s) {
      const Range w = loops.sent_into(loops.columns, s, {0, loops.out.w}, loops.in.w);
      std::array<std::array<double, L>, n> sum{};
      for (Index i = 0; i < o.dy.n; ++i)
        for (Index row = o.dy.row0; row < o.dy.row0 + o.dy.rows; ++row) {
          const Index h = output_reading(loops.rows, row, r, {0, loops.in.h});
          if (h < 0 || w.empty()) continue;
          assert(o.x.range().contains({h, h + 1}));
          const T* dy = o.dy.row(i, b, row) + loops.sent_to(loops.columns, w.begin, s) * o.dy.block + lane;
          std::array<const T*, n> x;
          for (std::size_t j = 0; j < n; ++j) x[j] = channel_row(o.x, i, c + static_cast<Index>(j), h);
          for (Index first = w.begin; first < w.end; first += sum_piece) {
            std::array<std::array<Value, W::count>, n> some{};
            for (Index q = first; q < std::min(w.end, first + sum_piece); ++q, dy += step)
              for (std::size_t p = 0; p < W::count; ++p) {
                const Value down = load_word<Value>(dy + static_cast<Index>(p) * W::width);
                for (std::size_t j = 0; j < n; ++j) some[j][p] += static_cast<master_t<T>>(x[j][q * o.x.block]) * down;
              }
            for (std::size_t j = 0; j < n; ++j) {
              const auto lanes = load_word<std::array<master_t<T>, L>>(&some[j]);
              for (std::size_t l = 0; l < L; ++l) sum[j][l] += static_cast<double>(lanes[l]);
            }
          }
        }
      for (std::size_t j = 0; j < n; ++j) {
        const Index from = c + static_cast<Index>(j), group = from / loops.c_group;
        for (Index l = 0; l < L && k + l < loops.out.c; ++l) {
          if ((k + l) / loops.k_group != group) continue;
          put_gradient(o.d_parameters[0][loops.weight(from, k + l - group * loops.k_group, r, s)], item(sum[j], l), o.accumulate);
        }
      }
    }
}
}   // namespace detail
/// y = what a convolution with w would send back for x, + b.
/// Shapes:  x [N,C,rows,W], parameters w [C,K/groups,R,S] and, if the layer has one, b [K] -> y [N,K,rows,Q]
/// Pre:     x holds the rows inside the map that y's rows read
/// Post:    writes y; rows computed by slabs equal those of the whole map to the bit
template <class T>
void conv_transpose_forward(const Operands<T>& o, int threads) {
  const detail::TransposedLoops loops(*o.node);
  detail::with_lanes(o.y.block, [&](auto number) {
    constexpr Index L = decltype(number)::value;
    detail::for_transposed_tiles<L>(o.y, threads, loops.c_group * loops.taps(), [&](auto& tile, Index i, Index first, Index lanes) {
      for (Index at = 0; at < tile.rows.size() * tile.columns.size(); ++at)
        for (Index l = 0; l < L; ++l) item(tile.sums, at * L + l) = o.node->layer.bias && l < lanes ? o.parameters[1][first + l] : master_t<T>(0);
      const Range all = detail::connected(first, lanes, loops.k_group, loops.c_group);
      detail::TransposedLanes<T, L> filter;
      for (Index r = 0; r < loops.rows.kernel; ++r) {
        const Range h = loops.sent_into(loops.rows, r, tile.rows, loops.in.h);
        assert(h.empty() || o.x.range().contains(h));
        for (Index s = 0; s < loops.columns.kernel; ++s) {
          const Range w = loops.sent_into(loops.columns, s, tile.columns, loops.in.w);
          for (Index from = all.begin; from < all.end && !h.empty() && !w.empty(); from += 64) {
            const Range channels{from, std::min(from + 64, all.end)};
            auto* lane = filter.data();
            for (Index c = channels.begin; c < channels.end; ++c)
              for (Index l = 0; l < L; ++l) {
                const Index group = c / loops.c_group, k = first + l - group * loops.k_group;
                *lane++ = l < lanes && 0 <= k && k < loops.k_group ? o.parameters[0][loops.weight(c, k, r, s)] : master_t<T>(0);
              }
            for (Index row = h.begin; row < h.end; ++row)
              detail::gather_row<T, L>(o.x, i, channels, row, w.begin, 1, filter.data(),
                                       tile.at(loops.sent_to(loops.rows, row, r), loops.sent_to(loops.columns, w.begin, s)), loops.columns.stride * L,
                                       w.size());
          }
        }
      }
    });
  });
}
/// dx = the convolution of dy's rows with w.
/// Shapes:  dy [N,K,rows,Q] -> dx [N,C,rows,W]
/// Post:    writes all rows and columns of dx; only rows that dy has contribute
template <class T>
void conv_transpose_backward_data(const Operands<T>& o, int threads) {
  const detail::TransposedLoops loops(*o.node);
  const View<const T> dy = o.dy;
  detail::with_lanes(o.dx.block, [&](auto number) {
    constexpr Index L = decltype(number)::value;
    detail::for_transposed_tiles<L>(o.dx, threads, loops.k_group * loops.taps(), [&](auto& tile, Index i, Index first, Index lanes) {
      tile.sums.fill(master_t<T>(0));
      const Range all = detail::connected(first, lanes, loops.c_group, loops.k_group);
      detail::TransposedLanes<T, L> filter;
      for (Index r = 0; r < loops.rows.kernel; ++r) {
        const Range h = intersect(loops.sent_into(loops.rows, r, dy.range(), loops.in.h), tile.rows);
        for (Index s = 0; s < loops.columns.kernel; ++s) {
          const Range w = intersect(loops.sent_into(loops.columns, s, {0, loops.out.w}, loops.in.w), tile.columns);
          for (Index from = all.begin; from < all.end && !h.empty() && !w.empty(); from += 64) {
            const Range channels{from, std::min(from + 64, all.end)};
            auto* lane = filter.data();
            for (Index k = channels.begin; k < channels.end; ++k)
              for (Index l = 0; l < L; ++l) {
                const Index group = k / loops.k_group;
                const bool joined = l < lanes && (first + l) / loops.c_group == group;
                *lane++ = joined ? o.parameters[0][loops.weight(first + l, k - group * loops.k_group, r, s)] : master_t<T>(0);
              }
            for (Index row = h.begin; row < h.end; ++row)
              detail::gather_row<T, L>(dy, i, channels, loops.sent_to(loops.rows, row, r), loops.sent_to(loops.columns, w.begin, s),
                                       loops.columns.stride, filter.data(), tile.at(row, w.begin), L, w.size());
          }
        }
      }
    });
  });
}
/// dw, db = the gradients that dy's rows send; added to what is there if accumulate, else written.
/// Shapes:  x [N,C,rows,W], dy [N,K,rows,Q] -> d_parameters dw [C,K/groups,R,S] and, if the layer has one, db [K]
/// Post:    the order of additions is images, rows, columns
template <class T>
void conv_transpose_backward_parameters(const Operands<T>& o, int threads) {
  const detail::TransposedLoops loops(*o.node);
  const Index quads = ceil_div(loops.in.c, Index{4}), blocks = o.dy.blocks(), block = o.dy.block;
  const Index work = loops.in.c * loops.k_group * loops.taps() * o.dy.n * o.dy.rows * o.dy.w / loops.columns.stride;
  parallel_for(quads * blocks, useful_threads(work, threads), [&](Index piece) {
    const Index b = piece % blocks, first = piece / blocks * 4, count = std::min<Index>(4, loops.in.c - first);
    const Range joined = detail::connected(first, count, loops.c_group, loops.k_group);
    if (intersect(joined, {b * block, (b + 1) * block}).empty()) return;
    const auto lanes_at = [&](auto lanes, Index lane) {
      constexpr Index L = decltype(lanes)::value;
      if (count == 4) return detail::transposed_filter<4, L>(o, loops, first, b, lane);
      for (Index c = first; c < first + count; ++c) detail::transposed_filter<1, L>(o, loops, c, b, lane);
    };
    Index lane = 0;
    for (; lane + 16 <= block; lane += 16) lanes_at(Lanes<16>{}, lane);
    for (; lane + 8 <= block; lane += 8) lanes_at(Lanes<8>{}, lane);
    for (; lane < block; ++lane) lanes_at(Lanes<1>{}, lane);
  });
  bias_gradient(o, threads);
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::conv_transpose, T>{conv_transpose_forward<T>, conv_transpose_backward_data<T>,
                                                                    conv_transpose_backward_parameters<T>};
}   // namespace lrcnn::host
