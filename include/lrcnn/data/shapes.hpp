#pragma once
// Generated images of geometric shapes, for when no data set is at hand. They are labelled as what they are.
//
// Ten kinds of shape, each in a random place, size and brightness (darker or lighter than the ground, in colours of
// its own where there are three channels), on an uneven, noisy ground with a few stray dots. A linear classifier does
// badly on them and a small CNN well. Everything is computed in integers, so the bytes are the same on every machine.
#include <lrcnn/data/dataset.hpp>
#include <lrcnn/data/transform.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
namespace lrcnn {
/// What make_shapes draws.
struct ShapesOptions {
  Index count = 6000;   ///< images
  Index channels = 1;   ///< 1 or 3
  Index h = 28;         ///< at least 8, as w
  Index w = 28;
  std::uint64_t seed = 1;
  Split split = Split::train;   ///< the parts of one seed have no image in common
};
inline constexpr std::array<std::string_view, 10> shape_names{"disc",          "ring",     "square", "frame", "triangle", "cross", "horizontal bars",
                                                              "vertical bars", "diagonal", "checker"};
namespace detail {
/// True if a point, relative to the shape's centre, lies on the shape of radius r. `mirror` leans the diagonal over.
constexpr bool on_shape(Index kind, Index x, Index y, Index r, bool mirror) {
  const Index ax = std::max(x, -x), ay = std::max(y, -y), far = std::max(ax, ay), square = x * x + y * y;
  const Index half = 7 * r / 8;   // of the sides of what is square
  const Index fifth = std::max<Index>(2 * half / 5, 1), quarter = std::max<Index>((half + 1) / 2, 1);
  switch (kind) {
    case 0: return square <= r * r;
    case 1: return square <= r * r && 81 * square >= 25 * r * r;
    case 2: return far <= half;
    case 3: return far <= half && 9 * far >= 5 * half;
    case 4: return -r <= y && 4 * y <= 3 * r && 7 * ax <= 4 * (y + r);
    case 5: return far <= r && 4 * std::min(ax, ay) <= r;
    case 6: return far <= half && (y + half) / fifth % 2 == 0;
    case 7: return far <= half && (x + half) / fifth % 2 == 0;
    case 8: return far <= half && 5 * std::max(mirror ? x + y : x - y, mirror ? -x - y : y - x) <= 2 * half;
    default: return far <= half && ((x + half) / quarter + (y + half) / quarter) % 2 == 0;
  }
}
/// Draws one image. Lengths in quarters of a pixel, so that edges can be sampled at four points a pixel.
inline void draw_shape(Index kind, const Random& random, Shape s, std::span<std::uint8_t> out) {
  std::uint64_t draws = 0;
  const auto between = [&](Index low, Index high) {
    return low + static_cast<Index>(random.below(draws++, static_cast<std::uint64_t>(high - low + 1)));
  };
  const Index side = 4 * std::min(s.h, s.w);
  const Index r = between(side / 4, side * 2 / 5);
  const Index cx = between(r, 4 * s.w - r), cy = between(r, 4 * s.h - r);
  const bool mirror = between(0, 1) == 1;
  struct Dot {
    Index x, y, r, level;
  };
  std::array<Dot, 4> dots{};
  for (Dot& dot : dots) dot = {between(0, 4 * s.w), between(0, 4 * s.h), between(0, 1) * std::max<Index>(side / 24, 2), between(0, 255)};
  const Index noise = between(10, 60);
  std::array<Index, 3> ground{}, contrast{}, slope_x{}, slope_y{};
  for (std::size_t c = 0; c < 3; ++c) {
    ground[c] = between(40, 215);
    contrast[c] = between(40, 120);
    if (between(0, 1) == 1 ? ground[c] > 128 + 60 : ground[c] > 128 - 60) contrast[c] = -contrast[c];
    slope_x[c] = between(-40, 40), slope_y[c] = between(-40, 40);
  }
  std::uint64_t bits = 0;
  Index pixel = 0;
  for (Index c = 0; c < s.c; ++c)
    for (Index y = 0; y < s.h; ++y)
      for (Index x = 0; x < s.w; ++x, ++pixel) {
        const auto channel = static_cast<std::size_t>(c);
        Index points = 0;
        for (const Index py : {4 * y + 1 - cy, 4 * y + 3 - cy})
          for (const Index px : {4 * x + 1 - cx, 4 * x + 3 - cx}) points += on_shape(kind, px, py, r, mirror) ? 1 : 0;
        Index level = ground[channel];
        level += slope_x[channel] * (2 * x - s.w) / s.w + slope_y[channel] * (2 * y - s.h) / s.h;
        for (const Dot& dot : dots) {
          const Index dx = 4 * x + 2 - dot.x, dy = 4 * y + 2 - dot.y;
          if (points == 0 && dx * dx + dy * dy < dot.r * dot.r) level = dot.level;
        }
        level += contrast[channel] * points / 4;
        if (pixel % 4 == 0) bits = random.bits(1000 + static_cast<std::uint64_t>(pixel / 4));
        // Two bytes make noise with a triangular distribution.
        level += (static_cast<Index>(bits & 255) + static_cast<Index>(bits >> 8 & 255) - 255) * noise / 255;
        bits >>= 16;
        item(out, pixel) = static_cast<std::uint8_t>(std::clamp<Index>(level, 0, 255));
      }
}
}   // namespace detail
/// Draws a data set of shapes.
/// Shapes:  images [count, channels, h, w]; label i is i % 10
/// Post:    image i depends on seed, split, i and the extents alone; the description says that the set is generated
/// Errors:  DataError if count is below 1, channels are not 1 or 3, or an extent is below 8
inline Dataset make_shapes(const ShapesOptions& options = {}) {
  if (options.count < 1 || (options.channels != 1 && options.channels != 3) || options.h < 8 || options.w < 8)
    throw DataError(error_text("generated shapes of " + to_string(Shape{options.count, options.channels, options.h, options.w}),
                               "there are at least 1 image, 1 or 3 channels, 8 rows and 8 columns", "choose such numbers"));
  Dataset data;
  data.description =
      "generated shapes (drawn by a program, not real data), " + std::string(split_name(options.split)) + ", seed " + std::to_string(options.seed);
  data.shape = {options.count, options.channels, options.h, options.w};
  data.classes = static_cast<Index>(shape_names.size());
  data.class_names.assign(shape_names.begin(), shape_names.end());
  data.images.resize(static_cast<std::size_t>(data.shape.count()));
  const auto bytes = static_cast<std::size_t>(data.image_bytes());
  for (Index i = 0; i < options.count; ++i) {
    const Index kind = i % data.classes;
    data.labels.push_back(static_cast<std::int32_t>(kind));
    detail::draw_shape(kind, purpose_random(options.seed, "shapes", static_cast<Index>(options.split), i), data.shape,
                       std::span(data.images).subspan(static_cast<std::size_t>(i) * bytes, bytes));
  }
  return data;
}
}   // namespace lrcnn
