#pragma once
// Photographs in a folder with a folder for each class, as training and test images of one size.
#include "image_data.hpp"
#include <lrcnn/data/image_folder.hpp>
#include <lrcnn/data/jpeg.hpp>
#include <lrcnn/data/png.hpp>
#include <lrcnn/data/tiff.hpp>
#include <array>
#include <iostream>
/// What of them is taken.
struct PhotoOptions {
  lrcnn::Index size = 64;        ///< rows and columns; a photograph's shorter side is resized to it, and the middle is cut out
  lrcnn::Index images = 10000;   ///< to train on, at most; drawn at random. A sixth as many to test
  bool skip_damaged = false;     ///< say which ones cannot be read, and go on without them
  int threads = 0;               ///< that decode; 0: as many as there are processors
};
/// Reads both parts. Errors: as load_image_folder()
inline TrainAndTest load_photographs(const std::string& folder, const PhotoOptions& photos) {
  using namespace lrcnn;
  static constexpr std::array formats{jpeg_format, png_format, tiff_format};
  const auto load = [&](Split split) {
    ImageFolderOptions options{.height = photos.size, .width = photos.size, .threads = photos.threads};
    options.split.most_images = split == Split::train ? photos.images : std::max<Index>(photos.images / 6, 1);
    if (photos.skip_damaged) options.skipped = [](const std::string& error) { std::cout << "Left out: " << error << "\n"; };
    return load_image_folder(folder, split, formats, options);
  };
  return {load(Split::train), load(Split::test)};
}
