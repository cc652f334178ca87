#pragma once
// Where a network's input comes from: rows on request, never a whole image unless the source has one.
//
// A step asks for rows [begin, end) of an image of the batch whenever a slab needs them, in the forward pass and
// again when the backward pass recomputes; a source therefore answers the same question with the same values during
// one step. Nothing but the source assumes that the image is in memory.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/row_request.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/core/view.hpp>
#include <lrcnn/shape/shape.hpp>
#include <span>
namespace lrcnn {
/// A batch of images that yields rows.
template <class T>
struct RowSource {
  virtual ~RowSource() = default;
  /// Shape [N,C,H,W] of the batch.
  virtual Shape shape() const = 0;
  /// Writes rows dst.range() of images [first, first + dst.n) to dst: all dst.c == C channels, dst.w == W columns,
  /// in dst's layout (any block; padded channels are left alone, the caller has zeroed them).
  /// Called from one thread at a time, unless concurrent_reads() is true. Does not allocate. Errors: DataError if the rows cannot be had.
  virtual void read(Index first, const View<T>& dst) const = 0;
  /// Whether several threads may call read() at once. A backend on a device then reads large batches by several (read_on_threads.hpp).
  virtual bool concurrent_reads() const { return false; }
  /// Says, before a run, which rows it will ask for and in which order, so that a source can decode ahead. The default does nothing. The
  /// list is the caller's and ends with the call. A run may end early, and another caller may ask for other rows: this is advice.
  virtual void expect(std::span<const RowRequest>) const {}
};
/// For sources: whether the rows that they are asked for are theirs.
/// Pre:     who() is the source's name, as in "batch of 2x3x8x8"; called where there is an error
/// Errors:  DataError if images, rows, channels or columns are not those of a batch of that shape
template <class T, class Who>
void check_read(const Shape& shape, Index first, const View<T>& dst, const Who& who) {
  const Range images{first, first + dst.n};
  if (dst.c == shape.c && dst.w == shape.w && Range{0, shape.h}.contains(dst.range()) && Range{0, shape.n}.contains(images)) return;
  throw DataError(error_text(who() + " is asked for " + first_to_last("images", images) + ", " + first_to_last("rows", dst.range()) + " of " +
                                 std::to_string(dst.c) + " channels and " + std::to_string(dst.w) + " columns",
                             "what is read lies within the batch", "give the network the batch's shape"));
}
/// A batch that lies in memory as dense NCHW, owned by the caller.
template <class T>
class MemorySource final : public RowSource<T> {
 public:
  /// `data`: shape.count() elements, which outlive this and are read as they are.
  MemorySource(const T* data, Shape shape) : data_(data), shape_(shape) {}
  Shape shape() const override { return shape_; }
  bool concurrent_reads() const override { return true; }
  void read(Index first, const View<T>& dst) const override {
    const auto all = dense_view(data_, shape_.n, shape_.c, {0, shape_.h}, shape_.w);
    for (Index i = 0; i < dst.n; ++i)
      for (Index c = 0; c < dst.c; ++c)
        for (Index y = dst.row0; y < dst.row0 + dst.rows; ++y) {
          const T* from = all.row(first + i, c, y);
          T* to = dst.row(i, c / dst.block, y) + c % dst.block;
          for (Index x = 0; x < dst.w; ++x) to[x * dst.block] = from[x];
        }
  }
 private:
  const T* data_;
  Shape shape_;
};
}   // namespace lrcnn
