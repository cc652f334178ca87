#pragma once
// A convolution in pieces: of some images, or of some rows of one image, one after the other.
//
// cuDNN's fast engines often work on a copy of a map. In full precision they want maps by planes, and on tensor cores pixels of 16 bytes; both copies
// lie in the workspace. If that has no room for them, cuDNN offers engines without a copy, which are many times slower: by them a step of
// VGG-16 in full precision took 711 ms on an H100, and 107 in pieces, which want smaller copies.
#include <lrcnn/backend/cudnn/problem.hpp>
#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>
namespace lrcnn::cudnn {
struct Piece {
  Problem problem{};
  Index x = 0, y = 0;   ///< elements from where x and y of the problem that was cut begin to where the piece's do
};
/// No limit for an engine's workspace.
inline constexpr Index any_workspace = std::numeric_limits<Index>::max() / 2;
/// Of one convolution: each is a few kernels in a step's graph.
inline constexpr std::size_t most_pieces = 1024;
/// Bytes of the copies of x and y that fast engines work on.
/// Source:  cuDNN 9.19's own workspaces on an H100: VGG-16's and ResNet-50's convolutions take these bytes, in fp32 a filter's, and up to 5 MiB more;
///          some in tf32 three quarters of them
inline Index copied_bytes(const Problem& p) {
  constexpr Index pixel = 16;
  const Index element = element_bytes(p.precision);
  const auto copy = [&](Index pixels, Index channels) {
    if (p.precision == Precision::fp32) return pixels * channels * element;
    return channels * element % pixel == 0 ? 0 : pixels * round_up(channels * element, pixel);
  };
  return copy(p.n * p.h * p.w, p.c) + copy(p.n * p.p * p.q, p.k);
}
namespace detail {
/// Whether an engine that wants so much workspace works on copies.
inline bool works_on_copies(const Problem& p, std::optional<Index> bytes) { return bytes && *bytes >= copied_bytes(p) / 2; }
/// Some images of a problem.
inline Piece of_images(const Problem& p, Range images) {
  Piece piece{p, images.begin * p.h * p.w * p.c, images.begin * p.p * p.q * p.k};
  piece.problem.n = images.size();
  return piece;
}
/// A problem of one image, for some rows of y; of a gradient of x, for the rows of x from where the first of their windows begins to where the next
/// one does. Nothing if they cover no row of x.
inline std::optional<Piece> of_rows(const Problem& p, Range rows) {
  const Axis axis{.kernel = p.kernel.h, .stride = p.stride.h, .pad_begin = p.pad.top, .dilation = p.dilation.h};
  Range x = in_rows(axis, rows, p.h), y = rows;
  if (p.op == Op::backward_data) {
    x = {rows.begin == 0 ? 0 : std::clamp<Index>(window_begin(axis, rows.begin), 0, p.h),
         rows.end == p.p ? p.h : std::clamp<Index>(window_begin(axis, rows.end), 0, p.h)};
    y = x.empty() ? y : intersect(windows_over(axis, x), {0, p.p});
  }
  if (x.empty() || y.empty()) return {};
  Piece piece{p, x.begin * p.w * p.c, y.begin * p.q * p.k};
  const RowPads pads = pad_rows(axis, y, x);
  piece.problem.h = x.size(), piece.problem.p = y.size();
  piece.problem.pad.top = pads.top, piece.problem.pad.bottom = pads.bottom;
  even_padding(piece.problem);
  return piece;
}
}   // namespace detail
/// The problems of some pieces, each once.
inline std::set<Problem> problems_of(const std::vector<Piece>& pieces) {
  std::set<Problem> problems;
  for (const Piece& piece : pieces) problems.insert(piece.problem);
  return problems;
}
/// A problem in `count` pieces or a few less, as large as each other but for the last: of some images, or if there are fewer images, of some rows
/// of one. Nothing if it cannot be cut so. Pre: count > 0
inline std::vector<Piece> cut(const Problem& p, Index count) {
  const Index images = ceil_div(p.n, std::min(count, p.n)), parts = count > p.n ? ceil_div(count, p.n) : 1, rows = ceil_div(p.p, parts);
  std::vector<Piece> pieces;
  if (parts > p.p) return pieces;
  for (Index i = 0; i < p.n; i += images) {
    const Piece some = detail::of_images(p, {i, std::min(i + images, p.n)});
    if (parts == 1) {
      pieces.push_back(some);
      continue;
    }
    for (Index row = 0; row < p.p; row += rows) {
      const auto piece = detail::of_rows(some.problem, {row, std::min(row + rows, p.p)});
      if (!piece) return {};
      pieces.push_back({piece->problem, some.x + piece->x, some.y + piece->y});
    }
  }
  const Index element = element_bytes(p.precision);
  Index alignment = p.alignment;
  for (const Piece& piece : pieces)
    while ((piece.x * element) % alignment != 0 || (piece.y * element) % alignment != 0) alignment /= 2;
  for (Piece& piece : pieces) piece.problem.alignment = alignment;
  return pieces;
}
/// The pieces in which a convolution runs: one, unless the engine that the library puts first wants a workspace for copies that there is not, while
/// such engines for pieces of it do with what there is. About as few pieces as will do. engine_bytes(problem, limit): the workspace of the engine put
/// first of those within the limit, or nothing if there is none.
template <class F>
std::vector<Piece> pieces_of(const Request& request, F engine_bytes) {
  const Problem& p = request.problem;
  const Index room = request.workspace_bytes, copies = copied_bytes(p);
  const std::vector<Piece> whole{{p}};
  const Index filter = p.k * (p.c / p.groups) * p.kernel.h * p.kernel.w * element_bytes(p.precision);
  constexpr Index beside = 8_MiB;   // more than engines want beside copies (see copied_bytes)
  if (!request.in_plan || room <= 0 || copies == 0 || copies + filter + beside <= room) return whole;
  const Index bytes = engine_bytes(p, any_workspace).value_or(0);
  if (bytes <= room || detail::works_on_copies(p, engine_bytes(p, room))) return whole;
  if (bytes - copies >= room) return whole;   // what else it wants, such as a copy of the filter, is too much for any piece
  std::size_t before = 1;
  const Index rows = p.n * p.p;
  for (Index count = 0; count < rows;) {
    count = std::min(count == 0 ? ceil_div(bytes, room) : count + 1 + count / 8, rows);
    std::vector<Piece> pieces = cut(p, count);
    if (pieces.empty() || pieces.size() > most_pieces) return whole;
    if (std::exchange(before, pieces.size()) == pieces.size()) continue;   // cut as the count before
    const Problem& middle = pieces[pieces.size() / 2].problem;             // most are like it
    const std::optional<Index> of_middle = engine_bytes(middle, any_workspace);
    if (!detail::works_on_copies(middle, of_middle)) return whole;
    if (*of_middle > room) continue;
    const std::set<Problem> problems = problems_of(pieces);
    const auto fits = [&](const Problem& q) { return q == middle || engine_bytes(q, any_workspace).value_or(any_workspace) <= room; };
    if (std::all_of(problems.begin(), problems.end(), fits)) return pieces;
  }
  return whole;
}
}   // namespace lrcnn::cudnn
