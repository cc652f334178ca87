// Memory in a file without a name: what is written stays, nothing is left in the folder, and a folder without room is an error.
#include "exec/resident.hpp"
#include <lrcnn/core/scratch_memory.hpp>
#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Index files_in(const std::filesystem::path& folder) {
  return static_cast<Index>(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}
}   // namespace
TEST_CASE("scratch memory keeps what is written, takes none of the process's memory, and leaves nothing behind") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "lrcnn-scratch-memory-test";
  std::filesystem::create_directories(folder);
  {
    const Index before = status_bytes("RssFile");
    ScratchMemory memory(64'000'000, "this test", folder.string());
    CHECK(memory.bytes() == 64'000'000);
    std::vector<std::byte> written(1'000'003), back(written.size());
    for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<std::byte>(i * 7 + 1);
    const auto size = static_cast<Index>(written.size());
    memory.read(back.data(), memory.data() + 5, size);
    CHECK(std::count(back.begin(), back.end(), std::byte{0}) == size);
    for (Index i = 0; i < 63; ++i) memory.write(memory.data() + i * size, written.data(), size);
    memory.read(back.data(), memory.data() + 31 * size, size);
    CHECK(back == written);
    memory.read(back.data(), memory.data() + memory.bytes() - 1, 1);
    CHECK(back[0] == std::byte{0});
    const std::string error = "lrcnn: offloaded rows cannot be read: the file has ended; they lie in a file in '" + folder.string() +
                              "'; set TMPDIR to a folder on a disk that works";
    CHECK_THROWS_WITH_AS(memory.read(back.data(), memory.data() + memory.bytes() - 1, 2), error.c_str(), MemoryError);
    CHECK(status_bytes("RssFile") < before + 1_MiB);   // 0 where the system does not say
    CHECK(files_in(folder) == 0);
    ScratchMemory other = std::move(memory);
    CHECK(memory.data() == nullptr);
    other.read(back.data(), other.data(), 2);
    CHECK(back[1] == std::byte{8});
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
