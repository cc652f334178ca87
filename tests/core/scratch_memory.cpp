// Memory in a file without a name: what is written stays, nothing is left in the folder, and a folder without room is an error.
#include <lrcnn/core/scratch_memory.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
#include <filesystem>
using namespace lrcnn;
namespace {
Index files_in(const std::filesystem::path& folder) {
  return static_cast<Index>(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
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
