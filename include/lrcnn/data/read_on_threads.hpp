#pragma once
// Rows of a source, read by several threads.
#include <lrcnn/core/parallel.hpp>
#include <lrcnn/data/row_source.hpp>
#include <algorithm>
namespace lrcnn {
/// Elements of a piece, about: fewer are read before a thread has started.
inline constexpr Index least_read = Index{1} << 17;
/// As source.read(first, dst), by as many of `threads` threads as the rows are worth; by this one alone if the source has no concurrent reads.
/// Post:    what source.read() writes, since the value of an element does not depend on which rows are asked for
/// Errors:  what source.read() throws, of any of the threads; rows may be missing then
template <class T>
void read_on_threads(const RowSource<T>& source, Index first, const View<T>& dst, int threads) {
  const Index elements = dst.n * dst.c * dst.rows * dst.w, pieces = std::min(dst.n * dst.rows, elements / least_read);
  if (!source.concurrent_reads() || threads < 2 || pieces < 2) return source.read(first, dst);
  const Index images = ceil_div(dst.n, pieces), groups = ceil_div(dst.n, images);   // a piece is some images, or some rows of one
  const Index rows = ceil_div(dst.rows, ceil_div(pieces, groups)), of_images = ceil_div(dst.rows, rows);
  on_threads(static_cast<std::size_t>(groups * of_images), threads, [&] {
    return [&](std::size_t piece) {
      const Index image = static_cast<Index>(piece) / of_images * images, row = dst.row0 + static_cast<Index>(piece) % of_images * rows;
      View<T> part = dst.slice({row, std::min(row + rows, dst.row0 + dst.rows)});
      part.data += image * part.stride_n, part.n = std::min(images, dst.n - image);
      source.read(first + image, part);
    };
  });
}
}   // namespace lrcnn
