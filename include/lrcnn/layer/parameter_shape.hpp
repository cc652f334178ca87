#pragma once
// The parameter tensors that a layer owns.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <array>
#include <string>
namespace lrcnn {
/// One parameter tensor that a layer owns.
struct ParameterShape {
  Name name{};                      ///< "weight"; the table puts the layer's name before it
  std::array<Index, 4> extents{};   ///< trailing extents are 1
  Index fan_in = 0;                 ///< 0: initialised to `fill` instead of from a distribution
  Index fan_out = 0;
  double fill = 0;
  bool decay = true;      ///< subject to weight decay by default
  bool running = false;   ///< a norm's running statistics: no gradient and no optimizer; what a step finds for them is left where
                          ///< their gradient would be, and the trainer mixes it in
  constexpr Index count() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  friend constexpr bool operator==(const ParameterShape&, const ParameterShape&) = default;
};
/// At most four of them, in the order in which the layer's functions receive them.
struct ParameterShapes {
  std::array<ParameterShape, 4> item{};
  Index count = 0;
  /// Errors: ShapeError for a fifth
  constexpr void add(const ParameterShape& p) {
    if (count == static_cast<Index>(item.size()))
      throw ShapeError(error_text("a layer adds a fifth parameter, '" + std::string(p.name.view()) + "'", "a layer has at most four",
                                  "put several into one, or make two layers"));
    item[static_cast<std::size_t>(count++)] = p;
  }
};
}   // namespace lrcnn
