#pragma once
// Filters between the order in which parameters are kept and the one in which a device likes them.
//
// Kept: [K][C/groups][R][S] of master_t<T>. Packed: [K][R][S][C/groups], channels last as in the maps. The matrix
// [K][F] of a fully connected layer is the same in both, with one tap. A bias may be packed along: rounded, in the same order.
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/network/table.hpp>
#include <algorithm>
#include <span>
#include <vector>
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
/// Elements that a thread takes.
inline constexpr int of_one_thread = 8;
/// A filter among others that one kernel packs.
template <class T>
struct PackedFilter {
  const master_t<T>* kept = nullptr;
  T* packed = nullptr;
  Index count = 0, first_block = 0;
  Divisor channels{}, taps{};
  PackedBias<T> bias{};
  bool wide = false;   ///< both orders are the same, and eight elements may be accessed at once
  /// Eight elements that lie one behind the other. Pre: wide
  LRCNN_HOST_DEVICE void pack_eight(Index unit) const {
    master_t<T> value[of_one_thread];
    load(kept + unit, of_one_thread, true, value);
    store(packed + unit, of_one_thread, true, value);
  }
  /// One element, numbered as it is packed; those of the bias come last.
  LRCNN_HOST_DEVICE void pack(Index unit) const {
    if (unit >= count) {
      bias.packed[unit - count] = static_cast<T>(bias.kept[unit - count]);
      return;
    }
    Index c = unit, tap = channels.split(c);
    const Index k = taps.split(tap);
    packed[unit] = static_cast<T>(kept[(k * channels.value() + c) * taps.value() + tap]);
  }
};
/// The filter of a block: the last one that does not begin behind it.
template <class Filter>
LRCNN_HOST_DEVICE int filter_of(const Filter* filters, int count, Index block) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (filters[middle].first_block <= block ? low : high) = middle;
  }
  return low;
}
/// Blocks take neighbouring elements of one filter.
template <class T>
struct PackLoop {
  static constexpr int phases = 1, most = 36, of_thread = of_one_thread;   ///< most: filters, whose table is an argument of the kernel, at most 4 kB
  static constexpr Index of_block = block_threads * of_thread;
  struct Shared {};
  PackedFilter<T> filters[most];
  int count = 0;
  Index blocks = 0;
  void add(const FilterExtents& e, const master_t<T>* w, T* packed, const PackedBias<T>& bias) {
    const auto divisor = [](Index v) { return Divisor(std::max<Index>(1, v)); };   // of an empty filter with a bias
    const bool wide = e.taps == 1 && takes_packs<of_thread>(w) && takes_packs<of_thread>(packed);
    filters[count++] = {w, packed, e.count(), blocks, divisor(e.channels), divisor(e.taps), bias, wide};
    blocks += ceil_div(e.count() + bias.count, of_block);
  }
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared&) const {
    const PackedFilter<T>& filter = filters[filter_of(filters, count, block)];
    const Index begin = (block - filter.first_block) * of_block, first = begin + thread, end = filter.count + filter.bias.count;
    if (filter.wide && begin + of_block <= filter.count) return filter.pack_eight(begin + thread * of_thread);
    for (int i = 0; i < of_thread; ++i)
      if (const Index unit = first + i * block_threads; unit < end) filter.pack(unit);
  }
};
/// A filter's gradient among others that one kernel unpacks.
template <class T>
struct PackedGradient {
  const T* packed = nullptr;
  master_t<T>* kept = nullptr;
  Index count = 0, first_block = 0;
  Divisor channels{}, taps{};
  bool accumulate = false, wide = false;   ///< wide: as of a PackedFilter
  LRCNN_HOST_DEVICE void unpack_eight(Index unit) const {
    master_t<T> value[of_one_thread], old[of_one_thread] = {};
    load(packed + unit, of_one_thread, true, value);
    if (accumulate) load(kept + unit, of_one_thread, true, old);
    for (int v = 0; v < of_one_thread; ++v) value[v] = accumulate ? old[v] + value[v] : value[v];
    store(kept + unit, of_one_thread, true, value);
  }
  /// One element, numbered as it is kept.
  LRCNN_HOST_DEVICE void unpack(Index unit) const {
    Index tap = unit, c = taps.split(tap);
    const Index k = channels.split(c);
    const auto value = static_cast<master_t<T>>(packed[(k * taps.value() + tap) * channels.value() + c]);
    kept[unit] = accumulate ? kept[unit] + value : value;
  }
};
/// The same for gradients.
template <class T>
struct UnpackLoop {
  static constexpr int phases = 1, most = 44, of_thread = of_one_thread;
  static constexpr Index of_block = block_threads * of_thread;
  struct Shared {};
  PackedGradient<T> filters[most];
  int count = 0;
  Index blocks = 0;
  void add(const FilterExtents& e, const T* packed, master_t<T>* dw, bool accumulate) {
    const bool wide = e.taps == 1 && takes_packs<of_thread>(packed) && takes_packs<of_thread>(dw);
    filters[count++] = {packed, dw, e.count(), blocks, Divisor(e.channels), Divisor(e.taps), accumulate, wide};
    blocks += ceil_div(e.count(), of_block);
  }
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared&) const {
    const PackedGradient<T>& filter = filters[filter_of(filters, count, block)];
    const Index begin = (block - filter.first_block) * of_block, first = begin + thread;
    if (filter.wide && begin + of_block <= filter.count) return filter.unpack_eight(begin + thread * of_thread);
    for (int i = 0; i < of_thread; ++i)
      if (const Index unit = first + i * block_threads; unit < filter.count) filter.unpack(unit);
  }
};
}   // namespace detail
/// A filter to be packed: packed = w, rounded; likewise its bias. Shapes: w [K,C/groups,R,S] -> packed [K][R][S][C/groups]; they do not overlap
template <class T>
struct FilterToPack {
  FilterExtents extents{};
  const master_t<T>* w = nullptr;
  T* packed = nullptr;
  PackedBias<T> bias{};
};
/// The same of a library's filters (cudnn/library.hpp).
template <class T, class Filters>
std::vector<FilterToPack<T>> filters_to_pack(const Filters& filters) {
  std::vector<FilterToPack<T>> list;
  for (const auto& f : filters) list.push_back({filter_extents(*f.node), f.canonical, f.packed, {f.bias, f.packed_bias, f.bias ? f.node->out.c : 0}});
  return list;
}
/// Packs filters: as many as there is room for at a time with one kernel.
template <class Exec, class T>
void pack_filters(const Exec& exec, std::span<const FilterToPack<T>> filters) {
  static_assert(sizeof(detail::PackLoop<T>) <= 4096 - 16, "CUDA 12.0, and GPUs before Volta, take no larger arguments");
  for (std::size_t begin = 0; begin < filters.size(); begin += detail::PackLoop<T>::most) {
    detail::PackLoop<T> loop;
    for (const FilterToPack<T>& f : filters.subspan(begin, std::min<std::size_t>(detail::PackLoop<T>::most, filters.size() - begin)))
      if (f.extents.count() + f.bias.count > 0) loop.add(f.extents, f.w, f.packed, f.bias);
    for_blocks(exec, loop.blocks, loop);
  }
}
/// A packed gradient: dw = it, or dw += it if accumulate. Shapes: packed [K][R][S][C/groups] -> dw [K,C/groups,R,S]; they do not overlap
template <class T>
struct FilterToUnpack {
  FilterExtents extents{};
  const T* packed = nullptr;
  master_t<T>* dw = nullptr;
  bool accumulate = false;
};
/// The same of a library's gradients (cudnn/library.hpp).
template <class T, class Filters>
std::vector<FilterToUnpack<T>> filters_to_unpack(const Filters& filters) {
  std::vector<FilterToUnpack<T>> list;
  for (const auto& f : filters) list.push_back({filter_extents(*f.node), f.packed, f.canonical, f.accumulate});
  return list;
}
/// Unpacks gradients of different filters: as many as there is room for at a time with one kernel.
template <class Exec, class T>
void unpack_filters(const Exec& exec, std::span<const FilterToUnpack<T>> filters) {
  static_assert(sizeof(detail::UnpackLoop<T>) <= 4096 - 16);
  for (std::size_t begin = 0; begin < filters.size(); begin += detail::UnpackLoop<T>::most) {
    detail::UnpackLoop<T> loop;
    for (const FilterToUnpack<T>& f : filters.subspan(begin, std::min<std::size_t>(detail::UnpackLoop<T>::most, filters.size() - begin)))
      if (f.extents.count() > 0) loop.add(f.extents, f.packed, f.dw, f.accumulate);
    for_blocks(exec, loop.blocks, loop);
  }
}
}   // namespace lrcnn::loops
