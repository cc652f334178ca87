#pragma once
// Photographs in a folder with a folder for each class, as a data set of pictures of one size.
//
//     const std::array formats{jpeg_format, png_format, tiff_format};
//     const Dataset train = load_image_folder("flowers", Split::train, formats, {.height = 64, .width = 64});
#include <lrcnn/core/machine.hpp>
#include <lrcnn/core/parallel.hpp>
#include <lrcnn/data/byte_image.hpp>
#include <lrcnn/data/class_folders.hpp>
#include <lrcnn/data/resize.hpp>
#include <functional>
namespace lrcnn {
struct ImageFolderOptions {
  Index height = 64, width = 64;   ///< of all pictures
  Index channels = 3;              ///< 3: red, green and blue; 1: grey. See read_byte_image() for what is converted
  ResizeFit fit = ResizeFit::cover;
  SplitOptions split{};
  /// Told of each picture that cannot be read, which is then left out; from one thread at a time. None: such a picture is an error.
  std::function<void(const std::string& error)> skipped{};
  int threads = 0;                    ///< that decode, each one whole picture at a time; 0: as many as there are processors
  Index most_bytes = 4_GiB;           ///< of the data set
  Index most_picture_bytes = 1_GiB;   ///< of one picture as it is resized, and a tile of its file
};
namespace detail {
/// Names for people, of which there may be many: "a, b, c and 97 more".
inline std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text + (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "");
}
}   // namespace detail
/// Reads one part of a folder of pictures: as find_class_files() finds them, each decoded and resized.
/// Post:    the same whatever the threads are; classes are in the order of torchvision's ImageFolder, and so are the pictures of a class that
///          has no folders within folders; the description names the folder of the classes, a part's own if there is one, and the first ten of them
/// Errors:  DataError as find_class_files(); if the data set would take more than most_bytes, options make no sense, a picture is of none of the
///          formats, damaged, too large or has other channels (unless `skipped` is set), or no picture is left
inline Dataset load_image_folder(const std::filesystem::path& folder, Split split, std::span<const ImageFormat> formats,
                                 const ImageFolderOptions& options = {}) {
  const Index height = options.height, width = options.width, channels = options.channels;
  const int threads = options.threads;
  if (height < 1 || width < 1 || (channels != 1 && channels != 3) || threads < 0)
    throw DataError(error_text("pictures of " + std::to_string(height) + "x" + std::to_string(width) + " pixels and " + std::to_string(channels) +
                                   " channels are to be read by " + std::to_string(threads) + " threads",
                               "a picture has at least one pixel, of 1 or 3 channels, and there are not less than 0 threads",
                               "choose other numbers"));
  const ClassFiles found = find_class_files(folder, split, options.split);
  Dataset data;
  data.shape = {static_cast<Index>(found.files.size()), channels, height, width};
  data.class_names = found.class_names;
  data.classes = static_cast<Index>(found.class_names.size());
  const Index bytes = detail::capped_product(detail::capped_product(data.shape.n, channels), detail::capped_product(height, width));
  if (bytes > options.most_bytes)
    throw DataError(error_text("the " + std::to_string(data.shape.n) + " pictures of folder '" + folder.string() + "' take " + std::to_string(bytes) +
                                   " bytes at " + std::to_string(height) + "x" + std::to_string(width),
                               "a data set in memory takes at most " + std::to_string(options.most_bytes),
                               "take smaller or fewer pictures, or allow more"));
  data.images.resize(static_cast<std::size_t>(bytes));
  const Index image_bytes = data.image_bytes();
  std::vector<char> taken(found.files.size());
  std::atomic<Index> with_alpha = 0;
  std::mutex telling;
  const Index most_picture = std::min<Index>(options.most_picture_bytes, std::numeric_limits<int>::max());   // what can be resized
  const auto read = [&](std::size_t i, std::vector<std::uint8_t>& resized) {
    const ByteImage picture = read_byte_image(*open_image(found.files[i].path, formats), channels, most_picture);
    resize_image(picture.pixels, picture.size, resized, {height, width}, channels, options.fit);
    std::uint8_t* to = data.images.data() + static_cast<Index>(i) * image_bytes;
    for (Index c = 0; c < channels; ++c)
      for (Index p = 0; p < height * width; ++p) *to++ = item(resized, p * channels + c);
    with_alpha += picture.had_alpha;
    taken[i] = 1;
  };
  on_threads(found.files.size(), threads > 0 ? threads : processor_count(), [&] {
    return [&, resized = std::vector<std::uint8_t>(static_cast<std::size_t>(image_bytes))](std::size_t i) mutable {
      if (!options.skipped) return read(i, resized);
      try {
        read(i, resized);
      } catch (const DataError& error) {
        const std::lock_guard lock(telling);
        options.skipped(error.what());
      }
    };
  });
  Index count = 0;   // those that are left move together
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) continue;
    const auto from = data.images.begin() + static_cast<Index>(i) * image_bytes;
    if (count < static_cast<Index>(i)) std::copy(from, from + image_bytes, data.images.begin() + count * image_bytes);
    data.labels.push_back(found.files[i].label);
    ++count;
  }
  if (count == 0)
    throw DataError(
        error_text("no picture of folder '" + folder.string() + "' can be read", "a data set has at least one", "see what was said of each of them"));
  data.shape.n = count;
  data.images.resize(static_cast<std::size_t>(count * image_bytes));
  data.description = "'" + found.folder.string() + "', " + std::string(split_name(split)) + ", classes " + detail::first_names(data.class_names);
  if (const Index left_out = static_cast<Index>(taken.size()) - count; left_out > 0)
    data.description += ", without " + std::to_string(left_out) + " that cannot be read";
  if (with_alpha > 0) data.description += ", without alpha of " + std::to_string(with_alpha);
  return data;
}
}   // namespace lrcnn
