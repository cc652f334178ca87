#pragma once
// A file whose bytes are read from several places, and which must stay as it is meanwhile.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <lrcnn/data/file_identity.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <fcntl.h>
#include <unistd.h>
namespace lrcnn {
/// A file that is open for reading. It is never mapped into memory: a mapped file that shrinks ends the program. POSIX only.
class UnchangingFile {
 public:
  /// who: names the file in messages
  /// Errors:  DataError if it is missing, a folder or a device, or may not be read
  UnchangingFile(std::filesystem::path path, std::string who) : path_(std::move(path)), who_(std::move(who)) {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);   // a pipe would wait for its writer
    if (descriptor_ < 0) fail(std::strerror(errno), "check the path and its permissions");
    struct stat found {};
    const bool known = ::fstat(descriptor_, &found) == 0;
    if (known && S_ISREG(found.st_mode)) {
      opened_ = identity_of(descriptor_, path_);
      return;
    }
    ::close(descriptor_);
    fail(known && S_ISDIR(found.st_mode) ? "it is a folder" : "it is a device or pipe", "give the path of a file");
  }
  UnchangingFile(const UnchangingFile&) = delete;
  UnchangingFile& operator=(const UnchangingFile&) = delete;
  ~UnchangingFile() { ::close(descriptor_); }
  Index size() const { return opened_.size; }
  const FileIdentity& identity() const { return opened_; }
  /// Fills `bytes` with those from byte `begin` on. Errors: DataError if the file was written to since it was opened, or cannot be read.
  void read(Index begin, std::span<std::byte> bytes) const { read(begin, bytes, opened_); }
  /// The same, if the file is still the one that had this identity.
  void read(Index begin, std::span<std::byte> bytes, const FileIdentity& identity) const {
    while (!bytes.empty()) {
      const auto got = ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(begin));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(std::strerror(errno), "check the disk");
      if (got == 0) break;
      bytes = bytes.subspan(static_cast<std::size_t>(got)), begin += got;
    }
    if (!bytes.empty() || identity_of(descriptor_, path_) != identity)
      fail("it was changed while it was read", "read it again when whoever writes it is done");
  }

 private:
  [[noreturn]] void fail(std::string_view reason, std::string_view change) const {
    throw DataError(error_text(who_ + " cannot be read: " + std::string(reason), "it has to be a file that stays as it is", change));
  }
  std::filesystem::path path_;
  std::string who_;
  int descriptor_ = -1;
  FileIdentity opened_{};
};
}   // namespace lrcnn
