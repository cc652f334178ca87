#pragma once
// IDX files, in which MNIST, Fashion-MNIST and their relatives are published.
//
// A header of 32-bit big-endian numbers (magic, count, and for images rows and columns), then one byte a pixel, or
// one a label. A part of a data set is two files, `train-images-idx3-ubyte` and `train-labels-idx1-ubyte` or the same
// with `t10k`, each plain or with .gz.
// Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", section on file formats.
#include <lrcnn/core/checksum.hpp>
#include <lrcnn/data/dataset.hpp>
#include <lrcnn/data/file.hpp>
#include <utility>
namespace lrcnn {
/// What an IDX file of images holds; `pixels` points into the bytes that were parsed.
struct IdxImages {
  Index count = 0;
  Index h = 0;
  Index w = 0;
  std::span<const std::uint8_t> pixels{};   ///< [count,h,w]
};
namespace detail {
constexpr Index big_endian(std::span<const std::uint8_t> bytes, std::size_t at) {
  return (Index{bytes[at]} << 24) | (Index{bytes[at + 1]} << 16) | (Index{bytes[at + 2]} << 8) | Index{bytes[at + 3]};
}
/// Throws unless the bytes begin with a whole header of this kind.
inline void check_idx_header(std::span<const std::uint8_t> bytes, std::string_view who, Index magic, std::size_t size) {
  const std::string kind = magic == 2051 ? "images" : "labels";
  if (bytes.size() < size)
    throw DataError(error_text(std::string(who) + " is cut at byte " + std::to_string(bytes.size()),
                               "the header of an IDX file of " + kind + " takes " + std::to_string(size) + " bytes", "fetch it again"));
  if (const Index found = big_endian(bytes, 0); found != magic)
    throw DataError(error_text(std::string(who) + " begins with the number " + std::to_string(found),
                               "an IDX file of " + kind + " begins with " + std::to_string(magic),
                               found == 2051 || found == 2049 ? "check that images and labels are not exchanged" : "check that it is an IDX file"));
}
/// Throws unless the bytes end where the header says.
inline void check_idx_end(Index found, Index expected, std::string_view who, const std::string& content) {
  if (found == expected) return;
  const std::string rule = "its header says " + content + ", which end at byte " + std::to_string(expected);
  if (found < expected) throw DataError(error_text(std::string(who) + " is cut at byte " + std::to_string(found), rule, "fetch it again"));
  throw DataError(
      error_text(std::string(who) + " goes on to byte " + std::to_string(found), rule, "check that it is the right file, or fetch it again"));
}
inline std::string idx_prefix(Split split) { return split == Split::train ? "train" : "t10k"; }
inline std::string idx_images_name(Split split) { return idx_prefix(split) + "-images-idx3-ubyte"; }
inline std::string idx_labels_name(Split split) { return idx_prefix(split) + "-labels-idx1-ubyte"; }
}   // namespace detail
/// Reads the header of an IDX file of images and verifies that the pixels are all there. `who` names the file.
/// Errors:  DataError if it has another magic number, no images, or is shorter or longer than its header says
inline IdxImages parse_idx_images(std::span<const std::uint8_t> bytes, std::string_view who) {
  detail::check_idx_header(bytes, who, 2051, 16);
  const Index count = detail::big_endian(bytes, 4);
  const Index h = detail::big_endian(bytes, 8), w = detail::big_endian(bytes, 12);
  const std::string content = std::to_string(count) + " images of " + std::to_string(h) + 'x' + std::to_string(w);
  if (count == 0 || h == 0 || w == 0)
    throw DataError(
        error_text(std::string(who) + " says at byte 4 that it has " + content, "a data set has at least one image of one pixel", "fetch it again"));
  const Index pixels = detail::capped_product(count, detail::capped_product(h, w));
  detail::check_idx_end(static_cast<Index>(bytes.size()), 16 + pixels, who, content);
  return {count, h, w, bytes.subspan(16)};
}
/// Reads the header of an IDX file of labels and verifies them. `who` names the file.
/// Returns: the labels, which point into `bytes`
/// Errors:  DataError if it has another magic number, no labels, is shorter or longer than its header says, or has a
///          label outside the classes
inline std::span<const std::uint8_t> parse_idx_labels(std::span<const std::uint8_t> bytes, std::string_view who, Index classes = 10) {
  detail::check_idx_header(bytes, who, 2049, 8);
  const Index count = detail::big_endian(bytes, 4);
  if (count == 0)
    throw DataError(error_text(std::string(who) + " says at byte 4 that it has 0 labels", "a data set has at least one image", "fetch it again"));
  detail::check_idx_end(static_cast<Index>(bytes.size()), 8 + count, who, std::to_string(count) + " labels");
  for (std::size_t i = 8; i < bytes.size(); ++i) detail::check_label(bytes[i], classes, who, " at byte " + std::to_string(i));
  return bytes.subspan(8);
}
/// What IDX files do not say themselves.
struct IdxOptions {
  Index classes = 10;                     ///< ignored if the folder has a file classes.txt, one name a line
  Index limit_bytes = data_limit_bytes;   ///< of each file, unpacked
};
/// Reads a part of a data set from a folder of IDX files, plain or gzip.
/// Shapes:  images [N,1,H,W]
/// Post:    check(result) passes. Class names are those of classes.txt in the folder, or Fashion-MNIST's if the
///          labels are its labels, or none.
/// Errors:  DataError naming the file if one is missing, too large, cut, damaged or of another format, if images and
///          labels differ in number, or if a label lies outside the classes
inline Dataset load_idx(const std::filesystem::path& folder, Split split, const IdxOptions& options = {}) {
  const auto images_path = detail::need_plain_or_gzip(folder, detail::idx_images_name(split));
  const auto labels_path = detail::need_plain_or_gzip(folder, detail::idx_labels_name(split));
  Dataset data;
  data.class_names = lines_if_exists(folder / "classes.txt");
  data.classes = data.class_names.empty() ? options.classes : static_cast<Index>(data.class_names.size());
  const auto label_bytes = read_data_file(labels_path, options.limit_bytes);
  const auto labels = parse_idx_labels(label_bytes, detail::file_text(labels_path), data.classes);
  data.images = read_data_file(images_path, options.limit_bytes);
  const auto images = parse_idx_images(data.images, detail::file_text(images_path));
  if (images.count != static_cast<Index>(labels.size()))
    throw DataError(error_text(detail::file_text(images_path) + " has " + std::to_string(images.count) + " images and " +
                                   detail::file_text(labels_path) + " has " + std::to_string(labels.size()) + " labels",
                               "each image has one label", "fetch both files again from the same place"));
  data.shape = {images.count, 1, images.h, images.w};
  data.images.erase(data.images.begin(), data.images.begin() + 16);
  data.labels.assign(labels.begin(), labels.end());
  // Fashion-MNIST has MNIST's file names, counts and sizes; its labels tell it apart.
  const std::uint32_t sum = crc32c(std::as_bytes(labels));
  const bool fashion = sum == (split == Split::train ? 0x0047f202u : 0xe898e67eu);
  if (fashion && data.class_names.empty())
    data.class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
  data.description = (fashion ? std::string("Fashion-MNIST ") : "IDX files in '" + folder.string() + "', ") + std::string(split_name(split));
  check(data);
  return data;
}
}   // namespace lrcnn
