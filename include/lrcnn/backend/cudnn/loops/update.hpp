#pragma once
// Updating parameters, and finding out beforehand whether there is anything sound to update them with.
//
// The arithmetic of one element is that of backend/update.hpp, the loop is here. A flag in the device's memory carries
// the verdict from all_finite() to the update, so nobody has to wait for it.
#include <lrcnn/backend/cudnn/loops/lines.hpp>
namespace lrcnn::loops {
namespace detail {
template <class Update, class A>
struct UpdateLoop {
  Update update;
  A* w;
  const A* g;
  A *s0, *s1;
  const int* apply;
  LRCNN_HOST_DEVICE void operator()(Index i) const {
    if (apply != nullptr && *apply == 0) return;
    if constexpr (Update::states == 0) update(w[i], g[i]);
    else if constexpr (Update::states == 1) update(w[i], g[i], s0[i]);
    else update(w[i], g[i], s0[i], s1[i]);
  }
};
/// Clears the flag where an element minus itself is not 0.
template <class T>
struct FiniteLoop {
  Lines lines;
  Line<const T> x;
  int* flag;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    master_t<T> value[Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    bool finite = true;
    for (int v = 0; v < Lines::width; ++v) finite = finite && value[v] - value[v] == master_t<T>(0);
    if (!finite) *flag = 0;   // whoever writes writes the same
  }
};
/// The squares of every pieces-th element, from the piece's number on, added up.
struct SquaresLoop {
  const float* x;
  Index count, pieces;
  double* sums;
  LRCNN_HOST_DEVICE void operator()(Index piece) const {
    double sum = 0;
    for (Index i = piece; i < count; i += pieces) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    sums[piece] = sum;
  }
};
/// Adds up every step-th sum from a number on.
struct AddLoop {
  double* sums;
  Index count, step;
  LRCNN_HOST_DEVICE void operator()(Index first) const {
    for (Index i = first + step; i < count; i += step) sums[first] += sums[i];
  }
};
inline constexpr Index square_pieces = 16384, piece_groups = 128;
}   // namespace detail
/// Bytes of workspace that sum_of_squares() needs.
inline constexpr Index squares_bytes = detail::square_pieces * static_cast<Index>(sizeof(double));
/// sums[0] = the sum of the squares of `count` elements, in double. Pre: sums: squares_bytes of the device's memory.
template <class Exec>
void sum_of_squares(const Exec& exec, const float* x, Index count, double* sums) {
  for_units(exec, detail::square_pieces, detail::SquaresLoop{x, count, detail::square_pieces, sums});
  for_units(exec, detail::piece_groups, detail::AddLoop{sums, detail::square_pieces, detail::piece_groups});
  for_units(exec, 1, detail::AddLoop{sums, detail::piece_groups, 1});
}
/// Applies an element's update to `count` elements of contiguous buffers that do not overlap, as host::update_elements
/// does; s0 and s1 are the first two states, null where the update has none.
/// Post:    nothing is touched if `apply` is given and *apply, in the device's memory, is 0 when the loop runs
template <class Exec, class Update, class A>
void update_elements(const Exec& exec, const Update& update, A* w, const A* g, A* s0, A* s1, Index count, const int* apply = nullptr) {
  for_units(exec, count, detail::UpdateLoop<Update, A>{update, w, g, s0, s1, apply});
}
/// Clears *flag, in the device's memory, if an element is infinite or not a number; otherwise leaves it alone. So one
/// flag that was set to 1 beforehand can gather the verdict on several tensors.
template <class Exec, class T>
void all_finite(const Exec& exec, const View<T>& x, int* flag) {
  if (empty(x)) return;
  assert(channels_last(x));
  using Element = std::remove_const_t<T>;
  const Lines lines({}, x);
  for_units(exec, lines.count(), detail::FiniteLoop<Element>{lines, View<const Element>(x), flag});
}
/// Likewise for `count` elements in a row.
template <class Exec, class T>
void all_finite(const Exec& exec, const T* x, Index count, int* flag) {
  all_finite(exec, dense_view(x, 1, 1, {0, 1}, count), flag);
}
}   // namespace lrcnn::loops
