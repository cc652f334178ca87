#pragma once
// What several networks are made of.
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/dropout.hpp>
#include <lrcnn/network/graph.hpp>
namespace lrcnn::detail {
/// A convolution that keeps the extents but for its stride, without bias, since a norm follows.
template <Index K, Index kernel, Index stride = 1, Index groups = 1>
using PlainConv = Conv<K, Window{.kernel = kernel, .stride = stride, .pad = (kernel - 1) / 2}, ConvOptions{.groups = groups, .bias = false}>;
/// A dropout with probability P, or nothing where it would drop nothing.
template <class P, class Dropping>
using UnlessZero = std::conditional_t<P::num == 0, Identity, Dropping>;
/// "0", "1", ...; with a stem "denselayer0", ...
constexpr Name ordinal_name(std::size_t i, std::string_view stem = "") {
  if (i > 0) return numbered(stem, static_cast<Index>(i));
  Name name(stem);
  name.text[stem.size()] = '0';
  return name;
}
}   // namespace lrcnn::detail
