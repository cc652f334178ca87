#pragma once
// Memory in a file that has no name: larger than what the machine has, as long as there is room on the disk.
//
// The file lies in the folder that the variable TMPDIR names, or else in /var/tmp, which systems keep on a disk, and goes when the program ends,
// however it ends. Its bytes have addresses, which nothing can be read from: read() and write() copy them. So no page of the file is part of the
// process's memory; the system keeps pages as long as it has memory to spare, and writes them to the disk otherwise. A folder in memory (tmpfs)
// serves, too, and saves none.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#if defined(__unix__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>
#endif
namespace lrcnn {
/// The folder of such files: TMPDIR, or else /var/tmp.
inline std::string scratch_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/var/tmp";
}
/// Owned; its bytes are zero at first.
class ScratchMemory {
 public:
  ScratchMemory() = default;
  /// Room on the disk is taken at once, so that a program does not find out later that there is none.
  /// Errors:  MemoryError naming `who`, the bytes and the folder, if the folder cannot be written or the disk has too little room
  ScratchMemory(Index bytes, const std::string& who, const std::string& folder = scratch_folder()) {
    if (bytes == 0) return;
#if defined(__unix__)
    const int file = open_unnamed(folder);
    const int fault = file < 0 ? errno : posix_fallocate(file, 0, static_cast<off_t>(bytes));
    void* addresses = MAP_FAILED;
    if (fault == 0) addresses = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (addresses == MAP_FAILED) {
      const int why = fault != 0 ? fault : errno;
      if (file >= 0) close(file);
      throw refused(bytes, who, folder, std::strerror(why));
    }
    data_ = static_cast<std::byte*>(addresses), bytes_ = bytes, file_ = file, folder_ = folder;
#else
    throw refused(bytes, who, folder, "this system has no files without a name that the library knows");
#endif
  }
  ScratchMemory(ScratchMemory&& other) noexcept { *this = std::move(other); }
  ScratchMemory& operator=(ScratchMemory&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_), std::swap(file_, other.file_), std::swap(folder_, other.folder_);
    return *this;
  }
  ~ScratchMemory() {
#if defined(__unix__)
    if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_)), close(file_);
#endif
  }
  /// The address of the first byte, for read() and write() alone.
  std::byte* data() const { return data_; }
  Index bytes() const { return bytes_; }
  /// Copies bytes from the file to memory, or from memory to the file. Pre: what is in the file lies within bytes().
  /// Errors:  MemoryError, with what the system says, if the disk fails
  void read(void* to, const void* from, Index bytes) const {
#if defined(__unix__)
    copy("read", static_cast<const std::byte*>(from), bytes,
         [&](Index done, std::size_t rest, off_t at) { return pread(file_, static_cast<std::byte*>(to) + done, rest, at); });
#endif
  }
  void write(void* to, const void* from, Index bytes) const {
#if defined(__unix__)
    copy("written", static_cast<const std::byte*>(to), bytes,
         [&](Index done, std::size_t rest, off_t at) { return pwrite(file_, static_cast<const std::byte*>(from) + done, rest, at); });
#endif
  }

 private:
  std::byte* data_ = nullptr;
  Index bytes_ = 0;
  int file_ = -1;
  std::string folder_{};   ///< for errors
  static MemoryError refused(Index bytes, const std::string& who, const std::string& folder, const char* why) {
    std::string room;
#if defined(__unix__)
    if (struct statvfs disk{}; statvfs(folder.c_str(), &disk) == 0)
      room = ", where " + format_bytes(static_cast<Index>(disk.f_bavail) * static_cast<Index>(disk.f_frsize)) + " are free";
#endif
    return MemoryError(error_text(who + " needs " + format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes) in a file in '" + folder + "'" +
                                      room + ", and there is no such file: " + why,
                                  "offloaded tensors lie in a file, whose room is taken before the first step",
                                  "set TMPDIR to a folder with room, or use OffloadInput in fewer sections"));
  }
#if defined(__unix__)
  /// some(done, rest, at): copies some of the rest, from place `at` of the file on, and returns how many bytes these are; below 0: none, for errno.
  template <class Some>
  void copy(const char* verb, const std::byte* first, Index bytes, const Some& some) const {
    for (Index done = 0; done < bytes;) {
      const auto count = some(done, static_cast<std::size_t>(bytes - done), static_cast<off_t>(first - data_ + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0)
        throw MemoryError(
            error_text("offloaded rows cannot be " + std::string(verb) + ": " + (count < 0 ? std::strerror(errno) : "the file has ended"),
                       "they lie in a file in '" + folder_ + "'", "set TMPDIR to a folder on a disk that works"));
      done += static_cast<Index>(count);
    }
  }
  static int open_unnamed(const std::string& folder) {
#if defined(O_TMPFILE)
    if (const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
      return file;
#endif
    std::string name = folder + "/lrcnn-XXXXXX";   // where the system has no files without a name
    const int file = mkstemp(name.data());
    if (file >= 0) unlink(name.c_str()), static_cast<void>(fcntl(file, F_SETFD, FD_CLOEXEC));
    return file;
  }
#endif
};
}   // namespace lrcnn
