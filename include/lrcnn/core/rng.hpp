#pragma once
// Random numbers as a function of a key and a counter, without state.
//
// A value depends on (seed, stream, index) alone, not on how many were drawn before, so it is the same under any
// slabbing, on any number of threads, in a re-run and after a resume.
// Source: Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11; the known-answer
// vectors of that paper's library are asserted in tests/core/rng.cpp.
#include <lrcnn/core/host_device.hpp>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>
namespace lrcnn {
/// Ten rounds of Philox4x32 on a 128-bit counter, in its place, with a 64-bit key.
LRCNN_HOST_DEVICE constexpr void philox_rounds(std::uint32_t (&counter)[4], std::uint32_t key_low, std::uint32_t key_high) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ull * counter[0];
    const std::uint64_t b = 0xCD9E8D57ull * counter[2];
    counter[0] = static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key_low;
    counter[1] = static_cast<std::uint32_t>(b);
    counter[2] = static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key_high;
    counter[3] = static_cast<std::uint32_t>(a);
    key_low += 0x9E3779B9u, key_high += 0xBB67AE85u;
  }
}
constexpr std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter, const std::array<std::uint32_t, 2>& key) {
  std::uint32_t words[4] = {counter[0], counter[1], counter[2], counter[3]};
  philox_rounds(words, key[0], key[1]);
  return {words[0], words[1], words[2], words[3]};
}
/// A family of independent streams under one seed. Regular and cheap to copy.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}
  /// 64 random bits at a position of the stream.
  constexpr std::uint64_t bits(std::uint64_t index) const {
    const auto r = philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), static_cast<std::uint32_t>(stream_),
                           static_cast<std::uint32_t>(stream_ >> 32)},
                          {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    return (static_cast<std::uint64_t>(r[1]) << 32) | r[0];
  }
  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform(std::uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1.0p-53; }
  /// Uniform integer in [0, bound). Pre: 0 < bound < 2^32 (the bias is below bound / 2^32).
  constexpr std::uint64_t below(std::uint64_t index, std::uint64_t bound) const { return ((bits(index) >> 32) * bound) >> 32; }
  /// Standard normal by Box and Muller.
  double normal(std::uint64_t index) const {
    const auto r = bits(index);
    const double u = (static_cast<double>(r >> 32) + 0.5) * 0x1.0p-32;
    const double v = static_cast<double>(r & 0xffffffffu) * 0x1.0p-32;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  }
 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};
/// A permutation of 0 .. count-1 (Fisher and Yates), the same for the same generator.
inline std::vector<std::int64_t> permutation(std::int64_t count, const Random& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = count - 1; i > 0; --i) {
    const auto j = random.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i) + 1);
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
  }
  return order;
}
}   // namespace lrcnn
