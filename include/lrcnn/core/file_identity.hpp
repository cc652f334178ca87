#pragma once
// Whether a file is still the one that was opened: readers that come back to a file over a long time compare. POSIX only.
#include <lrcnn/core/error.hpp>
#include <cstdint>
#include <filesystem>
#include <sys/stat.h>
namespace lrcnn {
/// What tells a file from another one of that name, and from itself before something was written to it.
struct FileIdentity {
  std::uint64_t device = 0, number = 0;
  std::int64_t size = 0, seconds = 0, nanoseconds = 0;   ///< bytes; when it was last written
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Of an open file.
/// Errors:  DataError if the descriptor is not one
inline FileIdentity identity_of(int descriptor, const std::filesystem::path& path) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0)
    throw DataError(error_text("file '" + path.string() + "' can no longer be asked for its size", "it was open before", "check its disk"));
  return {static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino), static_cast<std::int64_t>(found.st_size),
          static_cast<std::int64_t>(found.st_mtim.tv_sec), static_cast<std::int64_t>(found.st_mtim.tv_nsec)};
}
/// The error of a file that is no longer the one that was opened.
inline DataError file_changed(const std::filesystem::path& path) {
  return DataError(error_text("file '" + path.string() + "' has changed since it was opened", "a file stays as it is while it is read",
                              "open it again, and let nothing write to it meanwhile"));
}
}   // namespace lrcnn
