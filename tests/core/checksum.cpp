#include <lrcnn/core/checksum.hpp>
#include <doctest/doctest.h>
#include <string_view>
#include <vector>
using namespace lrcnn;
namespace {
std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
/// One bit at a time, as the definition has it.
std::uint32_t slow(std::span<const std::byte> data) {
  std::uint32_t c = 0xffffffff;
  for (const std::byte b : data) {
    c ^= static_cast<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~c;
}
std::vector<std::byte> sample(std::size_t size) {
  std::vector<std::byte> data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * i + 7 * i + 3);
  return data;
}
}   // namespace
TEST_CASE("crc32c gives the known answers") {
  CHECK(crc32c(bytes("")) == 0);
  CHECK(crc32c(bytes("123456789")) == 0xE3069283);
  const std::vector<std::byte> zeros(32), ones(32, std::byte{0xff});   // RFC 3720, B.4
  CHECK(crc32c(zeros) == 0x8A9136AA);
  CHECK(crc32c(ones) == 0x62A8AB43);
}
TEST_CASE("crc32c is the definition's, at every length and cut in any place") {
  for (std::size_t size = 0; size < 70; ++size) {
    const auto data = sample(size);
    const std::span<const std::byte> all(data);
    CHECK(crc32c(all) == slow(all));
    for (std::size_t cut = 0; cut <= size; ++cut) REQUIRE(crc32c(all.subspan(cut), crc32c(all.first(cut))) == slow(all));
  }
}
TEST_CASE("crc32c notices every single damaged bit") {
  auto data = sample(100);
  const auto good = crc32c(data);
  for (std::size_t i = 0; i < data.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      data[i] ^= std::byte{1} << bit;
      REQUIRE(crc32c(data) != good);
      data[i] ^= std::byte{1} << bit;
    }
}
