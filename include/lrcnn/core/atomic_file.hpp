#pragma once
// Files that are the old one or the new one, never half of each.
//
// The bytes go to a temporary file in the same folder and reach the disk before the file takes the wanted name, which
// file systems do in one go. Whatever happens on the way (a full disk, a crash, a second writer), a reader finds
// either what was there before or everything that was to be written. POSIX only.
#include <lrcnn/core/error.hpp>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
namespace lrcnn {
namespace detail {
/// The error of a file that cannot be written, with the remedy that fits errno's value.
inline DataError cannot_write(const std::filesystem::path& path, int reason) {
  std::string_view change = "check the folder, or choose another path";
  switch (reason) {
    case ENOENT:
    case ENOTDIR: change = "create its folder, or choose another path"; break;
    case EISDIR: change = "choose the name of a file"; break;
    case EACCES:
    case EPERM:
    case EROFS: change = "allow writing to it and its folder, or choose another path"; break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: change = "make room, or choose a path on another disk"; break;
    default: break;
  }
  return DataError(error_text("file '" + path.string() + "' cannot be written: " + std::strerror(reason),
                              "a new file is written beside it and then takes its name; what was there is kept", change));
}
/// A file that is removed again unless it was renamed.
class TemporaryFile {
 public:
  /// Creates "<target>.tmp-<process>-<number>" with the access rights of the target, if there is one.
  explicit TemporaryFile(const std::filesystem::path& target) {
    static std::atomic<unsigned> number{0};
    do {
      name_ = target.string() + ".tmp-" + std::to_string(::getpid()) + '-' + std::to_string(number++);
      descriptor_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && (errno == EEXIST || errno == EINTR));
    created_ = descriptor_ >= 0;
    if (!created_) return;
    struct stat old {};
    if (::stat(target.c_str(), &old) == 0) static_cast<void>(::fchmod(descriptor_, old.st_mode & 07777));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (created_ && !renamed_) ::unlink(name_.c_str());
  }
  bool created() const { return created_; }
  int descriptor() const { return descriptor_; }
  /// The following return false and leave the reason in errno.
  bool write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
  }
  /// Waits until the bytes are on the disk, and closes.
  bool finish() {
    if (::fsync(descriptor_) != 0 && errno != EINVAL) return false;
    const int closing = descriptor_;
    descriptor_ = -1;
    return ::close(closing) == 0;
  }
  bool rename(const std::filesystem::path& target) {
    renamed_ = ::rename(name_.c_str(), target.c_str()) == 0;
    return renamed_;
  }
 private:
  std::string name_;
  int descriptor_ = -1;
  bool created_ = false;
  bool renamed_ = false;
};
/// Keeps other programs that use one, too, from changing a folder's files meanwhile. Without effect where the file system has no locks.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder)
      : descriptor_(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ >= 0)
      while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
      }
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  int descriptor_;
};
/// Makes a rename last through a power cut, where the file system can.
inline void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  static_cast<void>(::fsync(descriptor));
  ::close(descriptor);
}
/// The file that writing to a path replaces: what a symbolic link points to, be it there or not. Throws if it is none that may be replaced.
inline std::filesystem::path write_target(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path target = path;
  for (int links = 0; std::filesystem::is_symlink(target, error); ++links) {
    if (links == 40) throw cannot_write(path, ELOOP);   // as many as Linux follows
    const auto next = std::filesystem::read_symlink(target, error);
    if (error) throw cannot_write(path, error.value());
    target = target.parent_path() / next;   // an absolute one takes the place of all
  }
  const auto status = std::filesystem::status(target, error);
  if (std::filesystem::is_directory(status) || !target.has_filename()) throw cannot_write(path, EISDIR);
  if (std::filesystem::exists(status)) {
    if (!std::filesystem::is_regular_file(status)) throw cannot_write(path, EINVAL);
    if (::access(target.c_str(), W_OK) != 0) throw cannot_write(path, errno);
  }
  return target;
}
}   // namespace detail
/// A file that is written in pieces and replaces the one of that name, if any, in one go when it is whole. Until finish() returns, and if
/// it is never called, what was there stays, and the pieces are removed again.
class AtomicFile {
 public:
  /// Begins a file beside the one of that name. Access rights of a file that is there are kept, a symbolic link is followed.
  /// Errors:  DataError with path and reason if no file can be written there
  explicit AtomicFile(const std::filesystem::path& path) : path_(path), target_(detail::write_target(path)), file_(target_) {
    if (!file_.created()) throw detail::cannot_write(path_, errno);
  }
  /// Writes bytes behind those that are written. Errors: DataError with path and reason.
  void write(std::span<const std::byte> bytes) {
    if (!file_.write(bytes)) throw detail::cannot_write(path_, errno);
  }
  /// Of the new file, for libraries that write in places of their own choice and read what they wrote. It stays this object's: duplicate it for
  /// those that close theirs, and close theirs before finish().
  int descriptor() const { return file_.descriptor(); }
  /// Waits until all bytes are on the disk and gives the file its name. Nothing may be written afterwards.
  /// Errors:  DataError with path and reason; then the file of that name is as it was before
  void finish() {
    if (!file_.finish() || !file_.rename(target_)) throw detail::cannot_write(path_, errno);
    detail::flush_folder(target_.parent_path());
  }

 private:
  std::filesystem::path path_, target_;   // as it was asked for, and where symbolic links lead
  detail::TemporaryFile file_;
};
/// Writes a file that replaces the one of that name, if any, in one go.
/// Post:    the file holds exactly `bytes` and is on the disk; access rights of a file that was there are kept, a
///          symbolic link is followed
/// Errors:  DataError with path and reason; then the file is as it was before and nothing is left beside it
/// Cost:    one write and one flush to the disk
inline void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.finish();
}
/// Finds out whether a file of that name could be written now, before the work that makes its contents.
/// Post:    nothing has changed
/// Errors:  as write_file_atomically
inline void check_writable(const std::filesystem::path& path) { const AtomicFile file(path); }
}   // namespace lrcnn
