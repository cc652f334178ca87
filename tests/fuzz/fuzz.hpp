#pragma once
// How a reader of files is fuzzed. A target is one file, tests/fuzz/<name>.cpp, which includes this header and defines two functions:
//
//     void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) { ... }   // small, sound files to begin with, one for each kind
//     void lrcnn::fuzz::read(std::span<const std::uint8_t> bytes) { ... }           // reads the bytes as such a file
//
// That is all: CMake picks the file up, links what its #include lines ask for, and makes the test fuzz.<name>; `scripts/fuzz <name>` runs it
// for ten minutes. `read` may throw an lrcnn::Error, whose text has the three parts of every message; anything else that it throws, a fault
// that a sanitizer sees, more than 30 seconds for an input or more than 2 GB of memory are failures. So readers get small limits here
// (bytes of a tile, tiles to decode). Files of the corpus are generated, or cut from real ones in LRCNN_DATA; none of them is in the repository.
#include <lrcnn/core/error.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <sys/mman.h>
#include <unistd.h>
namespace lrcnn::fuzz {
void write_corpus(const std::filesystem::path& folder);
void read(std::span<const std::uint8_t> bytes);
/// For a target's write_corpus().
inline void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw DataError("corpus file '" + path.string() + "' cannot be written");
}
/// A file of the real data, or nothing where there are none. `most`: its first bytes.
inline std::vector<std::uint8_t> real_file(const std::filesystem::path& name, std::size_t most = SIZE_MAX) {
  const char* const data = std::getenv("LRCNN_DATA");
  std::vector<std::uint8_t> bytes;
  if (!data) return bytes;
  std::ifstream in(std::filesystem::path(data) / name, std::ios::binary | std::ios::ate);
  if (!in) return bytes;
  bytes.resize(std::min(static_cast<std::size_t>(in.tellg()), most));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}
/// Bytes as a file with a path, in memory, for readers that take paths.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<::ssize_t>(bytes.size())) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};
/// Whether a message has the form "lrcnn: <what>; <rule>; <what to change>".
inline bool has_three_parts(std::string_view text) {
  const auto first = text.find("; ");
  return text.starts_with("lrcnn: ") && first != text.npos && text.find("; ", first + 2) != text.npos;
}
/// Runs something that may throw an Error with the three parts of a message; for targets that go on after one.
template <class F>
void allow_errors(F f) {
  try {
    f();
  } catch (const Error& error) {
    if (has_three_parts(error.what())) return;
    std::fprintf(stderr, "an error without the three parts of a message: %s\n", error.what());
    std::abort();
  }
}
}   // namespace lrcnn::fuzz
extern "C" {
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
}
/// With --write-corpus=FOLDER the program writes its corpus and ends.
int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--write-corpus=";
  if (*argc < 2 || !std::string_view((*argv)[1]).starts_with(option)) return 0;
  std::filesystem::create_directories((*argv)[1] + option.size());
  lrcnn::fuzz::write_corpus((*argv)[1] + option.size());
  std::exit(0);
}
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrcnn::fuzz::allow_errors([&] { lrcnn::fuzz::read({data, size}); });
  return 0;
}
