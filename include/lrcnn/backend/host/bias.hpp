#pragma once
// The gradient of a convolution's bias.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/host/put_gradient.hpp>
#include <lrcnn/shape/rows.hpp>
#include <algorithm>
#include <array>
#include <cassert>
namespace lrcnn::host {
/// db = the sum of dy of a layer that has a bias; added to what is there if accumulate, else written. Pieces of a row are summed
/// up in T's own precision and pieces in doubles: a single accumulator of floats would stop growing over some million pixels.
/// Shapes:  dy [N,K,rows,Q] in blocks of at most 64 channels -> d_parameters[1] [K]
template <class T>
void bias_gradient(const Operands<T>& o, int threads) {
  if (!o.node->layer.bias) return;
  constexpr std::size_t most = 64;
  const Index block = o.dy.block;
  assert(block <= Index{most});
  parallel_for(o.dy.blocks(), useful_threads(o.dy.n * o.dy.blocks() * o.dy.rows * o.dy.stride_row(), threads), [&](Index b) {
    std::array<double, most> sums{};
    for (Index i = 0; i < o.dy.n; ++i)
      for (Index row = o.dy.row0; row < o.dy.row0 + o.dy.rows; ++row) {
        const T* dy = o.dy.row(i, b, row);
        for (Index first = 0; first < o.dy.w; first += sum_piece) {
          std::array<master_t<T>, most> some{};
          for (Index q = first; q < std::min(first + sum_piece, o.dy.w); ++q, dy += block)
            for (Index l = 0; l < block; ++l) item(some, l) += dy[l];
          for (std::size_t l = 0; l < static_cast<std::size_t>(block); ++l) sums[l] += static_cast<double>(some[l]);
        }
      }
    for (Index k = b * block; k < std::min((b + 1) * block, o.node->out.c); ++k)
      put_gradient(o.d_parameters[1][k], item(sums, k - b * block), o.accumulate);
  });
}
}   // namespace lrcnn::host
