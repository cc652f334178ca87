#pragma once
// Transposed convolutions whose windows tile the map, by the library's convolution that goes the other way.
//
// Going up by 2x2 windows with strides of 2, say, is what a convolution with that window sends back; its data gradient is that
// convolution. Rows go in pieces: a piece of m input rows belongs to m * stride rows of the output, which a slab may own in part only,
// and views may not be dense, so pieces are gathered in the workspace and what comes out is handed on from there, with the bias. The filter
// is packed into the workspace in each step: it is small beside the maps.
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/host/tiled_transpose.hpp>
#include <lrcnn/backend/onednn/convolution.hpp>
#include <vector>
namespace lrcnn::onednn {
template <class T>
class Transposed {
 public:
  /// The convolution that goes the other way: it reads the output's map and writes the input's.
  static Node mirror(const Node& node) {
    Node m = node;
    m.layer.kind = Kind::conv;
    m.layer.bias = false;
    m.layer.channels = node.in.c;
    m.in = node.out, m.out = node.in;
    return m;
  }
  static Op mirror(Op op) { return op == Op::forward ? Op::backward_data : op == Op::backward_data ? Op::forward : Op::backward_parameters; }
  /// `convolution` finds or makes the convolution of a mirrored piece's operands with a filter: std::shared_ptr<Convolution<T>>, or null.
  /// Pre:     host::TiledTranspose::tiles(the layer's window); `filter` is of the mirrored layer and pass
  /// Post:    served() tells whether the library takes it and pieces fit into the workspace
  template <class Make>
  Transposed(const Target& target, const Operands<T>& o, std::shared_ptr<PackedFilter> filter, Make convolution)
      : op_(o.op), stride_(o.node->layer.window.stride.h), mirror_(mirror(*o.node)), filter_(std::move(filter)) {
    if (!filter_->tag()) return;
    const bool data = op_ == Op::backward_data;
    const View<const T> x = data ? View<const T>(o.dx) : o.x, y = op_ == Op::forward ? View<const T>(o.y) : o.dy;
    rows_ = data ? x.range() : Range{y.row0 / stride_, ceil_div(y.row0 + y.rows, stride_)};
    if (rows_.empty() || x.n == 0 || !x.range().contains(rows_)) return;
    direct_ = x.dense() && y.dense() && x.range() == rows_ && y.range() == Range{rows_.begin * stride_, rows_.end * stride_};
    filter_bytes_ = round_up(op_ == Op::backward_parameters ? target.scratch_bytes(mirror_) : target.packed_bytes(mirror_), align);
    const auto make = [&](Index m) -> std::shared_ptr<Convolution<T>> {
      const Index gathered = direct_ && m == rows_.size() ? 0 : x_bytes(x, m) + y_bytes(y, m);
      Operands<T> piece = mirrored(o, dense_view(static_cast<T*>(nullptr), x.n, x.c, Range{0, m}, x.w, x.block),
                                   dense_view(static_cast<T*>(nullptr), y.n, y.c, Range{0, m * stride_}, y.w, y.block));
      piece.workspace_bytes = o.workspace_bytes - filter_bytes_ - gathered;
      if (piece.workspace_bytes < 0) return nullptr;
      try {
        auto made = convolution(piece, filter_);
        return made && made->served() && made->workspace_bytes() <= piece.workspace_bytes ? made : nullptr;
      } catch (const BackendError&) {   // needs more scratch than is left
        return nullptr;
      }
    };
    for (Index m = rows_.size(); m > 0 && !whole_; m = m > 1 ? ceil_div(m, Index{2}) : 0) {
      whole_ = make(m);
      piece_rows_ = m;
      if (m < rows_.size()) direct_ = false;
    }
    if (!whole_) return;
    const Index rest = piece_rows_ < rows_.size() ? rows_.size() % piece_rows_ : 0;
    if (rest > 0 && !(rest_ = make(rest))) whole_ = nullptr;
    if (!whole_) return;
    const Index gathered = direct_ ? 0 : x_bytes(x, piece_rows_) + y_bytes(y, piece_rows_);
    bytes_ = filter_bytes_ + gathered + std::max(whole_->workspace_bytes(), rest_ ? rest_->workspace_bytes() : 0);
  }
  bool served() const { return whole_ != nullptr; }
  std::string name() const { return whole_->name(); }
  /// Bytes of workspace that a step uses: the packed filter, a piece of either map unless they are dense, and the library's scratch.
  Index workspace_bytes() const { return bytes_; }
  void run(const Library& library, const Operands<T>& o, int threads) {
    T* const filter = reinterpret_cast<T*>(o.workspace);
    if (op_ != Op::backward_parameters) filter_->pack(library, o.parameters[0], filter);
    for (Index row = rows_.begin; row < rows_.end; row += piece_rows_) {
      const Range in{row, std::min(row + piece_rows_, rows_.end)}, out{in.begin * stride_, in.end * stride_};
      const View<const T> x = op_ == Op::backward_data ? View<const T>(o.dx) : o.x, y = op_ == Op::forward ? View<const T>(o.y) : o.dy;
      View<T> px, py;
      std::byte* free = o.workspace + filter_bytes_;
      if (direct_) {
        px = dense_view(const_cast<T*>(x.data), x.n, x.c, in, x.w, x.block);
        py = dense_view(const_cast<T*>(y.data), y.n, y.c, out, y.w, y.block);
      } else {
        px = dense_view(reinterpret_cast<T*>(free), x.n, x.c, in, x.w, x.block);
        free += x_bytes(x, piece_rows_);
        py = dense_view(reinterpret_cast<T*>(free), y.n, y.c, out, y.w, y.block);
        free += y_bytes(y, piece_rows_);
        if (op_ != Op::backward_data) gather(x, px, threads);
        if (op_ != Op::forward) gather(y, py, threads);
      }
      Operands<T> piece = mirrored(o, px, py);
      piece.packed = piece.scratch = filter;
      piece.workspace = free;
      piece.accumulate = o.accumulate || row > rows_.begin;
      (in.size() == piece_rows_ ? whole_ : rest_)->run(library, piece, threads);
      if (op_ == Op::forward) hand_on(o, py, threads);
      if (op_ == Op::backward_data && !direct_) gather(px, o.dx.slice(in), threads);
    }
    if (op_ == Op::backward_parameters) host::bias_gradient(o, threads);
  }

 private:
  static constexpr Index align = 64;
  static Index x_bytes(const View<const T>& x, Index m) { return round_up(stored_elements(x.n, x.c, m, x.w, x.block) * Index{sizeof(T)}, align); }
  Index y_bytes(const View<const T>& y, Index m) const { return x_bytes(y, m * stride_); }
  Operands<T> mirrored(const Operands<T>& o, const View<T>& x, const View<T>& y) const {
    Operands<T> m;
    m.op = mirror(op_);
    m.node = &mirror_;
    if (m.op == Op::backward_data) m.dx = y, m.dy = x;
    if (m.op == Op::forward) m.x = y, m.y = x;
    if (m.op == Op::backward_parameters) m.x = y, m.dy = x;
    m.d_parameters[0] = o.d_parameters[0];
    return m;
  }
  /// to = from's rows; zeros where from has none.
  static void gather(const View<const T>& from, const View<T>& to, int threads) {
    host::for_rows(to, threads, [&](Index i, Index b, Index row) {
      if (from.range().contains({row, row + 1})) std::copy_n(from.row(i, b, row), to.stride_row(), to.row(i, b, row));
      else std::fill_n(to.row(i, b, row), to.stride_row(), T(0));
    });
  }
  /// The rows of y that a piece has, with the bias.
  void hand_on(const Operands<T>& o, const View<const T>& piece, int threads) const {
    if (direct_ && !o.node->layer.bias) return;
    const Index block = o.y.block;
    host::for_rows(o.y.slice(intersect(o.y.range(), piece.range())), threads, [&](Index i, Index b, Index row) {
      const T* from = piece.row(i, b, row);
      T* to = o.y.row(i, b, row);
      std::array<float, 64> bias{};
      for (Index c = 0; o.node->layer.bias && c < block && b * block + c < o.y.c; ++c) item(bias, c) = o.parameters[1][b * block + c];
      for (Index w = 0; w < o.y.w; ++w, from += block, to += block)
        for (Index c = 0; c < block; ++c) to[c] = static_cast<T>(static_cast<float>(from[c]) + item(bias, c));
    });
  }
  Op op_;
  Index stride_;
  Node mirror_;
  std::shared_ptr<PackedFilter> filter_;
  std::shared_ptr<Convolution<T>> whole_, rest_;   ///< of pieces of piece_rows_ input rows, and of the last one if that has fewer
  Range rows_{};                                   ///< of the input
  Index piece_rows_ = 0, filter_bytes_ = 0, bytes_ = 0;
  bool direct_ = false;   ///< one piece, whose rows lie dense where they are
};
}   // namespace lrcnn::onednn
