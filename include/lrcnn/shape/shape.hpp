#pragma once
// Extents of a tensor, in the order everybody uses: images, channels, rows, columns.
#include <lrcnn/core/types.hpp>
#include <string>
namespace lrcnn {
/// Extents [N,C,H,W]. A feature vector is [N,F,1,1].
struct Shape {
  Index n = 1;
  Index c = 1;
  Index h = 1;
  Index w = 1;
  constexpr Index count() const { return n * c * h * w; }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};
/// What a network is fed with: the same four extents, under the name users meet.
using Input = Shape;
/// "8x3x224x224"
inline std::string to_string(const Shape& s) {
  return std::to_string(s.n) + 'x' + std::to_string(s.c) + 'x' + std::to_string(s.h) + 'x' + std::to_string(s.w);
}
}   // namespace lrcnn
