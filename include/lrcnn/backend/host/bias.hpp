#pragma once
// The gradient of a convolution's bias.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/host/put_gradient.hpp>
#include <lrcnn/shape/rows.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
namespace lrcnn::host {
/// db = the sum of dy of a layer that has a bias; added to what is there if accumulate, else written. Pieces of a row are summed
/// up in T's own precision and pieces in doubles: a single accumulator of floats would stop growing over some million pixels.
/// Shapes:  dy [N,K,rows,Q] in blocks of any number of channels -> d_parameters[1] [K]
template <class T>
void bias_gradient(const Operands<T>& o, int threads) {
  if (!o.node->layer.bias) return;
  constexpr std::size_t most = 64;   // channels that a piece of work adds up, side by side
  const Index block = o.dy.block;
  const Index groups = ceil_div(block, Index{most});
  const int useful = useful_threads(o.dy.n * o.dy.blocks() * o.dy.rows * o.dy.stride_row(), threads);
  parallel_for(o.dy.blocks() * groups, useful, [&](Index piece) {
    const Index b = piece / groups, lane = piece % groups * Index{most}, lanes = std::min(block - lane, Index{most});
    std::array<double, most> sums{};
    for (Index i = 0; i < o.dy.n; ++i)
      for (Index row = o.dy.row0; row < o.dy.row0 + o.dy.rows; ++row) {
        const T* dy = o.dy.row(i, b, row) + lane;
        for (Index first = 0; first < o.dy.w; first += sum_piece) {
          std::array<master_t<T>, most> some{};
          for (Index q = first; q < std::min(first + sum_piece, o.dy.w); ++q, dy += block)
            for (Index l = 0; l < lanes; ++l) item(some, l) += dy[l];
          for (std::size_t l = 0; l < static_cast<std::size_t>(lanes); ++l) sums[l] += static_cast<double>(some[l]);
        }
      }
    const Index from = b * block + lane;
    for (Index k = from; k < std::min(from + lanes, o.node->out.c); ++k) put_gradient(o.d_parameters[1][k], item(sums, k - from), o.accumulate);
  });
}
}   // namespace lrcnn::host
