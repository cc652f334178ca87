#pragma once
// Six small images in which a network can learn where things are.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/layer/labels.hpp>
#include <lrcnn/data/row_source.hpp>
#include <algorithm>
#include <cmath>
#include <vector>
namespace lrcnn::testing::scenes {
inline constexpr Index images = 6, height = 12, width = 10;
inline constexpr Range all{0, images};
constexpr Input input_of(Index n) { return {n, 1, height, width}; }
/// Noise in which a rectangle is light and another one dark; the mask says where, and `numbers` is the image without noise.
struct Scenes {
  std::vector<double> pixels;
  std::vector<std::int32_t> mask;
  std::vector<float> numbers;
  Scenes() {
    const Random random(3);
    std::uint64_t at = 0;
    for (Index i = 0; i < images; ++i)
      for (Index row = 0; row < height; ++row)
        for (Index x = 0; x < width; ++x) {
          const bool light = row >= i && row < i + 5 && x >= 1 && x < 5, dark = row >= 6 - i && row < 11 - i && x >= 6;
          mask.push_back(light ? 1 : dark ? 2 : 0);
          numbers.push_back(light ? 1.0f : dark ? -1.0f : 0.0f);
          pixels.push_back(static_cast<double>(numbers.back()) + 0.2 * random.normal(at++));
        }
  }
  MemorySource<double> part(Range r) const { return {pixels.data() + r.begin * height * width, input_of(r.size())}; }
  Labels classes(Range r) const {
    const auto first = static_cast<std::size_t>(r.begin * height * width), count = static_cast<std::size_t>(r.size() * height * width);
    return Labels::of_pixels(std::span(mask).subspan(first, count), height, width);
  }
  Labels targets() const { return Labels::of_targets(numbers, 1, height, width); }
};
/// The largest difference of two elements.
inline double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}
}   // namespace lrcnn::testing::scenes
