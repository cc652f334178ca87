#pragma once
// 1x1 convolutions from blocks of channels to a few plain ones: the head of a segmentation network.
//
// Vendors' libraries have no kernels for such outputs, and the general loops (conv.hpp) read the map once for each pair of channels. These
// read it once. A sum over channels is made for each lane of a block first and over lanes then, so a pixel's bits depend on nothing else.
#include <lrcnn/backend/host/conv.hpp>
#include <lrcnn/backend/host/strips.hpp>
namespace lrcnn::host {
namespace detail {
inline constexpr Index few_channels = 4;
/// A weight for each lane of a block and each output channel; zero for lanes that are padding.
template <class T, Index L>
using LaneWeights = std::array<std::array<master_t<T>, L>, few_channels>;
template <class T, Index L>
LaneWeights<T, L> lane_weights(const master_t<T>* filter, Index in_c, Index out_c, Index first) {
  LaneWeights<T, L> weights{};
  for (Index k = 0; k < out_c; ++k)
    for (Index l = 0; l < L && first + l < in_c; ++l) item(item(weights, k), l) = filter[k * in_c + first + l];
  return weights;
}
/// Adds up a word's lanes, halves at a time.
template <class A, Index L, class Value>
A sum_of_lanes(const Value* words) {
  std::array<A, L> lanes;
  std::memcpy(&lanes, words, sizeof(lanes));
  for (std::size_t half = L / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}
/// A row of y. Shapes: x: rows of all blocks, `next_block` elements apart; y: a row for each channel, `next_channel` apart
template <class T, Index L>
void pointwise_row(Lanes<L>, const T* x, Index next_block, Index in_c, const master_t<T>* filter, const master_t<T>* bias, T* y, Index next_channel,
                   Index out_c, Index w) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  constexpr Index piece = 64;   // columns whose sums are in the processor's first cache
  std::array<Value, static_cast<std::size_t>(piece * few_channels * W::count)> sums;
  for (Index first = 0; first < w; first += piece) {
    const Index count = std::min(piece, w - first);
    sums.fill(Value{});
    for (Index c = 0; c < in_c; c += L) {
      const auto weights = lane_weights<T, L>(filter, in_c, out_c, c);
      const T* const from = x + c / L * next_block + first * L;
      for (Index q = 0; q < count; ++q) {
        read_ahead(from + q * L);
        for (Index p = 0; p < W::count; ++p) {
          const Value value = load_word<Value>(from + q * L + p * W::width);
          for (Index k = 0; k < out_c; ++k)
            item(sums, (q * few_channels + k) * W::count + p) += value * load_word<Value>(&item(item(weights, k), p * W::width));
        }
      }
    }
    for (Index q = 0; q < count; ++q)
      for (Index k = 0; k < out_c; ++k)
        y[k * next_channel + first + q] =
            static_cast<T>((bias ? bias[k] : master_t<T>(0)) + sum_of_lanes<master_t<T>, L>(&item(sums, (q * few_channels + k) * W::count)));
  }
}
/// A row of one block of dx.
template <class T, Index L>
void pointwise_row_backward(Lanes<L>, const T* dy, Index next_channel, Index out_c, const LaneWeights<T, L>& weights, T* dx, Index w) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  for (Index q = 0; q < w; ++q) {
    write_ahead(dx + q * L);
    for (Index p = 0; p < W::count; ++p) {
      Value sum{};
      for (Index k = 0; k < out_c; ++k)
        sum += static_cast<master_t<T>>(dy[k * next_channel + q]) * load_word<Value>(&item(item(weights, k), p * W::width));
      store_word(dx + q * L + p * W::width, sum);
    }
  }
}
/// Adds x * dy of a row of one block to sums of its lanes.
template <class T, Index L>
void add_pointwise_row(Lanes<L>, const T* x, const T* dy, Index next_channel, Index out_c, Index w, std::array<Strip<double>, few_channels>& sums) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  for (Index first = 0; first < w; first += sum_piece) {
    std::array<std::array<Value, W::count>, few_channels> some{};
    for (Index q = first; q < std::min(w, first + sum_piece); ++q) {
      read_ahead(x + q * L);
      for (Index p = 0; p < W::count; ++p) {
        const Value value = load_word<Value>(x + q * L + p * W::width);
        for (Index k = 0; k < out_c; ++k) item(item(some, k), p) += value * static_cast<master_t<T>>(dy[k * next_channel + q]);
      }
    }
    for (std::size_t k = 0; k < static_cast<std::size_t>(out_c); ++k) {
      std::array<master_t<T>, L> lanes;
      std::memcpy(&lanes, &some[k], sizeof(lanes));
      for (std::size_t l = 0; l < L; ++l) sums[k][l] += static_cast<double>(lanes[l]);
    }
  }
}
/// Calls f with the lanes of a storage block.
template <class F>
void with_block(Index block, F&& f) {
  if (block == 16) f(Lanes<16>{});
  else f(Lanes<8>{});
}
}   // namespace detail
/// Whether a step is one for the loops below.
template <class T>
bool is_pointwise(const Operands<T>& o) {
  const Layer& layer = o.node->layer;
  const Window& w = layer.window;
  const Index in = o.op == Op::backward_data ? o.dx.block : o.x.block, out = o.op == Op::forward ? o.y.block : o.dy.block;
  return layer.kind == Kind::conv && w.kernel == Pair(1) && w.stride == Pair(1) && w.pad == Pad(0) && layer.groups == 1 && (in == 8 || in == 16) &&
         out == 1 && o.node->out.c <= detail::few_channels;
}
/// y = w * x + b. Shapes and preconditions: as conv_forward; is_pointwise(o).
template <class T>
void pointwise_forward(const Operands<T>& o, int threads) {
  const Index in_c = o.node->in.c, out_c = o.node->out.c;
  detail::with_block(o.x.block, [&](auto lanes) {
    parallel_for(o.y.n * o.y.rows, useful_threads(o.y.n * o.y.rows * o.y.w * in_c, threads), [&](Index r) {
      const Index i = r / o.y.rows, row = o.y.row0 + r % o.y.rows;
      detail::pointwise_row(lanes, o.x.row(i, 0, row), o.x.stride_c, in_c, o.parameters[0], o.node->layer.bias ? o.parameters[1] : nullptr,
                            o.y.row(i, 0, row), o.y.stride_c, out_c, o.y.w);
    });
  });
}
/// dx = the gradient of x that dy's rows send. Post: writes all rows of dx; rows that dy does not have get 0.
template <class T>
void pointwise_backward_data(const Operands<T>& o, int threads) {
  const Index in_c = o.node->in.c, out_c = o.node->out.c;
  detail::with_block(o.dx.block, [&](auto lanes) {
    constexpr Index L = decltype(lanes)::value;
    for_row_groups(o.dx, threads, [&](Index i, Index b, Range rows) {
      const auto weights = detail::lane_weights<T, L>(o.parameters[0], in_c, out_c, b * L);
      for (Index row = rows.begin; row < rows.end; ++row) {
        if (!o.dy.range().contains({row, row + 1})) std::fill_n(o.dx.row(i, b, row), o.dx.stride_row(), T(0));
        else detail::pointwise_row_backward<T, L>(lanes, o.dy.row(i, 0, row), o.dy.stride_c, out_c, weights, o.dx.row(i, b, row), o.dx.w);
      }
    });
  });
}
/// dw, db = the gradients that dy's rows send; added to what is there if accumulate, else written.
/// Post:    rows are cut into pieces by their number alone, so nothing depends on the number of threads
template <class T>
void pointwise_backward_parameters(const Operands<T>& o, int threads) {
  const Index in_c = o.node->in.c, out_c = o.node->out.c, block = o.x.block, rows = o.dy.n * o.dy.rows, pieces = std::clamp<Index>(rows, 1, 16);
  std::array<std::array<detail::Strip<double>, detail::few_channels>, 16> of_piece;
  for (Index b = 0; b < o.x.blocks(); ++b) {
    parallel_for(pieces, useful_threads(rows * o.dy.w * block, threads), [&](Index piece) {
      auto& sums = item(of_piece, piece) = {};
      detail::with_block(block, [&](auto lanes) {
        for (Index r = rows * piece / pieces; r < rows * (piece + 1) / pieces; ++r) {
          const Index i = r / o.dy.rows, row = o.dy.row0 + r % o.dy.rows;
          detail::add_pointwise_row(lanes, o.x.row(i, b, row), o.dy.row(i, 0, row), o.dy.stride_c, out_c, o.dy.w, sums);
        }
      });
    });
    for (Index k = 0; k < out_c; ++k)
      for (Index l = 0; l < block && b * block + l < in_c; ++l) {
        double sum = 0;
        for (Index piece = 0; piece < pieces; ++piece) sum += item(item(item(of_piece, piece), k), l);
        put_gradient(o.d_parameters[0][k * in_c + b * block + l], sum, o.accumulate);
      }
  }
  bias_gradient(o, threads);
}
}   // namespace lrcnn::host
