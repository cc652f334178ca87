#pragma once
// A labelled set of images in memory, as bytes.
//
// One byte a pixel and channel is how these sets are published and a quarter of what they take as floats; the numbers
// that a network reads are made row by row, when a slab needs them (data/batch.hpp).
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/shape/shape.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace lrcnn {
/// Which part of a data set.
enum class Split : std::uint8_t { train, test };
constexpr std::string_view split_name(Split split) { return split == Split::train ? "training" : "test"; }
/// Images of one size with a label each.
struct Dataset {
  std::string description{};            ///< what it is and where it comes from, for people
  Shape shape{0, 1, 1, 1};              ///< [N,C,H,W]
  std::vector<std::uint8_t> images{};   ///< dense NCHW
  std::vector<std::int32_t> labels{};   ///< N, each in [0, classes)
  Index classes = 0;
  std::vector<std::string> class_names{};   ///< one per class, or none at all
  Index size() const { return shape.n; }
  Index image_bytes() const { return shape.c * shape.h * shape.w; }
  std::span<const std::uint8_t> image(Index i) const {
    return std::span(images).subspan(static_cast<std::size_t>(i * image_bytes()), static_cast<std::size_t>(image_bytes()));
  }
  /// Name of a class, or its number where there are no names. Pre: 0 <= c < classes.
  std::string class_name(Index c) const { return class_names.empty() ? std::to_string(c) : item(class_names, c); }
  friend bool operator==(const Dataset&, const Dataset&) = default;
};
namespace detail {
/// a * b, or a number larger than any file if that is larger. Pre: a, b >= 0.
constexpr Index capped_product(Index a, Index b) {
  constexpr Index cap = Index{1} << 62;
  return b != 0 && a > cap / b ? cap : a * b;
}
/// Throws unless a label lies within the classes. `who` names what holds it, `place` where.
inline void check_label(Index label, Index classes, std::string_view who, std::string_view place) {
  if (0 <= label && label < classes) return;
  throw DataError(error_text(std::string(who) + " has label " + std::to_string(label) + std::string(place),
                             "labels of " + std::to_string(classes) + " classes are 0 to " + std::to_string(classes - 1),
                             "check the file, or raise the number of classes"));
}
}   // namespace detail
/// Verifies that a data set holds together: at least one image, sizes that agree, labels within the classes.
/// Errors:  DataError that names the data set by its description and the first thing that is wrong
/// Cost:    one pass over the labels
inline void check(const Dataset& data) {
  const std::string who = "data set '" + data.description + '\'';
  const Shape& s = data.shape;
  if (s.n < 1) throw DataError(error_text(who + " has no images", "a data set has at least one", "check where it comes from"));
  if (s.c < 1 || s.h < 1 || s.w < 1)
    throw DataError(error_text(who + " has images of " + std::to_string(s.c) + 'x' + std::to_string(s.h) + 'x' + std::to_string(s.w),
                               "channels, rows and columns are at least 1", "check its shape"));
  const Index bytes = detail::capped_product(detail::capped_product(s.n, s.c), detail::capped_product(s.h, s.w));
  if (static_cast<Index>(data.images.size()) != bytes)
    throw DataError(error_text(who + " has " + std::to_string(data.images.size()) + " bytes of images",
                               "its shape " + to_string(s) + " takes " + std::to_string(bytes), "make images and shape agree"));
  if (static_cast<Index>(data.labels.size()) != s.n)
    throw DataError(error_text(who + " has " + std::to_string(s.n) + " images and " + std::to_string(data.labels.size()) + " labels",
                               "each image has one label", "check that both come from the same part"));
  if (data.classes < 1)
    throw DataError(error_text(who + " has " + std::to_string(data.classes) + " classes", "there is at least one", "set the number of classes"));
  for (std::size_t i = 0; i < data.labels.size(); ++i) detail::check_label(data.labels[i], data.classes, who, " at image " + std::to_string(i));
  if (!data.class_names.empty() && static_cast<Index>(data.class_names.size()) != data.classes)
    throw DataError(error_text(who + " has " + std::to_string(data.class_names.size()) + " class names",
                               "there are " + std::to_string(data.classes) + " classes", "name all of them or none"));
}
/// The images [r.begin, r.end) of a data set as one of their own.
/// Errors:  DataError if r is empty or reaches beyond the images
inline Dataset subset(const Dataset& data, Range r) {
  if (r.empty() || !Range{0, data.size()}.contains(r))
    throw DataError(error_text(first_to_last("images", r) + " of data set '" + data.description + '\'',
                               "it has " + std::to_string(data.size()) + ", and a part of it has at least one", "choose a range within them"));
  Dataset part;
  part.description = data.description + " (" + first_to_last("images", r) + ')';
  part.shape = data.shape;
  part.shape.n = r.size();
  const auto image = data.images.begin();
  part.images.assign(image + r.begin * data.image_bytes(), image + r.end * data.image_bytes());
  part.labels.assign(data.labels.begin() + r.begin, data.labels.begin() + r.end);
  part.classes = data.classes;
  part.class_names = data.class_names;
  return part;
}
/// "Fashion-MNIST training: 60000 images 1x28x28, 10 classes"
inline std::string to_string(const Dataset& data) {
  const Shape& s = data.shape;
  return data.description + ": " + std::to_string(s.n) + " images " + std::to_string(s.c) + 'x' + std::to_string(s.h) + 'x' + std::to_string(s.w) +
         ", " + std::to_string(data.classes) + " classes";
}
}   // namespace lrcnn
