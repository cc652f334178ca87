#pragma once
// How host code sees rows of a tensor.
//
// A slab is stored densely as [n][c / block][rows][w][block]: block 1 is NCHW, block 16 the layout nChw16c in which
// vector units like to work. A view may show fewer rows than are stored; its strides say so. Rows are addressed by
// their absolute index in the whole feature map, so that code for a slab and code for the whole map read the same.
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/core/types.hpp>
#include <type_traits>
namespace lrcnn {
/// Rows [row0, row0 + rows) of n images with c channels of width w.
/// Channels from c up to the next multiple of block exist in storage; whoever writes rows keeps them zero.
template <class T>
struct View {
  T* data = nullptr;   ///< element (0, 0, row0, 0)
  Index n = 0;
  Index c = 0;
  Index row0 = 0;
  Index rows = 0;
  Index w = 0;
  Index block = 1;
  Index stride_n = 0;   ///< elements from image to image
  Index stride_c = 0;   ///< elements from channel block to channel block
  LRCNN_HOST_DEVICE constexpr Index stride_row() const { return w * block; }
  constexpr Index blocks() const { return (c + block - 1) / block; }
  LRCNN_HOST_DEVICE constexpr bool holds(Index y) const { return row0 <= y && y < row0 + rows; }   ///< row y (absolute)
  constexpr Range range() const { return {row0, row0 + rows}; }
  /// True if no stored row is hidden, so that the elements are one contiguous piece.
  constexpr bool dense() const {
    return (blocks() == 1 || stride_c == rows * stride_row()) && (n == 1 || stride_n == blocks() * rows * stride_row());
  }
  /// Start of row y (absolute) of channel block b in image i; w * block elements follow.
  LRCNN_HOST_DEVICE constexpr T* row(Index i, Index b, Index y) const { return data + i * stride_n + b * stride_c + (y - row0) * stride_row(); }
  /// Element by image, channel, absolute row and column.
  LRCNN_HOST_DEVICE constexpr T& operator()(Index i, Index ch, Index y, Index x) const { return row(i, ch / block, y)[x * block + ch % block]; }
  /// The rows `r` (absolute) of this view. Pre: r lies in range().
  constexpr View slice(Range r) const {
    View v = *this;
    v.data = data + (r.begin - row0) * stride_row();
    v.row0 = r.begin;
    v.rows = r.size();
    return v;
  }
  template <class U>
    requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
  constexpr operator View<U>() const { return {data, n, c, row0, rows, w, block, stride_n, stride_c}; }
};
/// Elements that n images of `rows` rows take in this layout.
constexpr Index stored_elements(Index n, Index c, Index rows, Index w, Index block) { return n * round_up(c, block) * rows * w; }
/// A dense view of `rows` of n images at `data`.
template <class T>
constexpr View<T> dense_view(T* data, Index n, Index c, Range rows, Index w, Index block = 1) {
  const Index plane = rows.size() * w * block;
  return {data, n, c, rows.begin, rows.size(), w, block, ceil_div(c, block) * plane, plane};
}
}   // namespace lrcnn
