// data/file.hpp: whole files, plain or gzip, and everything that can be wrong with them.
#include <lrcnn/data/file.hpp>
#include "support.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
/// Bytes that deflate neither stores as they are nor packs into nothing.
Bytes sample(std::size_t size) {
  Bytes bytes(size);
  std::uint32_t x = 1;
  for (auto& b : bytes) {
    x = x * 1664525 + 1013904223;
    b = static_cast<std::uint8_t>(x >> 28);
  }
  return bytes;
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
}   // namespace
TEST_CASE("data file: plain and gzip give the same bytes, whatever the name") {
  const TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, 2u, 65535u, 65536u, 65537u, 1000000u}) {
    const Bytes bytes = sample(size);
    CHECK(read_data_file(folder.write("plain.gz", bytes)) == bytes);
    CHECK(read_data_file(folder.write("packed", gzip(bytes))) == bytes);
  }
  const Bytes zeros(5000000);   // packs a thousandfold
  CHECK(read_data_file(folder.write("zeros", gzip(zeros))) == zeros);
}
TEST_CASE("data file: gzip members follow each other") {
  const Bytes a = sample(1000), b = sample(70000);
  CHECK(unpack_gzip(join(gzip(a), join(gzip({}), gzip(b))), "x") == join(a, b));
}
TEST_CASE("data file: missing, not a file") {
  const TemporaryFolder folder;
  const std::string where = folder.path().string();
  CHECK(error_of([&] { read_data_file(folder / "no"); }) ==
        "lrcnn: file '" + where + "/no' does not exist; data are read from files; check the path");
  CHECK(error_of([&] { read_data_file(folder.path()); }) ==
        "lrcnn: file '" + where + "' is not a regular file; data are read as a whole; name a file");
}
TEST_CASE("data file: gzip cut at any byte is an error that says where") {
  const TemporaryFolder folder;
  const Bytes packed = gzip(sample(300));
  for (std::size_t size = 2; size < packed.size(); ++size) {
    const std::string text = error_of([&] { unpack_gzip(cut(packed, size), "file 'x'"); });
    const std::string at = std::to_string(size);
    CHECK_MESSAGE(contains(text, "lrcnn: file 'x' is cut at byte " + at + " of " + at + ", "), text);
    CHECK(contains(text, " bytes unpacked; gzip data end with a checksum and their length; fetch it again"));
  }
  const Bytes large = gzip(sample(1000000));
  const auto path = folder.write("large.gz", cut(large, large.size() / 2));
  CHECK(contains(error_of([&] { read_data_file(path); }), "file '" + path.string() + "' is cut at byte "));
}
TEST_CASE("data file: a damaged byte of gzip data is an error") {
  const Bytes bytes = sample(3000), packed = gzip(bytes);
  Bytes damaged = packed;
  damaged[packed.size() - 6] ^= 1;   // in the checksum
  std::string text = error_of([&] { unpack_gzip(damaged, "file 'x'"); });
  CHECK(contains(text, "lrcnn: file 'x' is damaged at byte "));
  CHECK(contains(text, ": incorrect data check; gzip data carry a checksum and their length; fetch it again"));
  damaged = packed;
  damaged[packed.size() - 1] ^= 1;   // in the length
  CHECK(contains(error_of([&] { unpack_gzip(damaged, "file 'x'"); }), ": incorrect length check; "));
  // Any byte, but for the header's, which say little about the content, and the last bits before the checksum, which
  // fill up a byte.
  for (std::size_t i = 10; i < packed.size(); ++i) {
    if (i == packed.size() - 9) continue;
    damaged = packed;
    damaged[i] ^= 0x40;
    text = error_of([&] { unpack_gzip(damaged, "file 'x'"); });
    CHECK_MESSAGE(text != "no error", "byte ", i);
  }
}
TEST_CASE("data file: bytes after the gzip data are an error") {
  const Bytes packed = gzip(sample(100));
  const std::string n = std::to_string(packed.size()), more = std::to_string(packed.size() + 3);
  CHECK(error_of([&] {
          unpack_gzip(join(packed, {1, 2, 3}), "file 'x'");
        }) == "lrcnn: file 'x' goes on after the end of its gzip data at byte " + n + " of " + more +
                  "; nothing but further gzip data may follow; fetch it again");
}
TEST_CASE("data file: the limit holds for plain and unpacked sizes, to the byte") {
  const TemporaryFolder folder;
  const auto plain = folder.write("plain", sample(1000)), packed = folder.write("packed", gzip(Bytes(100000)));
  CHECK(read_data_file(plain, 1000).size() == 1000);
  CHECK(error_of([&] { read_data_file(plain, 999); }) == "lrcnn: file '" + plain.string() +
                                                             "' is larger than 999 bytes; more is not read, so that a wrong file "
                                                             "cannot fill the memory; check that it is the right file, or raise the limit");
  CHECK(read_data_file(packed, 100000).size() == 100000);
  for (const Index limit : {99999, 65536, 65535, 1000})
    CHECK(contains(error_of([&] { read_data_file(packed, limit); }), "', unpacked, is larger than " + std::to_string(limit) + " bytes; "));
}
TEST_CASE("data file: lines of a text, however they end") {
  const TemporaryFolder folder;
  const std::vector<std::string> lines{"a", "", "b c"};
  for (const char* text : {"a\n\nb c", "a\n\nb c\n", "a\r\n\r\nb c\r\n\r\n\n"}) CHECK(lines_if_exists(folder.write("text", bytes_of(text))) == lines);
  CHECK(lines_if_exists(folder / "no").empty());
  CHECK(lines_if_exists(folder.write("text", {})).empty());
}
