#pragma once
// A file that is open for reading, and from which several places are read. Bytes are read with pread, never mapped into memory: where a mapped
// file shrinks, the system ends the program (SIGBUS); here it is an error. POSIX only.
#include <lrcnn/core/file_identity.hpp>
#include <lrcnn/core/types.hpp>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <fcntl.h>
#include <unistd.h>
namespace lrcnn {
/// Closes itself. May be used by several threads.
class OpenFile {
 public:
  /// what: says in messages what kind of file it is: "image" becomes "image 'a.png'" and "an image is one file"
  /// Errors:  DataError if it does not exist, cannot be opened, or is a folder, device or pipe
  explicit OpenFile(std::filesystem::path path, std::string what = "image")   // O_NONBLOCK: a pipe would wait for its writer
      : path_(std::move(path)), what_(std::move(what)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    const std::string a = (std::string_view("aeiou").find(what_.front()) != std::string_view::npos ? "an " : "a ") + what_;
    if (descriptor_ < 0)
      throw DataError(error_text(who() + " cannot be opened: " + std::strerror(errno), a + " is a file that can be read", "check the path"));
    struct stat found {};
    const bool folder = ::fstat(descriptor_, &found) == 0 && S_ISDIR(found.st_mode);
    if (folder || !S_ISREG(found.st_mode)) {
      ::close(descriptor_);
      throw DataError(error_text(who() + (folder ? " is a folder" : " is a device or pipe"), a + " is one file", "give the path of a file"));
    }
    identity_ = identity_of(descriptor_, path_);
  }
  /// Opens a file again. Errors: as above; DataError if it is no longer the same, or something was written to it.
  OpenFile(std::filesystem::path path, const FileIdentity& expected, std::string what = "image") : OpenFile(std::move(path), std::move(what)) {
    if (identity_ != expected) throw file_changed(path_);   // the destructor closes it
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  const std::filesystem::path& path() const { return path_; }
  /// Of the file as it was opened.
  const FileIdentity& identity() const { return identity_; }
  Index size() const { return identity_.size; }
  /// Reads bytes from a place on; throws nothing, so that callbacks of C libraries can use it. Returns how many there were: fewer than asked for
  /// if the file ends there; -1, with errno, if it cannot be read.
  Index read_some(Index begin, std::span<std::byte> bytes) const noexcept {
    std::size_t got = 0;
    while (got < bytes.size()) {
      const auto n = ::pread(descriptor_, bytes.data() + got, bytes.size() - got, static_cast<off_t>(begin) + static_cast<off_t>(got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return -1;
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    return static_cast<Index>(got);
  }
  /// Reads all of the bytes. Errors: DataError if they cannot be read, or the file has become shorter.
  void read(Index begin, std::span<std::byte> bytes) const {
    const Index got = read_some(begin, bytes);
    if (got == static_cast<Index>(bytes.size())) return;
    if (got >= 0) throw file_changed(path_);
    throw DataError(error_text(who() + " cannot be read at byte " + std::to_string(begin) + ": " + std::strerror(errno),
                               "its bytes are read when they are asked for", "check its disk"));
  }
  /// Hands the descriptor to a library that closes it. Nothing may be read through this object afterwards.
  int release() { return std::exchange(descriptor_, -1); }
  /// Errors:  DataError if something was written to the file since it was opened
  void check_unchanged() const {
    if (identity_of(descriptor_, path_) != identity_) throw file_changed(path_);
  }

 private:
  std::string who() const { return what_ + " '" + path_.string() + "'"; }
  std::filesystem::path path_;
  std::string what_;
  int descriptor_;
  FileIdentity identity_{};
};
}   // namespace lrcnn
