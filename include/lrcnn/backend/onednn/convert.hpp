#pragma once
// Layers and views in the library's words.
//
// The library never hears of channels that are padding. Where storage rounds channels up to a block it is told of the
// rounded number: the padding is zero in every tensor and in every packed filter, so the results are the same, padded
// channels come out as zeros, and kernels that want whole blocks serve any number of channels.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/onednn/api.hpp>
#include <array>
#include <span>
namespace lrcnn::onednn {
/// A convolution's channels as the library is told of them.
struct Channels {
  bool served = false;   ///< false: no kernel for these channels in blocked storage; our own loops run instead
  Index groups = 1, in = 1, out = 1;
};
constexpr Channels channels_of(const Node& node, const Target& target) {
  const Index groups = node.layer.groups, in = node.in.c, out = node.out.c, block = target.lanes();
  if (target.block(out) == 1 || (groups > 1 && target.block(in) == 1)) return {};
  if (groups == 1) return {true, 1, round_up(in, target.block(in)), round_up(out, block)};
  if (in == groups && out == groups) return {true, round_up(in, block), round_up(in, block), round_up(in, block)};
  return {in / groups % block == 0 && out / groups % block == 0, groups, in, out};
}
/// What the library calls the backend's elements.
constexpr Type element_type(const Target& target) { return target.element_bytes == 2 ? Type::bf16 : Type::f32; }
/// A filter is made of elements, its gradient of floats.
constexpr Type filter_type(Op op, const Target& target) { return op == Op::backward_parameters ? Type::f32 : element_type(target); }
/// Dimensions of a convolution's filter: [G,]K,C,R,S.
inline Dims filter_dims(Index groups, Index in, Index out, const Pair& kernel) {
  Dims dims{out / groups, in / groups, kernel.h, kernel.w};
  if (groups > 1) dims.insert(dims.begin(), groups);
  return dims;
}
inline MemoryDesc map_desc(Index n, Index c, Index rows, Index w, Index block, Type type = Type::f32) {
  return tagged({n, c, rows, w}, block == 1 ? Tag::nchw : block == 8 ? Tag::nChw8c : Tag::nChw16c, type);
}
/// The filter layouts that we know by name, and so can fill ourselves. Those of two-byte elements have input channels,
/// or output channels for the data gradient, in pairs.
inline std::span<const Tag> filter_tags(Index block, bool grouped, Type type) {
  static constexpr std::array plain16{Tag::OIhw16i16o, Tag::OIhw16o16i, Tag::IOhw16o16i, Tag::IOhw16i16o, Tag::Ohwi16o, Tag::Owhi16o, Tag::Oihw16o};
  static constexpr std::array grouped16{Tag::gOIhw16i16o, Tag::gOIhw16o16i, Tag::gIOhw16o16i, Tag::gIOhw16i16o, Tag::Goihw16g};
  static constexpr std::array plain8{Tag::OIhw8i8o, Tag::OIhw8o8i, Tag::Ohwi8o};
  static constexpr std::array grouped8{Tag::gOIhw8i8o, Tag::gOIhw8o8i, Tag::Goihw8g};
  static constexpr std::array pairs{Tag::OIhw8i16o2i, Tag::OIhw8o16i2o, Tag::IOhw8o16i2o, Tag::OhwI16o2i};
  static constexpr std::array grouped_pairs{Tag::gOIhw8i16o2i, Tag::gOIhw8o16i2o, Tag::gIOhw8o16i2o, Tag::Goihw16g};
  if (type == Type::bf16) return grouped ? std::span<const Tag>(grouped_pairs) : std::span<const Tag>(pairs);
  if (block == 16) return grouped ? std::span<const Tag>(grouped16) : std::span<const Tag>(plain16);
  return grouped ? std::span<const Tag>(grouped8) : std::span<const Tag>(plain8);
}
/// One pass of a convolution from input rows `in` to output rows `out` of n images. Pre: channels_of(node).served.
/// The filter's layout is left to the library. x and y stand for dx and dy in the backward passes, w for dw.
inline ConvDesc conv_desc(const Node& node, const Target& target, Op op, Index n, Range in, Range out) {
  const Channels c = channels_of(node, target);
  const Window& window = node.layer.window;
  const RowPads rows = pad_rows(row_axis(window), out, in);
  const RowPads columns = pad_rows(column_axis(window), {0, node.out.w}, {0, node.in.w});
  ConvDesc d;
  d.type = element_type(target);
  d.x = map_desc(n, c.in, in.size(), node.in.w, target.block(node.in.c), d.type);
  d.y = map_desc(n, c.out, out.size(), node.out.w, target.block(node.out.c), d.type);
  d.filter = filter_dims(c.groups, c.in, c.out, window.kernel);
  d.w = tagged(d.filter, Tag::any, filter_type(op, target));
  if (node.layer.bias) d.b = tagged({c.out}, Tag::x);
  d.stride = {window.stride.h, window.stride.w};
  d.dilation = {window.dilation.h - 1, window.dilation.w - 1};
  d.pad_begin = {rows.top, columns.top};
  d.pad_end = {rows.bottom, columns.bottom};
  return d;
}
}   // namespace lrcnn::onednn
