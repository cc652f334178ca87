#pragma once
// What a convolution with a strided window of one pixel sends back, made where it stays.
//
// Such a convolution reads every stride-th pixel of every stride-th row. Its data gradient is that of a dense convolution of one pixel
// on the smaller map; the rest are zeros. So the smaller map may be made at the start of the larger one's memory and be moved apart there:
// every pixel moves to a higher address, so that going from the last one to the first overwrites none that has still to move.
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/core/view.hpp>
#include <lrcnn/shape/window.hpp>
#include <algorithm>
namespace lrcnn::host {
/// Moves a dense map of `rows` x `columns` pixels from the start of a view's memory to the pixels that a window of one pixel reads, those in
/// row first_row + i * stride.h, column j * stride.w of it. All others become zeros.
/// Shapes:  to [N,C,rows of the view,W], of the same images, channels and storage block as the smaller map
/// Pre:     `to` is dense and has those pixels
template <class T>
void spread_pixels(const View<T>& to, Index rows, Index columns, Index first_row, Pair stride, int threads) {
  const Index block = to.block, from_plane = rows * columns * block, to_plane = to.rows * to.w * block;
  const auto plane = [&](Index p) {
    Index end = to_plane;   // of what has still to be written
    const auto zero_until = [&](Index begin) {
      std::fill(to.data + p * to_plane + begin, to.data + p * to_plane + end, T(0));
      end = begin;
    };
    for (Index i = rows - 1; i >= 0; --i)
      for (Index j = columns - 1; j >= 0; --j) {
        const Index pixel = ((first_row + i * stride.h) * to.w + j * stride.w) * block;
        zero_until(pixel + block);
        const T* const source = to.data + p * from_plane + (i * columns + j) * block;
        if (T* const target = to.data + p * to_plane + pixel; target != source) std::copy_backward(source, source + block, target + block);
        end = pixel;
      }
    zero_until(0);
  };
  // Planes from the last to the first; those whose places lie behind all that has still to move go at once.
  for (Index last = to.n * to.blocks(); last > 0;) {
    const Index first = std::min(last - 1, ceil_div(last * from_plane, to_plane));
    parallel_for(last - first, useful_threads((last - first) * to_plane, threads), [&](Index p) { plane(first + p); });
    last = first;
  }
}
}   // namespace lrcnn::host
