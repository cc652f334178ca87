#pragma once
// Memory in a file that has no name: larger than what the machine has, as long as there is room on the disk.
//
// The file lies in the folder that the variable TMPDIR names, or else in /var/tmp, which systems keep on a disk, and goes when the program ends,
// however it ends. It is mapped, so it is read and written as memory is; the system writes pages to the disk when memory gets scarce, and not
// before. A folder in memory (tmpfs) serves, too, and saves none.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <cerrno>
#include <cstdint>
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
/// Owned, aligned to a page; its bytes are zero at first.
class ScratchMemory {
 public:
  static constexpr Index moved_at_once = 4_MiB;    ///< bytes that should be worked on before rest() is called
  static constexpr Index mapped_at_once = 8_MiB;   ///< bytes of the process's memory that this comes to: the system maps some pages around them
  ScratchMemory() = default;
  /// Room on the disk is taken at once, so that a program does not find out later that there is none.
  /// Errors:  MemoryError naming `who`, the bytes and the folder, if the folder cannot be written or the disk has too little room
  ScratchMemory(Index bytes, const std::string& who, const std::string& folder = scratch_folder()) {
    if (bytes == 0) return;
#if defined(__unix__)
    const int file = open_unnamed(folder);
    const int fault = file < 0 ? errno : posix_fallocate(file, 0, static_cast<off_t>(bytes));
    void* const memory = fault == 0 ? mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    const int why = fault != 0 ? fault : errno;
    if (file >= 0) close(file);   // the mapping keeps it
    if (memory == MAP_FAILED) throw refused(bytes, who, folder, std::strerror(why));
    data_ = static_cast<std::byte*>(memory), bytes_ = bytes;
    static_cast<void>(madvise(data_, static_cast<std::size_t>(bytes_), MADV_RANDOM));   // or large pieces of the file become the process's memory
#else
    throw refused(bytes, who, folder, "this system has no mapped files that the library knows");
#endif
  }
  ScratchMemory(ScratchMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ScratchMemory& operator=(ScratchMemory&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ScratchMemory() {
#if defined(__unix__)
    if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
#endif
  }
  std::byte* data() const { return data_; }
  Index bytes() const { return bytes_; }
  /// Has the system read bytes from the disk, if they are there, before they are asked for. Pre: they are part of the memory.
  void expect(const void* begin, Index bytes) const {
#if defined(__unix__)
    const auto address = reinterpret_cast<std::uintptr_t>(begin), page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = address / page * page;
    static_cast<void>(madvise(reinterpret_cast<void*>(first), address + static_cast<std::uintptr_t>(bytes) - first, MADV_WILLNEED));
#endif
  }
  /// Takes the pages out of the process's memory. What they hold stays in the file, or on its way there.
  void rest() const {
#if defined(__unix__)
    if (data_ != nullptr) static_cast<void>(madvise(data_, static_cast<std::size_t>(bytes_), MADV_DONTNEED));
#endif
  }

 private:
  std::byte* data_ = nullptr;
  Index bytes_ = 0;
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
