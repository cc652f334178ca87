#pragma once
// How many pixels of masks each class has, and the weights that make up for it. layer/class_balance.hpp counts them.
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <numeric>
#include <vector>
namespace lrcnn {
struct ClassBalance {
  std::vector<Index> counts{};   ///< pixels of each class
  Index ignored = 0;             ///< pixels that do not count
  Index images = 0;              ///< that have a pixel that counts
  Index pixels() const { return std::accumulate(counts.begin(), counts.end(), Index{0}); }
  /// Weights for PixelCrossEntropy with which every class that is there weighs the same in all, and a pixel 1 on average: pixels / (classes
  /// that are there * pixels of the class). Of a class that is not there: 0.
  std::vector<double> weights() const {
    const auto there = static_cast<double>(std::count_if(counts.begin(), counts.end(), [](Index count) { return count > 0; }));
    const auto all = static_cast<double>(pixels());
    std::vector<double> result;
    for (const Index count : counts) result.push_back(count > 0 ? all / (there * static_cast<double>(count)) : 0);
    return result;
  }
  friend bool operator==(const ClassBalance&, const ClassBalance&) = default;
};
}   // namespace lrcnn
