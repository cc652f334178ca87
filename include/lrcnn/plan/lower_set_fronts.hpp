#pragma once
// Pareto fronts of the search for a chain of lower sets: ways to come to a set, of which none is at most as large as another in both cost and
// bytes kept; and how those of one set get into the front of a larger one.
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>
namespace lrcnn::detail {
/// A way to come to a set.
struct Label {
  Index cost = 0;
  Index kept = 0;   ///< bytes
  std::uint32_t from = 0;
  std::uint32_t label = 0;   ///< of that set's front
};
using Front = std::vector<Label>;   ///< by cost; bytes fall
/// Labels [begin, end) of the front of a set, and what a step from there to a larger one adds to each.
struct FrontStep {
  std::uint32_t from = 0, begin = 0, end = 0;
  Index cost = 0, kept = 0;
};
/// The first of the numbers from `begin` to `size` for which `holds` does not, or `size`. Looks at few of them if it is near `begin`.
/// Pre: behind a number for which it does not hold, it holds for none
template <class Holds>
std::size_t first_without(std::size_t begin, std::size_t size, Holds holds) {
  std::size_t step = 1;
  while (begin + step <= size && holds(begin + step - 1)) begin += step, step *= 2;
  std::size_t end = std::min(size, begin + step - 1);
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (holds(middle)) begin = middle + 1;
    else end = middle;
  }
  return begin;
}
/// Merges fronts. It keeps memory from one to the next.
class FrontMerger {
 public:
  /// `place`: of each set in the order in which a search comes to them. Pre: it outlives the object.
  explicit FrontMerger(const std::vector<std::uint32_t>& place) : place_(place) {}
  /// Adds to a front what a step makes of labels of another. Of labels alike in cost and bytes, the one from the set of least place stays, so that
  /// the order of steps makes no difference. What no label of the step betters is passed over in strides.
  void merge(Front& front, const Front& other, const FrontStep& step) {
    better_.clear();
    for (std::size_t k = step.begin, at = 0; k < step.end;) {
      const Label label{other[k].cost + step.cost, other[k].kept + step.kept, step.from, static_cast<std::uint32_t>(k)};
      at = first_without(at, front.size(), [&](std::size_t f) { return front[f].cost <= label.cost; });
      if (at == 0 || betters(label, front[at - 1])) {
        better_.push_back(label), ++k;
      } else {
        const Index kept = front[at - 1].kept - step.kept;
        k = first_without(k + 1, step.end, [&](std::size_t m) { return other[m].kept >= kept; });
      }
    }
    if (!better_.empty()) add_better(front);
  }

 private:
  const std::vector<std::uint32_t>& place_;
  Front better_{}, merged_{};
  /// Pre: `other` costs no more.
  bool betters(const Label& label, const Label& other) const {
    if (label.kept != other.kept) return label.kept < other.kept;
    return label.cost == other.cost && place_[label.from] < place_[other.from];
  }
  void add_better(Front& front) {
    merged_.clear();
    const auto fewest = [&] { return merged_.empty() ? std::numeric_limits<Index>::max() : merged_.back().kept; };
    std::size_t f = 0;
    for (const Label& label : better_) {
      for (; f < front.size() && front[f].cost < label.cost; ++f)
        if (front[f].kept < fewest()) merged_.push_back(front[f]);
      merged_.push_back(label);
    }
    while (f < front.size() && front[f].kept >= fewest()) ++f;
    merged_.insert(merged_.end(), front.begin() + static_cast<std::ptrdiff_t>(f), front.end());
    front.swap(merged_);
  }
};
}   // namespace lrcnn::detail
