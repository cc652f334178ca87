#pragma once
// Moves between a host's arena and the file in which offloaded tensors lie.
#include <lrcnn/core/scratch_memory.hpp>
#include <lrcnn/core/view.hpp>
#include <lrcnn/plan/step.hpp>
namespace lrcnn::detail {
/// Copies the rows that x shows to y. Op::offload: y is in the file; Op::fetch: x is. Pre: the views have one shape and one block.
/// Errors:  MemoryError if the disk fails
template <class T>
void move_by_file(const ScratchMemory& file, Op op, const View<const T>& x, const View<T>& y) {
  const auto move = [&](T* to, const T* from, Index elements) {
    const Index bytes = elements * static_cast<Index>(sizeof(T));
    if (op == Op::offload) file.write(to, from, bytes);
    else file.read(to, from, bytes);
  };
  const Index plane = x.rows * x.stride_row();
  if (x.dense() && y.dense()) return move(y.data, x.data, x.n * x.blocks() * plane);
  for (Index i = 0; i < x.n; ++i)
    for (Index b = 0; b < x.blocks(); ++b) move(y.row(i, b, y.row0), x.row(i, b, x.row0), plane);
}
}   // namespace lrcnn::detail
