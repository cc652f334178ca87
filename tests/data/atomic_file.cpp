// core/atomic_file.hpp: all or nothing.
#include <lrcnn/core/atomic_file.hpp>
#include "support.hpp"
#include <doctest/doctest.h>
#include <csignal>
#include <iterator>
#include <thread>
#include <sys/resource.h>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
void write(const std::filesystem::path& path, const std::string& text) { write_file_atomically(path, std::as_bytes(std::span(text))); }
std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
}   // namespace
TEST_CASE("atomic file: holds exactly the bytes, new or replaced, and nothing is left beside it") {
  const TemporaryFolder folder;
  const auto path = folder / "state";
  for (const std::string& text : {std::string("first"), std::string(), std::string(300000, 'x'), std::string("a\0b\n", 4)}) {
    write(path, text);
    CHECK(read(path) == text);
    CHECK(folder.count() == 1);
  }
}
TEST_CASE("atomic file: written in pieces, it takes its name when it is finished, and is removed if it never is") {
  const TemporaryFolder folder;
  const auto path = folder / "state";
  write(path, "old");
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const std::string first = "first ", second = "second";
  {
    AtomicFile file(path);
    file.write(bytes(first));
    CHECK(read(path) == "old");
    CHECK(folder.count() == 2);
  }
  CHECK(read(path) == "old");
  CHECK(folder.count() == 1);
  AtomicFile file(path);
  file.write(bytes(first));
  file.write(bytes(second));
  file.finish();
  CHECK(read(path) == "first second");
  CHECK(folder.count() == 1);
  CHECK(error_of<DataError>([&] { AtomicFile(folder / "missing/state"); }).find("missing/state' cannot be written: No such file or directory") !=
        std::string::npos);
}
TEST_CASE("atomic file: keeps access rights, follows a symbolic link") {
  const TemporaryFolder folder;
  const auto path = folder / "state", link = folder / "link";
  write(path, "old");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink("state", link);
  write(link, "new");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read(path) == "new");
  CHECK(std::filesystem::status(path).permissions() == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  CHECK(folder.count() == 2);
}
TEST_CASE("atomic file: a symbolic link to what is not there yet is followed, also through others, and a circle of them is refused") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "elsewhere");
  std::filesystem::create_symlink("second", folder / "first");
  std::filesystem::create_symlink((folder / "elsewhere") / "state", folder / "second");
  for (const std::string text : {"new", "newer"}) {
    write(folder / "first", text);
    CHECK(std::filesystem::is_symlink(folder / "first"));
    CHECK(std::filesystem::is_symlink(folder / "second"));
    CHECK(read((folder / "elsewhere") / "state") == text);
  }
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  CHECK(error_of<DataError>([&] { write(folder / "a", "never"); }).find("cannot be written: Too many levels of symbolic links") != std::string::npos);
  CHECK(std::filesystem::is_symlink(folder / "a"));
}
TEST_CASE("atomic file: a name without a folder is in the current one") {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write("state", "here");
  std::filesystem::current_path(before);
  CHECK(read(folder / "state") == "here");
}
TEST_CASE("atomic file: what cannot be written says path, reason and remedy") {
  const TemporaryFolder folder;
  const std::string where = folder.path().string();
  CHECK(error_of([&] { write(folder / "no/state", "x"); }) ==
        "lrcnn: file '" + where +
            "/no/state' cannot be written: No such file or directory; a new file is written "
            "beside it and then takes its name; what was there is kept; create its folder, or choose another path");
  write(folder / "file", "x");
  CHECK(error_of([&] { write(folder / "file/state", "x"); }).find("cannot be written: Not a directory; ") != std::string::npos);
  const std::string directory = error_of([&] { write(folder.path(), "x"); });
  CHECK(directory.find("file '" + where + "' cannot be written: Is a directory; ") != std::string::npos);
  CHECK(directory.find("; choose the name of a file") != std::string::npos);
  CHECK(error_of([&] { write("/dev/null", "x"); }).find("'/dev/null' cannot be written: ") != std::string::npos);
  CHECK(folder.count() == 1);
}
TEST_CASE("atomic file: whether a file can be written is known beforehand, by the same words, and changes nothing") {
  const TemporaryFolder folder;
  write(folder / "file", "old");
  check_writable(folder / "file");
  check_writable(folder / "new");
  CHECK(read(folder / "file") == "old");
  for (const auto& path : {folder / "no/state", folder / "file/state", folder.path(), std::filesystem::path("/dev/null")})
    CHECK(error_of([&] { check_writable(path); }) == error_of([&] { write(path, "x"); }));
  CHECK(folder.count() == 1);
}
TEST_CASE("atomic file: a write that fails half-way leaves the old file and nothing else") {
  const TemporaryFolder folder;
  const auto path = folder / "state";
  write(path, "old");
  // A limit on file sizes behaves as a full disk does.
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit low = limit;
  low.rlim_cur = 4096;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  const std::string text = error_of([&] { write(path, std::string(100000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  CHECK(text.find("cannot be written: File too large; ") != std::string::npos);
  CHECK(text.find("; make room, or choose a path on another disk") != std::string::npos);
  CHECK(read(path) == "old");
  CHECK(folder.count() == 1);
}
TEST_CASE("atomic file: with two writers and a reader, the reader sees one writer's bytes") {
  const TemporaryFolder folder;
  const auto path = folder / "state";
  const std::string a(5000, 'a'), b(7000, 'b');
  write(path, a);
  std::thread first([&] {
    for (int i = 0; i < 20; ++i) write(path, a);
  });
  std::thread second([&] {
    for (int i = 0; i < 20; ++i) write(path, b);
  });
  bool whole = true;
  for (int i = 0; i < 100; ++i) {
    const std::string now = read(path);
    whole = whole && (now == a || now == b);
  }
  first.join();
  second.join();
  CHECK(whole);
  CHECK(folder.count() == 1);
}
