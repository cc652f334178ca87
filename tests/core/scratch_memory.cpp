// Memory in a file without a name: what is written stays, nothing is left in the folder, and a folder without room is an error.
#include <lrcnn/core/scratch_memory.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
using namespace lrcnn;
namespace {
Index files_in(const std::filesystem::path& folder) {
  return static_cast<Index>(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}
/// Bytes of files that are in the process's memory; -1: the system does not say.
Index mapped_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssFile:")) return std::stoll(line.substr(8)) * 1024;
  return -1;
}
}   // namespace
TEST_CASE("scratch memory keeps what is written, also while its pages rest, and leaves nothing behind") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "lrcnn-scratch-memory-test";
  std::filesystem::create_directories(folder);
  {
    ScratchMemory memory(10'000'000, "this test", folder.string());
    CHECK(memory.bytes() == 10'000'000);
    CHECK(memory.data()[9'999'999] == std::byte{0});
    for (Index i = 0; i < memory.bytes(); ++i) memory.data()[i] = static_cast<std::byte>(i * 7);
    memory.rest();
    memory.expect(memory.data() + 4097, 5'000'001);
    Index wrong = 0;
    for (Index i = 0; i < memory.bytes(); ++i) wrong += memory.data()[i] != static_cast<std::byte>(i * 7);
    CHECK(wrong == 0);
    CHECK(files_in(folder) == 0);
    ScratchMemory other = std::move(memory);
    CHECK(memory.data() == nullptr);
    CHECK(other.data()[1] == std::byte{7});
    other = ScratchMemory();
    CHECK(other.bytes() == 0);
  }
  std::filesystem::remove_all(folder);
}
TEST_CASE("little of a large file is in the process's memory when few bytes in many places are worked on") {
  const Index before = mapped_bytes();
  if (before < 0) return;
  constexpr Index size = 128_MiB, places = 64, piece = 64_KiB;
  const ScratchMemory memory(size, "this test");
  for (Index begin = 0; begin < size; begin += ScratchMemory::moved_at_once) {
    std::memset(memory.data() + begin, 1, static_cast<std::size_t>(ScratchMemory::moved_at_once));
    memory.rest();
  }
  static_assert(places * piece == ScratchMemory::moved_at_once);
  Index sum = 0, most = 0;
  for (const Index offset : {Index{0}, 1_MiB + 100}) {
    for (Index place = 0; place < places; ++place) {
      const std::byte* const at = memory.data() + place * (size / places) + offset;
      memory.expect(at, piece);
      for (Index i = 0; i < piece; i += 512) sum += static_cast<Index>(at[i]);
    }
    most = std::max(most, mapped_bytes() - before);
    memory.rest();
  }
  CHECK(sum == 2 * places * piece / 512);
  CHECK(most < 2 * ScratchMemory::mapped_at_once);
}
TEST_CASE("a folder that is not there, and one without room, are errors that say so") {
  CHECK_THROWS_WITH_AS(ScratchMemory(4096, "this test", "/nowhere at all"),
                       doctest::Contains("this test needs 4.1 kB (4096 bytes) in a file in '/nowhere at all', and there is no such file: "),
                       MemoryError);
  CHECK_THROWS_WITH_AS(ScratchMemory(Index{1} << 50, "this test", "/var/tmp"), doctest::Contains("set TMPDIR to a folder with room"), MemoryError);
  CHECK(ScratchMemory(0, "this test", "/nowhere at all").data() == nullptr);
}
TEST_CASE("the folder is TMPDIR, or else /var/tmp") {
  const char* const before = std::getenv("TMPDIR");
  const std::string folder = before == nullptr ? "" : before;
  setenv("TMPDIR", "/some/where", 1);
  CHECK(scratch_folder() == "/some/where");
  unsetenv("TMPDIR");
  CHECK(scratch_folder() == "/var/tmp");
  if (before != nullptr) setenv("TMPDIR", folder.c_str(), 1);
}
