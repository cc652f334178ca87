#pragma once
// Masks in image files as classes: what their values stand for, whether a mask fits its image.
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/samples.hpp>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
namespace lrcnn {
/// The class of each value that masks store. If there is neither a table nor a function, values of 32 bits are classes themselves.
struct MaskClasses {
  /// Classes of single values: {{0, 0}, {255, 1}}.
  std::map<std::int64_t, std::int32_t> table{};
  /// The class of values that have no other: one that a loss ignores, as a rule. None: such a value is an error.
  std::optional<std::int32_t> others{};
  /// Classes of values that the table does not have, as in [](std::int64_t v) { return v / 1000; }; nothing: the value has none. It depends on the
  /// value alone. Several threads may call it at once.
  std::function<std::optional<std::int32_t>(std::int64_t)> function{};
  /// The class of a value, if it has one.
  std::optional<std::int32_t> of(std::int64_t value) const {
    if (const auto at = table.find(value); at != table.end()) return at->second;
    if (function) {
      if (const auto found = function(value)) return found;
    } else if (table.empty() && value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
      return static_cast<std::int32_t>(value);
    }
    return others;
  }
};
/// Errors:  DataError if a mask has another size than its image
inline void check_mask_size(const ImageInfo& mask, const ImageInfo& image) {
  if (mask.height == image.height && mask.width == image.width) return;
  const auto size = [](const ImageInfo& i) {
    return "'" + i.path.string() + "' has " + std::to_string(i.height) + " rows and " + std::to_string(i.width) + " columns";
  };
  throw DataError(error_text("mask " + size(mask) + ", and its image " + size(image), "a mask has a label for each pixel of its image",
                             "give the image's own mask, or scale it to the image's size without blending labels"));
}
/// `read`: how many channels of a mask are read as classes; `option` chooses them.
/// Errors:  DataError if it is not one
inline void check_mask_channels(const ImageInfo& mask, Index read, const std::string& option) {
  if (read == 1) return;
  throw DataError(error_text("mask '" + mask.path.string() + "' has " + std::to_string(mask.channels) + " channels of " +
                                 std::string(sample_name(mask.sample)) + " (" + mask.format + "), and " + std::to_string(read) +
                                 " of them are to be read",
                             "a class is one number for each pixel",
                             "choose one channel (" + option +
                                 "), open a PNG with a palette as indices (PngOptions::palette), or store the classes "
                                 "in a file of one channel"));
}
/// A mask whose pixels are classes. It refers to what it is made of.
struct ClassMask {
  const CachedImage& image;
  const MaskClasses& classes;
  Index channel = 0;   ///< of the file
  /// Calls f(y, x, class) for each pixel of a region, each once.
  /// Pre:     samples are integers, and the channel is there
  /// Errors:  as CachedImage::for_each_tile(); DataError if a value has no class: it names file, row, column and value; what MaskClasses::function
  ///          and f throw
  template <class F>
  void for_each(const ImageRegion& region, F f) const {
    for_each(
        region, [](Index, Index) { return true; }, f);
  }
  /// As above, but a value that has no class is an error only where counts(y, x) says so; elsewhere the pixel is left out.
  template <class Counts, class F>
  void for_each(const ImageRegion& region, Counts counts, F f) const {
    const Index step = image.info().pixel_bytes();
    image.for_each_tile(region, [&](const ImageRegion& part, const std::byte* pixels, Index stride) {
      with_sample_type(image.info().sample, [&]<class S>(const S*) {
        if constexpr (std::is_integral_v<S>) {
          std::optional<S> last;   // neighbours are of one class mostly
          std::optional<std::int32_t> label;
          for (Index y = part.rows.begin; y < part.rows.end; ++y, pixels += stride)
            for (Index x = part.columns.begin; x < part.columns.end; ++x) {
              S sample;
              std::memcpy(&sample, pixels + (x - part.columns.begin) * step + channel * Index{sizeof(S)}, sizeof(S));
              if (!last || *last != sample) label = classes.of(sample), last = sample;
              if (label) f(y, x, *label);
              else if (counts(y, x)) refuse(sample, y, x);
            }
        }
      });
    });
  }

 private:
  [[noreturn]] void refuse(std::int64_t value, Index row, Index column) const {
    std::string known;
    for (const auto& [of_table, label] : classes.table) known += (known.empty() ? "" : ", ") + std::to_string(of_table);
    throw DataError(error_text("mask '" + image.info().path.string() + "' has the value " + std::to_string(value) + " in row " + std::to_string(row) +
                                   ", column " + std::to_string(column),
                               classes.function ? "MaskClasses::function gives it no class"
                               : known.empty()  ? "classes are numbers of 32 bits"
                                                : "the table of classes has " + known,
                               "correct the mask, add the value to the table, or give MaskClasses::others a class that the loss ignores"));
  }
};
}   // namespace lrcnn
