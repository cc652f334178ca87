#pragma once
// Which tensors the layers of a list read, and the order in which a network that is a graph is executed.
//
// In a list a layer says how many places before itself its input lies, so that parts of networks can be put together
// without renumbering. A table numbers tensors: 0 is the network's input, i + 1 the output of node i.
//
// Any order in which every layer comes after what it reads computes the same. The planner cuts a table into stages at each norm
// over a batch or a group, which needs all rows of its input first; what crosses a cut is stored whole. So layers are executed as
// late as these cuts allow, by levels:
//     level(last) = 0,  level(v) = min over readers r of (level(r) - (r is such a norm))
// Levels go up; within a level these norms come first, then the other layers, both in the order of the list. Thus a shortcut with a
// convolution and a norm runs beside the last convolution and norm of the body. A chain keeps its order.
//
// There is one exception. A layer that makes its input smaller, by strides or fewer channels, does not keep the input waiting: it runs at the level
// at which the last of the layers reads the input that do not make it smaller, or the first of all if there are none. So a shortcut's convolution
// with strides runs beside the first convolution of the body, and one stage reads their input in place of two.
#include <lrcnn/network/check.hpp>
#include <algorithm>
#include <limits>
#include <span>
#include <vector>
namespace lrcnn {
/// Tensors that a layer reads.
struct Reads {
  Index input = 0;
  Index other = -1;   ///< -1: none
  friend constexpr bool operator==(const Reads&, const Reads&) = default;
};
/// Tensors that the layer at `position` of a list reads: none behind it; beyond the first layer the network's input.
constexpr Reads reads_of(const Layer& layer, Index position) {
  const auto tensor = [&](Index back) { return position + 1 - std::clamp<Index>(back, 1, position + 1); };
  return {tensor(layer.input), is_join(layer) && layer.other != 0 ? tensor(layer.other) : -1};
}
/// What is wrong with a layer's references: bad_reference, needs_other, same_inputs or none.
constexpr Fault fault_of_reads(const Layer& layer, Index position) {
  if (layer.input < 1 || layer.other < 0 || (layer.other != 0 && !is_join(layer))) return Fault::bad_reference;
  if (!is_join(layer)) return Fault::none;
  if (layer.other == 0) return Fault::needs_other;
  const Reads reads = reads_of(layer, position);
  return reads.input == reads.other ? Fault::same_inputs : Fault::none;
}
/// Whether each layer reads the one before it and nothing else.
constexpr bool is_chain(std::span<const Layer> layers) {
  for (const Layer& layer : layers)
    if (layer.input != 1 || layer.other != 0) return false;
  return true;
}
/// Whether a layer begins a level: it may come only once all of its input is there.
constexpr bool parts_levels(const Layer& layer) {
  return layer.kind == Kind::norm && (layer.norm.over == Norm::Over::batch || layer.norm.over == Norm::Over::group);
}
/// In place of a level: no layer reads it.
inline constexpr Index unread = 1;
/// Level of each layer, at most 0; `unread` for one that no layer reads, unless it is the last.
constexpr std::vector<Index> levels_of(std::span<const Layer> layers) {
  std::vector<Index> level(layers.size(), unread);
  if (!level.empty()) level.back() = 0;
  for (std::size_t i = layers.size(); i-- > 0;) {
    const Layer& layer = layers[i];
    const Reads reads = reads_of(layer, static_cast<Index>(i));
    for (const Index tensor : {reads.input, reads.other})
      if (tensor > 0) {
        Index& source = item(level, tensor - 1);
        source = std::min(source, level[i] - (parts_levels(layer) ? 1 : 0));
      }
  }
  return level;
}
/// Whether a layer makes its input smaller, by its strides and channels: whatever the input's rows and columns are, so that a network has one order.
constexpr bool shrinks(const Layer& layer, Index in_channels, Index out_channels) {
  return rules_of(layer).rows == RowMap::window && out_channels < in_channels * layer.window.stride.h * layer.window.stride.w;
}
/// Brings layers that shrink their input down to the last level at which one reads it that does not shrink it, or to the first of all.
/// `shrinking`: whether each layer does.
constexpr void read_early(std::span<const Layer> layers, std::span<const char> shrinking, std::vector<Index>& level) {
  struct Readers {
    Index first = unread;                             ///< the lowest level at which a layer reads the tensor
    Index last = std::numeric_limits<Index>::min();   ///< the highest at which one does that does not shrink it
  };
  std::vector<Readers> readers(layers.size() + 1);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Reads reads = reads_of(layers[i], static_cast<Index>(i));
    for (const Index tensor : {reads.input, reads.other}) {
      if (tensor < 0) continue;
      Readers& r = item(readers, tensor);
      r.first = std::min(r.first, level[i]);
      if (!shrinking[i]) r.last = std::max(r.last, level[i]);
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!shrinking[i]) continue;
    const Readers& r = item(readers, reads_of(layers[i], static_cast<Index>(i)).input);
    level[i] = std::min(level[i], std::max(r.first, r.last));
  }
}
/// Place of each layer in the order of execution. Pre: none is unread.
constexpr std::vector<Index> execution_places(std::span<const Layer> layers, std::span<const Index> level) {
  if (level.empty()) return {};
  const Index lowest = *std::min_element(level.begin(), level.end());
  const auto bin = [&](std::size_t i) { return static_cast<std::size_t>(2 * (level[i] - lowest) + (parts_levels(layers[i]) ? 0 : 1)); };
  std::vector<Index> next(static_cast<std::size_t>(3 - 2 * lowest), 0), place(level.size(), 0);
  for (std::size_t i = 0; i < level.size(); ++i) ++next[bin(i) + 1];
  for (std::size_t b = 1; b < next.size(); ++b) next[b] += next[b - 1];
  for (std::size_t i = 0; i < level.size(); ++i) place[i] = next[bin(i)]++;
  return place;
}
}   // namespace lrcnn
