#pragma once
// Random changes of brightness, contrast and saturation, as torchvision's ColorJitter has them.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/rng.hpp>
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <span>
#include <string>
namespace lrcnn {
/// How far each goes: its factor is drawn from [max(0, 1 - x), 1 + x]; 0 leaves the picture as it is.
struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0;
  friend constexpr bool operator==(const ColorJitter&, const ColorJitter&) = default;
};
/// What one picture's values are changed by; 1: not at all.
struct ColorFactors {
  double brightness = 1, contrast = 1, saturation = 1;
  friend constexpr bool operator==(const ColorFactors&, const ColorFactors&) = default;
};
/// Errors:  DataError if a number is not finite or negative, or saturation is to change where there are not 3 channels
inline void check(const ColorJitter& jitter, Index channels) {
  for (const double x : {jitter.brightness, jitter.contrast, jitter.saturation})
    if (!(x >= 0 && x <= 1e6))
      throw DataError(error_text("colour jitter of brightness " + std::to_string(jitter.brightness) + ", contrast " +
                                     std::to_string(jitter.contrast) + " and saturation " + std::to_string(jitter.saturation),
                                 "each is at least 0, for a factor from 1 - x to 1 + x", "choose other numbers"));
  if (jitter.saturation > 0 && channels != 3)
    throw DataError(error_text("the saturation of pictures of " + std::to_string(channels) + " channels is to change",
                               "saturation is of red, green and blue", "set it to 0, or read 3 channels"));
}
/// Factors from three numbers of a generator, from `index` on.
inline ColorFactors draw_factors(const ColorJitter& jitter, const Random& random, std::uint64_t index) {
  const auto factor = [&](double x, std::uint64_t i) {
    const double low = std::max(0.0, 1 - x);
    return x == 0 ? 1 : low + (1 + x - low) * random.uniform(i);
  };
  return {factor(jitter.brightness, index), factor(jitter.contrast, index + 1), factor(jitter.saturation, index + 2)};
}
/// Changes a picture: brightness first (times the factor), then contrast (distance from the mean grey of the whole picture), then saturation
/// (distance from each pixel's grey). Grey is 0.299 red + 0.587 green + 0.114 blue of 3 channels, and the mean of the channels otherwise.
/// Shapes:  values [channels][pixels], dense; 1 is full brightness
/// Post:    if `clamps`, values lie in [0, 1] after each of the three
inline void adjust_colors(std::span<double> values, Index channels, const ColorFactors& factors, bool clamps) {
  const auto count = static_cast<std::size_t>(channels), pixels = values.size() / count;
  const auto weight = [&](std::size_t c) {
    constexpr double of_rgb[3] = {0.299, 0.587, 0.114};
    return count == 3 ? of_rgb[c] : 1 / static_cast<double>(count);
  };
  const auto bounded = [&](double v) { return clamps ? std::clamp(v, 0.0, 1.0) : v; };
  const auto grey = [&](std::size_t p) {
    double sum = 0;
    for (std::size_t c = 0; c < count; ++c) sum += weight(c) * values[c * pixels + p];
    return sum;
  };
  if (factors.brightness != 1)
    for (double& v : values) v = bounded(v * factors.brightness);
  if (factors.contrast != 1) {
    double mean = 0;
    for (std::size_t p = 0; p < pixels; ++p) mean += grey(p);
    mean /= static_cast<double>(pixels);
    for (double& v : values) v = bounded(mean + factors.contrast * (v - mean));
  }
  if (factors.saturation != 1)
    for (std::size_t p = 0; p < pixels; ++p) {
      const double own = grey(p);
      for (std::size_t c = 0; c < count; ++c) values[c * pixels + p] = bounded(own + factors.saturation * (values[c * pixels + p] - own));
    }
}
}   // namespace lrcnn
