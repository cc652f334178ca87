#pragma once
// What happens to an image between the data set and the network: crop, flip, normalisation.
//
// Random transforms are functions of (seed, epoch, index of the image in the data set) and of nothing else, so the
// backward pass, a second thread, a rerun and a resumed training all see the same image.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/data/dataset.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
namespace lrcnn {
/// value = (byte / 255 - mean) / deviation, by channel; without numbers, value = byte / 255.
struct Normalization {
  std::vector<double> mean{};
  std::vector<double> deviation{};
  friend bool operator==(const Normalization&, const Normalization&) = default;
};
/// The normalisation that gives each channel of a data set mean 0 and deviation 1.
/// Post:    a channel that is one value everywhere gets deviation 1
/// Cost:    one pass over the images
inline Normalization normalization_of(const Dataset& data) {
  check(data);
  Normalization result;
  const std::size_t plane = static_cast<std::size_t>(data.shape.h * data.shape.w);
  for (Index c = 0; c < data.shape.c; ++c) {
    std::array<std::int64_t, 256> count{};
    for (Index i = 0; i < data.shape.n; ++i)
      for (const std::uint8_t b : data.image(i).subspan(static_cast<std::size_t>(c) * plane, plane)) ++count[b];
    double sum = 0, squares = 0;
    const double n = static_cast<double>(data.shape.n) * static_cast<double>(plane);
    for (std::size_t v = 0; v < 256; ++v) sum += static_cast<double>(count[v]) * static_cast<double>(v);
    const double mean = sum / n;
    for (std::size_t v = 0; v < 256; ++v) {
      const double distance = static_cast<double>(v) - mean;
      squares += static_cast<double>(count[v]) * distance * distance;
    }
    result.mean.push_back(mean / 255);
    result.deviation.push_back(squares > 0 ? std::sqrt(squares / n) / 255 : 1);
  }
  return result;
}
/// The value of each byte in each channel: element 256 * channel + byte.
/// A byte is looked up rather than computed, so that its value does not depend on how a loop was compiled.
/// Errors:  DataError if means or deviations are not one per channel and finite, or a deviation is not positive
template <class T>
std::vector<T> normalization_table(const Normalization& normalization, Index channels) {
  const auto& [mean, deviation] = normalization;
  const auto count = static_cast<std::size_t>(channels);
  if (mean.size() != deviation.size() || (!mean.empty() && mean.size() != count))
    throw DataError(error_text("normalisation with " + std::to_string(mean.size()) + " means and " + std::to_string(deviation.size()) + " deviations",
                               "the images have " + std::to_string(channels) + " channels", "give one of each per channel, or none"));
  std::vector<T> table(256 * count);
  for (std::size_t c = 0; c < count; ++c) {
    const double m = mean.empty() ? 0 : mean[c], d = deviation.empty() ? 1 : deviation[c];
    if (!std::isfinite(m) || !std::isfinite(d) || d <= 0)
      throw DataError(
          error_text("normalisation of channel " + std::to_string(c) + " with mean " + std::to_string(m) + " and deviation " + std::to_string(d),
                     "both are finite and the deviation is above 0", "give other numbers"));
    for (std::size_t b = 0; b < 256; ++b) table[256 * c + b] = static_cast<T>((static_cast<double>(b) / 255 - m) / d);
  }
  return table;
}
/// Crop and flip. The default leaves images as they are.
struct Augmentation {
  bool flip = false;   ///< exchange left and right in half of the images
  Index pad = 0;       ///< rows and columns of `fill` put round the image before it is cropped
  Index crop_h = 0;    ///< rows and columns that are cut out; 0: as many as the image has
  Index crop_w = 0;
  std::uint8_t fill = 0;   ///< the byte outside the image
  bool random = true;      ///< false: cut out the middle, never flip; for tests
  friend constexpr bool operator==(const Augmentation&, const Augmentation&) = default;
};
/// Where an image's cut lies and whether it is flipped.
struct Placement {
  Index y = 0;   ///< of the cut's first row in the image; negative in the padding
  Index x = 0;
  bool flip = false;   ///< after the cut
  friend constexpr bool operator==(const Placement&, const Placement&) = default;
};
/// Random numbers for one purpose of a seed, such as "shuffle" and the number of an epoch: the same arguments give the same numbers, and
/// numbers for other arguments are independent of them. `purpose` is a word of at most eight letters; further ones push out the first.
constexpr Random purpose_random(std::uint64_t seed, std::string_view purpose, Index number, Index stream = 0) {
  std::uint64_t tag = 0;
  for (const char letter : purpose) tag = tag << 8 | static_cast<unsigned char>(letter);
  return Random(Random(seed, tag).bits(static_cast<std::uint64_t>(number)), static_cast<std::uint64_t>(stream));
}
/// Extents of what a crop cuts out of images of this shape.
/// Errors:  DataError if the padded image is smaller than the crop, or a number is negative
inline Shape cropped_shape(const Augmentation& a, Shape s) {
  const Index h = a.crop_h == 0 ? s.h : a.crop_h, w = a.crop_w == 0 ? s.w : a.crop_w;
  if (a.pad < 0 || h < 1 || w < 1 || h > s.h + 2 * a.pad || w > s.w + 2 * a.pad)
    throw DataError(error_text("crop of " + std::to_string(h) + 'x' + std::to_string(w) + " from images of " + std::to_string(s.h) + 'x' +
                                   std::to_string(s.w) + " padded by " + std::to_string(a.pad),
                               "a crop lies within the padded image", "crop less or pad more"));
  return {s.n, s.c, h, w};
}
/// Where sample number `sample` of the data set is cut in an epoch.
/// Post:    depends on the arguments alone; the cut lies within the padded image, each place equally likely
constexpr Placement place(const Augmentation& a, Shape from, Shape to, std::uint64_t seed, Index epoch, Index sample) {
  const Index room_y = from.h + 2 * a.pad - to.h, room_x = from.w + 2 * a.pad - to.w;
  if (!a.random) return {room_y / 2 - a.pad, room_x / 2 - a.pad, false};
  const Random random = purpose_random(seed, "augment", epoch, sample);
  const auto draw = [&](std::uint64_t index, Index room) {
    return static_cast<Index>(random.below(index, static_cast<std::uint64_t>(room) + 1)) - a.pad;
  };
  return {draw(0, room_y), draw(1, room_x), a.flip && random.below(2, 2) == 1};
}
/// Cuts one image.
/// Shapes:  from: channels x h x w of `from_shape` -> to: channels x h x w of `to_shape`, both dense
/// Post:    to(c, y, x) = from(c, y + p.y, X + p.x), or fill outside, with X = x, or to_w - 1 - x if p.flip
inline void cut_image(std::span<const std::uint8_t> from, Shape from_shape, std::span<std::uint8_t> to, Shape to_shape, Placement p,
                      std::uint8_t fill) {
  const Index h = from_shape.h, w = from_shape.w;
  const Index begin = std::clamp<Index>(-p.x, 0, to_shape.w), end = std::clamp<Index>(w - p.x, begin, to_shape.w);
  std::uint8_t* row = to.data();
  for (Index c = 0; c < to_shape.c; ++c)
    for (Index y = p.y; y < p.y + to_shape.h; ++y, row += to_shape.w) {
      const bool inside = 0 <= y && y < h && begin < end;
      if (!inside || begin > 0 || end < to_shape.w) std::fill(row, row + to_shape.w, fill);
      if (inside) std::memcpy(row + begin, from.data() + (c * h + y) * w + p.x + begin, static_cast<std::size_t>(end - begin));
      if (p.flip) std::reverse(row, row + to_shape.w);
    }
}
}   // namespace lrcnn
