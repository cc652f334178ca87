#pragma once
// A batch of labelled images that yields normalised rows in any layout.
//
// Pixels stay bytes. A row becomes numbers each time a slab asks for it, forward and again when the backward pass
// recomputes: a table look-up per element, which costs less than keeping the numbers would cost in memory.
#include <lrcnn/data/dataset.hpp>
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/data/transform.hpp>
#include <memory>
namespace lrcnn {
/// What a batch holds, whatever the element type it is read as.
struct BatchContents {
  Shape shape{0, 1, 1, 1};              ///< [N,C,H,W]
  std::vector<std::uint8_t> pixels{};   ///< dense NCHW, cropped and flipped
  std::vector<std::int32_t> labels{};
  std::vector<Index> indices{};   ///< of the images in the data set
  Index epoch = 0;
  Index position = 0;   ///< in the epoch, counted in batches
};
/// Images and labels that a training step takes.
template <class T>
class Batch final : public RowSource<T> {
 public:
  /// `table` is normalization_table's, for as many channels as the contents have.
  explicit Batch(std::shared_ptr<const std::vector<T>> table, BatchContents contents = {})
      : table_(std::move(table)), contents_(std::move(contents)) {}
  Shape shape() const override { return contents_.shape; }
  bool concurrent_reads() const override { return true; }
  Index size() const { return contents_.shape.n; }
  std::span<const std::int32_t> labels() const { return contents_.labels; }
  /// Which images of the data set these are.
  std::span<const Index> indices() const { return contents_.indices; }
  Index epoch() const { return contents_.epoch; }
  Index position() const { return contents_.position; }
  BatchContents& contents() { return contents_; }
  const BatchContents& contents() const { return contents_; }
  /// Writes normalised rows, as RowSource says.
  /// Post:    the value of an element depends on its place in the batch alone, not on rows, layout or order of reads
  /// Errors:  DataError if images, channels, rows or columns are not the batch's
  /// Cost:    about a nanosecond per element
  void read(Index first, const View<T>& dst) const override {
    const Shape& s = contents_.shape;
    check_read(s, first, dst, [&] { return "batch of " + to_string(s); });
    if (dst.block == 1) {
      for (Index i = 0; i < dst.n; ++i)
        for (Index c = 0; c < dst.c; ++c) convert(first + i, c, dst.range(), dst.row(i, c, dst.row0), 1);
    } else {   // row by row, so that the channels of a block meet in the cache
      for (Index i = 0; i < dst.n; ++i)
        for (Index y = dst.row0; y < dst.row0 + dst.rows; ++y)
          for (Index c = 0; c < dst.c; ++c) convert(first + i, c, {y, y + 1}, dst.row(i, c / dst.block, y) + c % dst.block, dst.block);
    }
  }
 private:
  /// Writes rows of one channel, element x to to[x * step].
  void convert(Index i, Index c, Range rows, T* to, Index step) const {
    const Shape& s = contents_.shape;
    const T* table = table_->data() + 256 * c;
    const std::uint8_t* from = contents_.pixels.data() + ((i * s.c + c) * s.h + rows.begin) * s.w;
    const Index count = rows.size() * s.w;
    if (step == 1)
      for (Index x = 0; x < count; ++x) to[x] = table[from[x]];
    else
      for (Index x = 0; x < count; ++x) to[x * step] = table[from[x]];
  }
  std::shared_ptr<const std::vector<T>> table_;
  BatchContents contents_;
};
}   // namespace lrcnn
