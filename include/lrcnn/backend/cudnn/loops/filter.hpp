#pragma once
// Filters between the order in which parameters are kept and the one in which a device likes them.
//
// Kept: [K][C/groups][R][S] of master_t<T>. Packed: [K][R][S][C/groups], channels last as in the maps. The matrix
// [K][F] of a fully connected layer is the same in both, with one tap.
#include <lrcnn/backend/cudnn/loops/work.hpp>
#include <lrcnn/network/table.hpp>
namespace lrcnn::loops {
/// Extents of a filter; taps are R * S.
struct FilterExtents {
  Index outputs = 0;
  Index channels = 0;   ///< of one group
  Index taps = 1;
  constexpr Index count() const { return outputs * channels * taps; }
  friend constexpr bool operator==(const FilterExtents&, const FilterExtents&) = default;
};
/// Extents of the filter of a convolution, a transposed one, whose inputs are a convolution's outputs, or a fully connected layer.
constexpr FilterExtents filter_extents(const Node& node) {
  const Window& window = node.layer.window;
  const Index taps = window.kernel.h * window.kernel.w, groups = node.layer.groups;
  if (node.layer.kind == Kind::linear) return {node.out.c, node.in.c, 1};
  if (node.layer.kind == Kind::conv_transpose) return {node.in.c, node.out.c / groups, taps};
  return {node.out.c, node.in.c / groups, taps};
}
namespace detail {
/// One element, numbered as it is packed.
template <class A, class T>
struct PackLoop {
  const A* kept;
  T* packed;
  Divisor channels, taps;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index c = unit, tap = channels.split(c);
    const Index k = taps.split(tap);
    packed[unit] = static_cast<T>(kept[(k * channels.value() + c) * taps.value() + tap]);
  }
};
/// One element, numbered as it is kept.
template <class S, class A>
struct UnpackLoop {
  const S* packed;
  A* kept;
  Divisor channels, taps;
  bool accumulate;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index tap = unit, c = taps.split(tap);
    const Index k = channels.split(c);
    const A value = static_cast<A>(packed[(k * taps.value() + tap) * channels.value() + c]);
    kept[unit] = accumulate ? kept[unit] + value : value;
  }
};
}   // namespace detail
/// packed = the filter w, rounded. Shapes: w [K,C/groups,R,S] -> packed [K][R][S][C/groups]; they do not overlap
template <class Exec, class T>
void pack_filter(const Exec& exec, const FilterExtents& e, const master_t<T>* w, T* packed) {
  if (e.count() == 0) return;
  for_units(exec, e.count(), detail::PackLoop<master_t<T>, T>{w, packed, Divisor(e.channels), Divisor(e.taps)});
}
/// dw = a packed gradient, or dw += it if accumulate. Shapes: packed [K][R][S][C/groups] -> dw [K,C/groups,R,S]
template <class Exec, class S, class A>
void unpack_filter(const Exec& exec, const FilterExtents& e, const S* packed, A* dw, bool accumulate) {
  if (e.count() == 0) return;
  for_units(exec, e.count(), detail::UnpackLoop<S, A>{packed, dw, Divisor(e.channels), Divisor(e.taps), accumulate});
}
}   // namespace lrcnn::loops
