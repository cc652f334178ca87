#pragma once
// A convolution of one slab as numbers: what a cuDNN graph is built from, cached under and reported by.
//
// A transposed convolution's steps are those of the convolution that it is the gradient of.
// Linear layers are convolutions too: a 1x1 kernel on a map of one row and one column. Tensors are dense NHWC, filters
// [K][R][S][C / groups]. Top and bottom padding are the slab's own, left and right the layer's.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/shape/rows.hpp>
#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
namespace lrcnn::cudnn {
/// Whether elements are stored in 32 bits.
constexpr bool is_single(Precision p) { return p == Precision::fp32 || p == Precision::tf32; }
constexpr Index element_bytes(Precision p) { return is_single(p) ? 4 : 2; }
/// The type of elements in memory.
template <Precision p>
using Stored = std::conditional_t<is_single(p), float, std::conditional_t<p == Precision::fp16, float16, bfloat16>>;
/// Pre:  all extents are at least 1; see serves()
struct Problem {
  Op op = Op::forward;   ///< forward, backward_data or backward_parameters
  Precision precision = Precision::fp32;
  bool bias = false;                  ///< of a forward pass: added before y is written; stored as the tensors are
  bool relu = false;                  ///< of a forward pass: applied before y is written
  bool deterministic = true;          ///< bit-identical reruns, by engines that promise them; false under FastestConv
  Index n = 1, c = 1, h = 1, w = 1;   ///< x or dx: rows of the slab
  Index k = 1, p = 1, q = 1;          ///< y or dy
  Index groups = 1;
  Pair kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  Pad pad = 0;
  Index alignment = 16;        ///< bytes of which every tensor's address is a multiple; what 16-byte loads need, or less
  Index bias_alignment = 16;   ///< likewise
  friend constexpr bool operator==(const Problem&, const Problem&) = default;
  friend constexpr auto operator<=>(const Problem&, const Problem&) = default;
};
inline std::string to_string(const Problem& p) {
  const auto pair = [](const Pair& v) { return std::to_string(v.h) + "x" + std::to_string(v.w); };
  std::string text(op_name(p.op));
  text += " " + std::string(precision_name(p.precision)) + " x " + to_string(Shape{p.n, p.c, p.h, p.w}) + " y " +
          to_string(Shape{p.n, p.k, p.p, p.q}) + " kernel " + pair(p.kernel) + " stride " + pair(p.stride) + " dilation " + pair(p.dilation) +
          " pad " + std::to_string(p.pad.top) + "," + std::to_string(p.pad.bottom) + "," + std::to_string(p.pad.left) + "," +
          std::to_string(p.pad.right) + " groups " + std::to_string(p.groups);
  if (p.alignment != 16) text += " aligned to " + std::to_string(p.alignment) + " bytes";
  if (p.bias_alignment != 16) text += " bias to " + std::to_string(p.bias_alignment);
  return text + (p.bias ? " bias" : "") + (p.relu ? " relu" : "") + (p.deterministic ? "" : " any engine");
}
/// Why a problem cannot be put to a library that takes every tensor to be aligned to 16 bytes, as cudnn-frontend before 1.32 does unless it is
/// told otherwise, which it then cannot be; empty if it can.
inline std::string alignment_fault(const Problem& p, bool tells_alignment) {
  const Index least = p.bias ? std::min(p.alignment, p.bias_alignment) : p.alignment;
  if (tells_alignment || least >= 16) return "";
  return "memory is aligned to " + std::to_string(least) +
         " bytes, and cudnn-frontend before 1.32 takes 16 for granted; build with cudnn-frontend 1.32 or later";
}
/// Whether one of cuDNN's engines, "eng18_k11=0", is known not to serve a problem, though cuDNN says that it does. Seen with cuDNN 9.19 on an
/// H200: filter gradients of engines 1, 18 and 47 are wrong where the padding above and below differs, and forward engine 39 refuses, when it is to
/// run, operands that are aligned to less than 16 bytes. Others are found when they are tried (Library::try_out).
inline bool known_not_to_serve(const Problem& p, std::string_view engine) {
  const auto is = [&](std::string_view name) { return engine == name || (engine.starts_with(name) && engine[name.size()] == '_'); };
  if (p.op == Op::backward_parameters && p.pad.top != p.pad.bottom) return is("eng1") || is("eng18") || is("eng47");
  return p.op == Op::forward && std::min(p.alignment, p.bias ? p.bias_alignment : 16) < 16 && is("eng39");
}
/// What errors call a step's layer. Pre: it has one.
template <class T>
std::string who(const Operands<T>& o) {
  return "layer '" + std::string(o.node->layer.name.view()) + "' (" + lrcnn::describe(o.node->layer) + ")";
}
/// Whether a step is one that the library carries out.
template <class T>
bool is_convolution(const Operands<T>& o) {
  if (o.node == nullptr) return false;
  const Kind kind = o.node->layer.kind;
  if (kind != Kind::conv && kind != Kind::conv_transpose && kind != Kind::linear) return false;
  return o.op == Op::forward || o.op == Op::backward_data || o.op == Op::backward_parameters;
}
/// A step as the library sees it: a convolution from x to y, or one of its gradients. A transposed convolution computes the data gradient of a
/// convolution that goes from its output to its input; so its forward pass is that convolution's backward_data, and x and y change places.
/// x is without the rows that no window of y's rows covers, and y without the rows whose windows cover no row of x: the step writes 0 there.
template <class T>
struct Sides {
  Op op = Op::forward;
  View<const T> x{}, y{};   ///< dense but for the step from image to image
  /// The one that the operation writes; empty for filter gradients.
  View<const T> written() const { return op == Op::forward ? y : op == Op::backward_data ? x : View<const T>{}; }
  bool empty() const { return x.rows <= 0 || y.rows <= 0; }
  /// Whether images lie one behind the other.
  bool dense() const { return x.n == 1 || (x.stride_n == x.rows * x.stride_row() && y.stride_n == y.rows * y.stride_row()); }
};
/// Pre: is_convolution(o)
template <class T>
Sides<T> sides_of(const Operands<T>& o) {
  const View<const T> in = o.op == Op::backward_data ? View<const T>(o.dx) : o.x, out = o.op == Op::forward ? View<const T>(o.y) : o.dy;
  if (o.node->layer.kind != Kind::conv_transpose) return {o.op, in, out};
  const Axis axis = row_axis(o.node->layer.window);
  const Range rows = out.range(), held = intersect(in.range(), windows_over(axis, rows));
  const Range windows = held.empty() ? held : Range{window_begin(axis, held.begin), window_begin(axis, held.end - 1) + axis.extent()};
  return {o.op == Op::forward         ? Op::backward_data
          : o.op == Op::backward_data ? Op::forward
                                      : o.op,
          out.slice(intersect(windows, rows)), in.slice(held)};
}
/// The largest power of two up to 16 of which all addresses are multiples; null counts as aligned.
template <class... Pointers>
Index common_alignment(const Pointers*... pointers) {
  std::uintptr_t bits = 16;
  ((bits |= reinterpret_cast<std::uintptr_t>(pointers)), ...);
  return static_cast<Index>(bits & (~bits + 1));
}
/// Windows that do not reach the last rows or columns of padding leave a choice. More engines serve a padding that is the same on both sides.
inline void even_padding(Problem& p) {
  const auto windows = [&](Index padding, Index extent, Index kernel, Index stride, Index dilation) {
    return floor_div(extent + padding - dilation * (kernel - 1) - 1, stride) + 1;
  };
  if (windows(2 * p.pad.top, p.h, p.kernel.h, p.stride.h, p.dilation.h) == p.p) p.pad.bottom = p.pad.top;
  if (windows(2 * p.pad.left, p.w, p.kernel.w, p.stride.w, p.dilation.w) == p.q) p.pad.right = p.pad.left;
}
/// The problem of a step; of one image, if images do not lie one behind the other. Pre: is_convolution(o).
/// Post:    x or y may have no rows (a slab that lies wholly in padding): then no library is asked
template <class T>
Problem problem_of(const Operands<T>& o, Precision precision) {
  const Sides<T> sides = sides_of(o);
  const View<const T>&x = sides.x, &y = sides.y;
  const Layer& layer = o.node->layer;
  const bool transposed = layer.kind == Kind::conv_transpose;
  Problem p;
  p.op = sides.op;
  p.precision = precision;
  p.deterministic = o.conv_algorithm != ConvAlgorithm::fastest;
  p.bias = layer.bias && o.op == Op::forward && !transposed;
  p.relu = o.activation && o.activation->layer.activation.function == Function::relu;
  p.n = sides.dense() ? x.n : 1, p.c = x.c, p.h = x.rows, p.w = x.w;
  p.k = y.c, p.p = y.rows, p.q = y.w;
  const auto second = [&](const View<const T>& v) { return p.n < v.n ? v.data + v.stride_n : nullptr; };   // of an image on its own
  if (o.op == Op::backward_parameters)
    p.alignment = common_alignment(x.data, y.data, second(x), second(y), o.scratch, o.scratch ? nullptr : o.d_parameters[0]);
  else p.alignment = common_alignment(x.data, y.data, second(x), second(y), o.packed, o.packed ? nullptr : o.parameters[0]);
  if (p.bias && is_single(precision)) p.bias_alignment = common_alignment(o.parameters[1]);   // else it is packed: Target::packed_bias_offset
  if (layer.kind == Kind::linear || sides.empty()) return p;
  const Window& window = layer.window;
  const RowPads pads = pad_rows(row_axis(window), y.range(), x.range());
  p.groups = layer.groups;
  p.kernel = window.kernel, p.stride = window.stride, p.dilation = window.dilation;
  p.pad = {pads.top, pads.bottom, window.pad.left, window.pad.right};
  even_padding(p);
  return p;
}
/// A problem, and the workspace that its step leaves to the library.
struct Request {
  Problem problem{};
  Index workspace_bytes = 0;
  bool in_plan = true;   ///< all that the step writes lies in the plan's memory: see lies_in_plan()
  /// False for a slab that lies wholly in padding: then no library is asked.
  bool served() const { return problem.h > 0 && problem.p > 0; }
  friend bool operator==(const Request&, const Request&) = default;
  friend auto operator<=>(const Request&, const Request&) = default;
};
/// What a step may ask of the library in turn, until something is served: with bias and activation, with the bias alone, the
/// bare convolution. A bias is left out if its memory is not aligned to 16 bytes: cuDNN 9.19 has engines that read 16 bytes of it all the same.
inline std::vector<Request> attempts(Request request) {
  Problem& p = request.problem;
  if (p.bias && p.bias_alignment < 16) p.bias = p.relu = false, p.bias_alignment = 16;   // a loop adds it, and applies the activation behind it
  std::vector<Request> list{request};
  if (std::exchange(p.relu, false)) list.push_back(request);
  if (std::exchange(p.bias, false)) {
    p.bias_alignment = 16;
    list.push_back(request);
  }
  return list;
}
/// Elements of a filter, or of a linear layer's weights.
inline Index filter_elements(const Node& node) { return parameter_shapes(node.layer, node.in).item[0].count(); }
/// Bytes at the start of the workspace that a step needs beside the library's: a gradient before it is added, where the
/// plan has no buffer for that (of linear layers whose weights are not packed).
template <class T>
Index reserved_bytes(const Operands<T>& o) {
  if (o.op != Op::backward_parameters || !o.accumulate || o.scratch != nullptr) return 0;
  return round_up(filter_elements(*o.node) * Index{sizeof(T)}, 256);
}
/// Whether all that a step writes lies in the plan's memory, so that it may be tried out, and run in pieces. A filter gradient that goes straight to
/// the program's is written once.
template <class T>
bool lies_in_plan(const Operands<T>& o) {
  return o.op != Op::backward_parameters || o.scratch != nullptr || reserved_bytes(o) > 0;
}
/// What a step asks of the library. Pre: is_convolution(o).
template <class T>
Request request_of(const Operands<T>& o, Precision precision) {
  return {problem_of(o, precision), o.workspace_bytes - reserved_bytes(o), lies_in_plan(o)};
}
}   // namespace lrcnn::cudnn
