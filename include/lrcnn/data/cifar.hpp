#pragma once
// CIFAR-10's binary files.
//
// A file is a run of records of 3073 bytes without a header: a label, then 32 x 32 red, green and blue bytes. A part
// of the data set is one file (`train.bin`, `test.bin`, `test_batch.bin`) or several (`data_batch_1.bin` to
// `_5.bin`), each plain or with .gz. `batches.meta.txt`, if there, names the classes.
// Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009; the data set's web page.
#include <lrcnn/data/dataset.hpp>
#include <lrcnn/data/file.hpp>
namespace lrcnn {
/// Bytes of a record: a label and an image of 3 x 32 x 32.
inline constexpr Index cifar_record_bytes = 1 + 3 * 32 * 32;
/// Appends the records of a CIFAR-10 file to images and labels of `to`, and counts them in its shape.
/// Pre:     to.classes is set. `who` names the file.
/// Errors:  DataError if there is no record, the last one is not whole, or a label lies outside the classes; then
///          `to` is as before
inline void append_cifar(Dataset& to, std::span<const std::uint8_t> bytes, std::string_view who) {
  const Index size = static_cast<Index>(bytes.size());
  const Index records = size / cifar_record_bytes;
  if (size == 0)
    throw DataError(error_text(std::string(who) + " is empty",
                               "a CIFAR-10 file has at least one record of " + std::to_string(cifar_record_bytes) + " bytes", "fetch it again"));
  if (size % cifar_record_bytes != 0)
    throw DataError(error_text(std::string(who) + " ends at byte " + std::to_string(size) + ", " + std::to_string(size % cifar_record_bytes) +
                                   " bytes into record " + std::to_string(records),
                               "CIFAR-10 records of " + std::to_string(cifar_record_bytes) + " bytes, counted from 0, follow each other without gaps",
                               "check that it is a CIFAR-10 binary file, or fetch it again"));
  for (Index r = 0; r < records; ++r) {
    const Index at = r * cifar_record_bytes;
    detail::check_label(item(bytes, at), to.classes, who, " at byte " + std::to_string(at));
  }
  to.shape = {to.shape.n + records, 3, 32, 32};
  to.images.reserve(static_cast<std::size_t>(to.shape.count()));
  to.labels.reserve(static_cast<std::size_t>(to.shape.n));
  for (Index r = 0; r < records; ++r) {
    const auto record = bytes.subspan(static_cast<std::size_t>(r * cifar_record_bytes), cifar_record_bytes);
    to.labels.push_back(record[0]);
    to.images.insert(to.images.end(), record.begin() + 1, record.end());
  }
}
namespace detail {
inline std::string cifar_batch_name(int number) { return "data_batch_" + std::to_string(number) + ".bin"; }
/// The files of a part that are in a folder, in order; empty if none. Errors: DataError if there is a gap.
inline std::vector<std::filesystem::path> cifar_files(const std::filesystem::path& folder, Split split) {
  std::vector<std::filesystem::path> files;
  for (const char* name : {"train.bin", "test.bin", "test_batch.bin"}) {
    if ((name[1] == 'r') != (split == Split::train)) continue;
    if (auto path = plain_or_gzip(folder, name); !path.empty()) return {path};
  }
  if (split == Split::test) return {};
  int last = 5;
  while (last > 0 && plain_or_gzip(folder, cifar_batch_name(last)).empty()) --last;
  for (int number = 1; number <= last; ++number) files.push_back(need_plain_or_gzip(folder, cifar_batch_name(number)));
  return files;
}
}   // namespace detail
/// Reads a part of CIFAR-10 from a folder, plain or gzip. Fewer than the published records are read as they are.
/// Shapes:  images [N,3,32,32]
/// Post:    check(result) passes; the order is that of the files
/// Errors:  DataError naming the file if one is missing, too large, cut, damaged or of another format, if a label
///          lies outside the 10 classes, or if batches.meta.txt does not name 10
inline Dataset load_cifar(const std::filesystem::path& folder, Split split, Index limit_bytes = data_limit_bytes) {
  const auto files = detail::cifar_files(folder, split);
  if (files.empty())
    throw DataError(error_text("folder '" + folder.string() + "' has no " + std::string(split_name(split)) + " images of CIFAR-10",
                               split == Split::train ? "they are in 'train.bin' or 'data_batch_1.bin' and following, plain or with .gz"
                                                     : "they are in 'test.bin' or 'test_batch.bin', plain or with .gz",
                               "check the folder, or fetch the file"));
  Dataset data;
  data.classes = 10;
  for (const auto& path : files) append_cifar(data, read_data_file(path, limit_bytes), detail::file_text(path));
  const auto names_path = folder / "batches.meta.txt";
  data.class_names = lines_if_exists(names_path);
  if (data.class_names.empty()) data.class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  if (data.class_names.size() != 10)
    throw DataError(error_text(detail::file_text(names_path) + " has " + std::to_string(data.class_names.size()) + " lines",
                               "CIFAR-10 has 10 classes, one name a line", "correct the file or remove it"));
  data.description = "CIFAR-10 " + std::string(split_name(split));
  check(data);
  return data;
}
}   // namespace lrcnn
