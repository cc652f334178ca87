#pragma once
// Dice loss as a program might write it, of which a device knows nothing.
#include <lrcnn/layer/dice.hpp>
namespace lrcnn::testing {
struct OwnDice {
  static constexpr std::string_view name = "own dice";
  static constexpr bool whole_maps = true;
  DiceLoss dice{};
  double total(const Labels& labels, const Shape& output) const { return dice.total(labels, output); }
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    dice(logits, labels, first, dx, scale, result);
  }
};
}   // namespace lrcnn::testing
