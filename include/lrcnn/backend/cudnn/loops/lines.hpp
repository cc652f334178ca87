#pragma once
// Pointwise loops: operands as lines of memory, cut into pieces of eight elements.
//
// With channels last, rows of an image lie one after the other, so however a slab is cut out of its buffer, an image's
// part is one contiguous line; where no operand hides rows, all images together are. Only mask bits can force lines to
// be single rows: a row's bits fill whole bytes, which eight does not always divide. A piece is one byte of mask.
#include <lrcnn/backend/cudnn/loops/work.hpp>
namespace lrcnn::loops {
/// Up to eight neighbouring elements of a line.
struct Piece {
  Index image, row, first;   ///< row counts from the view's first; first: elements from the line's begin
  int count;
};
/// Lines that all operands of a loop share.
class Lines {
 public:
  static constexpr int width = 8;
  enum class Images { together, apart };   ///< whether a line may go on from one image to the next
  /// The lines of views of one shape. An empty view fits any; the first is not empty.
  template <class V, class... More>
  explicit Lines(const View<std::uint8_t>& mask, const V& view, const More&... more) : Lines(Images::together, mask, view, more...) {}
  template <class V, class... More>
  Lines(Images images_are, const View<std::uint8_t>& mask, const V& view, const More&... more) {
    const Index row = view.stride_row();
    const bool by_rows = mask.data != nullptr && row % width != 0;
    const bool joined = view.n == 1 || (images_are == Images::together && !by_rows && whole(mask) && whole(view) && (whole(more) && ...));
    const Index images = joined ? 1 : view.n, rows = by_rows ? view.rows : 1;
    length_ = view.n * view.rows * row / (images * rows);
    rows_ = Divisor(rows), units_ = Divisor(ceil_div(length_, width));
    count_ = images * rows * units_.value();
    packs_ = packed(view, by_rows) && (packed(more, by_rows) && ...);
  }
  /// Units of work, one for each piece.
  Index count() const { return count_; }
  LRCNN_HOST_DEVICE Piece piece(Index unit) const {
    const Index line = units_.split(unit);
    Piece piece{line, 0, unit * width, width};
    if (rows_.value() > 1) {
      piece.image = rows_.quotient(line);
      piece.row = line - piece.image * rows_.value();
    }
    if (length_ - piece.first < width) piece.count = static_cast<int>(length_ - piece.first);
    return piece;
  }
  LRCNN_HOST_DEVICE bool packs() const { return packs_; }

 private:
  template <class T>
  static bool whole(const View<T>& v) {
    return v.data == nullptr || v.n == 1 || v.stride_n == v.rows * v.stride_row();
  }
  template <class T>
  static bool packed(const View<T>& v, bool by_rows) {
    return v.data == nullptr || takes_packs<width>(v.data, v.n > 1 ? v.stride_n : 0, by_rows ? v.stride_row() : 0);
  }
  Index length_ = 0, count_ = 0;
  Divisor rows_, units_;
  bool packs_ = false;
};
/// An operand of a pointwise loop; empty if its view is.
template <class T>
struct Line {
  T* data;
  Index stride_n, stride_row;
  Line(const View<T>& view) : data(view.data), stride_n(view.stride_n), stride_row(view.stride_row()) {}
  /// The first element of a piece; of mask bits, their byte.
  LRCNN_HOST_DEVICE T* at(const Piece& piece) const { return data + piece.image * stride_n + piece.row * stride_row + piece.first; }
  LRCNN_HOST_DEVICE T* byte_at(const Piece& piece) const {
    return data + piece.image * stride_n + piece.row * stride_row + piece.first / Lines::width;
  }
};
}   // namespace lrcnn::loops
