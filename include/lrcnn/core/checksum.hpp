#pragma once
// CRC-32C (Castagnoli): finds every burst of up to 32 damaged bits, and other damage but once in four thousand
// million.
// Source: Castagnoli et al., 1993; parameters and check value as in RFC 3720, appendix B.4. Eight bytes per step by
//         eight tables (Kounavis and Berry, "Novel table lookup-based algorithms", IEEE ToC 2008).
#include <lrcnn/core/language.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
namespace lrcnn {
namespace detail {
/// table[k][b]: what byte b does to the checksum when k bytes follow it.
constexpr std::array<std::array<std::uint32_t, 256>, 8> crc32c_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78u : 0u);
    table[0][b] = c;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xff];
  return table;
}
inline constexpr auto crc32c_table = crc32c_tables();
}   // namespace detail
/// The CRC-32C of bytes, which may come in pieces: crc32c(b, crc32c(a)) is that of a followed by b.
/// Post:    crc32c("123456789") == 0xE3069283; crc32c of nothing is 0
constexpr std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  const auto& t = detail::crc32c_table;
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(bytes[i]); };
  std::uint32_t c = ~before;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    c ^= at(i) | at(i + 1) << 8 | at(i + 2) << 16 | at(i + 3) << 24;
    c = t[7][c & 0xff] ^ t[6][c >> 8 & 0xff] ^ t[5][c >> 16 & 0xff] ^ t[4][c >> 24] ^ t[3][at(i + 4)] ^ t[2][at(i + 5)] ^ t[1][at(i + 6)] ^
        t[0][at(i + 7)];
  }
  for (; i < bytes.size(); ++i) c = (c >> 8) ^ t[0][(c ^ at(i)) & 0xff];
  return ~c;
}
/// A 64-bit number for a text; by far not as good against damage as against chance. Source: FNV-1a, Fowler, Noll and Vo.
constexpr std::uint64_t hash64(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}
}   // namespace lrcnn
