#pragma once
// Filters between the order in which parameters are kept and the one in which a device likes them.
//
// Kept: [K][C/groups][R][S] of master_t<T>. Packed: [K][R][S][C/groups], channels last as in the maps. The matrix
// [K][F] of a fully connected layer is the same in both, with one tap. A bias may be packed along: rounded, in the same order.
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
/// A bias that is packed along with its filter, of `count` numbers; of none if there is nothing to pack.
template <class T>
struct PackedBias {
  const master_t<T>* kept = nullptr;
  T* packed = nullptr;
  Index count = 0;
};
namespace detail {
/// One element, numbered as it is packed; those of the bias come last.
template <class T>
struct PackLoop {
  const master_t<T>* kept;
  T* packed;
  Index count;
  Divisor channels, taps;
  PackedBias<T> bias;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    if (unit >= count) {
      bias.packed[unit - count] = static_cast<T>(bias.kept[unit - count]);
      return;
    }
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
/// packed = the filter w, rounded; likewise its bias. Shapes: w [K,C/groups,R,S] -> packed [K][R][S][C/groups]; they do not overlap
template <class Exec, class T>
void pack_filter(const Exec& exec, const FilterExtents& e, const master_t<T>* w, T* packed, const PackedBias<std::type_identity_t<T>>& bias = {}) {
  if (e.count() + bias.count == 0) return;
  const auto divisor = [](Index v) { return Divisor(std::max<Index>(1, v)); };   // of an empty filter with a bias
  for_units(exec, e.count() + bias.count, detail::PackLoop<T>{w, packed, e.count(), divisor(e.channels), divisor(e.taps), bias});
}
/// dw = a packed gradient, or dw += it if accumulate. Shapes: packed [K][R][S][C/groups] -> dw [K,C/groups,R,S]
template <class Exec, class S, class A>
void unpack_filter(const Exec& exec, const FilterExtents& e, const S* packed, A* dw, bool accumulate) {
  if (e.count() == 0) return;
  for_units(exec, e.count(), detail::UnpackLoop<S, A>{packed, dw, Divisor(e.channels), Divisor(e.taps), accumulate});
}
}   // namespace lrcnn::loops
