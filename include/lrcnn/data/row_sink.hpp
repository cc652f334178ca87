#pragma once
// Where a network's output goes if it need not be there as a whole: rows, as soon as they are done.
//
// The counterpart of RowSource. A forward pass by slabs finishes the output from top to bottom; whoever takes the rows may
// write them to a file, reduce them or send them on, and the memory they came in serves the next slab.
#include <lrcnn/core/view.hpp>
namespace lrcnn {
/// Takes rows of a batch of outputs.
template <class T>
struct RowSink {
  virtual ~RowSink() = default;
  /// Rows src.range() of images [first, first + src.n): src.c channels of width src.w, in src's layout (any block; what padded
  /// channels hold means nothing). The view and its memory are the caller's and end with the call.
  /// Called from one thread at a time. Within a run each row of each image comes once, an image's rows from top to bottom;
  /// how many come at once is the plan's affair. What this throws ends the run and comes out of it.
  virtual void write(Index first, const View<const T>& src) = 0;
};
/// Gathers the whole output in memory as dense NCHW, owned by the caller.
template <class T>
class MemorySink final : public RowSink<T> {
 public:
  /// `height`: rows of an image of the output. Pre: data has room for all images.
  MemorySink(T* data, Index height) : data_(data), height_(height) {}
  void write(Index first, const View<const T>& src) override {
    for (Index i = 0; i < src.n; ++i)
      for (Index c = 0; c < src.c; ++c)
        for (Index y = src.row0; y < src.row0 + src.rows; ++y) {
          const T* from = src.row(i, c / src.block, y) + c % src.block;
          T* to = data_ + (((first + i) * src.c + c) * height_ + y) * src.w;
          for (Index x = 0; x < src.w; ++x) to[x] = from[x * src.block];
        }
  }

 private:
  T* data_;
  Index height_;
};
}   // namespace lrcnn
