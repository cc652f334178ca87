#pragma once
// A stage as the row algebra sees it: which rows its layers read, and what a row of each tensor costs.
#include <lrcnn/network/table.hpp>
#include <algorithm>
#include <limits>
#include <span>
namespace lrcnn {
/// What the row algebra needs to know of one layer.
struct RowRule {
  Axis axis{};
  Index in_height = 1;
  Index out_height = 1;
  Index in_row_bytes = 0;     ///< cost of one row of the layer's input, for choosing cuts
  Index grid = 1;             ///< cuts of the layer's output lie on multiples of this, or at its end
  Index in = -1;              ///< tensor that it reads; -1: the one before
  Index other = -1;           ///< a join's second tensor, of which it reads the rows that it writes; -1: none
  bool other_whole = false;   ///< that one is an input of the stage, of one row, which each slab reads: factors of a scale
};
/// What it needs to know of a tensor of a stage that is no chain.
struct TensorRule {
  Index height = 1;
  Index row_bytes = 0;
  bool read = false;     ///< a layer of the stage reads it
  bool leaves = false;   ///< all of its rows are wanted, by somebody
};
namespace detail {
/// Where a slab cuts one tensor: c_t before and behind it, and the first row that it computes (overlap) or holds (share).
struct TensorCut {
  Index before = 0;
  Index after = 0;
  Index first = std::numeric_limits<Index>::max();
};
}   // namespace detail
/// A stage as the row algebra sees it: the rules of its layers and tensors, and the height of its output.
struct RowGraph {
  std::span<const RowRule> rules;
  Index height = 1;                        ///< of the last tensor
  Index last_row_bytes = 0;                ///< cost of one of its rows
  Index inputs = 1;                        ///< tensors that are there in full height; layer l writes tensor inputs + l
  std::span<const TensorRule> rule_of{};   ///< of each tensor; empty for a chain
  detail::TensorCut* scratch = nullptr;    ///< for one of each tensor, so that none is allocated when cuts are tried; or null
  constexpr bool chain() const { return rule_of.empty(); }
  constexpr Index layers() const { return static_cast<Index>(rules.size()); }
  constexpr Index tensors() const { return inputs + layers(); }
  constexpr const RowRule& rule(Index l) const { return item(rules, l); }
  constexpr const TensorRule& of(Index t) const { return item(rule_of, t); }
  constexpr Index tensor_height(Index t) const { return !chain() ? of(t).height : t == layers() ? height : rule(t).in_height; }
  constexpr Index grid(Index t) const { return t < inputs ? 1 : rule(t - inputs).grid; }
  constexpr Index row_bytes(Index t) const { return !chain() ? of(t).row_bytes : t == layers() ? last_row_bytes : rule(t).in_row_bytes; }
};
}   // namespace lrcnn
