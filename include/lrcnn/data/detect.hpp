#pragma once
// A data set from a folder, whichever of the known formats is in it.
#include <lrcnn/data/cifar.hpp>
#include <lrcnn/data/idx.hpp>
namespace lrcnn {
namespace detail {
inline bool has_idx(const std::filesystem::path& folder) {
  for (const Split split : {Split::train, Split::test})
    for (const auto& name : {idx_images_name(split), idx_labels_name(split)})
      if (!plain_or_gzip(folder, name).empty()) return true;
  return false;
}
inline bool has_cifar(const std::filesystem::path& folder) {
  return !cifar_files(folder, Split::train).empty() || !cifar_files(folder, Split::test).empty();
}
}   // namespace detail
/// Whether a folder has files of a data set that load_dataset() reads.
inline bool has_dataset(const std::filesystem::path& folder) { return detail::has_idx(folder) || detail::has_cifar(folder); }
/// Reads a part of the data set in a folder: IDX files or CIFAR-10 binary files, plain or gzip.
/// Post:    equals load_idx or load_cifar, whichever fits; IDX if both do
/// Errors:  DataError if the folder does not exist, cannot be read or has neither, saying what was looked for; else as those two
inline Dataset load_dataset(const std::filesystem::path& folder, Split split) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw DataError(error_text("folder '" + folder.string() + "' " + (std::filesystem::exists(folder, error) ? "is not a folder" : "does not exist"),
                               "a data set is a folder of files", "check the path"));
  if (std::filesystem::directory_iterator(folder, error); error)
    throw DataError(error_text("folder '" + folder.string() + "' cannot be read: " + error.message(),
                               "a data set is a folder of files that this program may read", "change the folder's permissions"));
  if (detail::has_idx(folder)) return load_idx(folder, split);
  if (detail::has_cifar(folder)) return load_cifar(folder, split);
  throw DataError(error_text("folder '" + folder.string() + "' has no data set that lrcnn knows",
                             "looked for '" + detail::idx_images_name(Split::train) + "', '" + detail::idx_labels_name(Split::train) +
                                 "' and the same with t10k (IDX: MNIST, "
                                 "Fashion-MNIST), for 'train.bin', 'test.bin', 'data_batch_1.bin' to "
                                 "'data_batch_5.bin' and 'test_batch.bin' (CIFAR-10), each plain or with .gz; a folder of pictures for each class is "
                                 "another kind, which load_image_folder() reads",
                             "name the folder that holds the files themselves"));
}
}   // namespace lrcnn
