// The masks of dropouts: words of the published generator, as a function of seed, step, layer, image, channel, row and column.
#include <lrcnn/layer/drop_mask.hpp>
#include <doctest/doctest.h>
#include <cmath>
#include <set>
#include <vector>
using namespace lrcnn;
using Each = Drop::Each;
namespace {
/// The mask of some places as a text.
std::string text_of(const DropMask& mask, Index images = 2, Index channels = 3, Index rows = 4, Index columns = 9) {
  std::string text;
  for (Index i = 0; i < images; ++i)
    for (Index c = 0; c < channels; ++c)
      for (Index y = 0; y < rows; ++y)
        for (Index x = 0; x < columns; ++x) text += mask.keep(i, c, y, x) ? '1' : '0';
  return text;
}
}   // namespace
TEST_CASE("a mask is the generator's words against the probability, whatever the numbers") {
  constexpr std::uint64_t seed = 0x123456789abcdef0ull, step = 0x100000007ull;
  const RunKey run{seed, step, 5};
  const auto key = philox({7, 1, 3, 0x64726f70}, {0x9abcdef0, 0x12345678});
  for (const double p : {0.1, 0.5, 0.875})
    for (Index i = 0; i < 2; ++i)
      for (Index c = 0; c < 3; ++c)
        for (Index row = 0; row < 3; ++row)
          for (Index x = 0; x < 9; ++x) {
            const auto u = [&](std::array<std::uint32_t, 4> counter, std::size_t word) {
              return philox(counter, {key[0], key[1]})[word] * 0x1.0p-32;
            };
            const auto image = static_cast<std::uint32_t>(5 + i), channel = static_cast<std::uint32_t>(c), y = static_cast<std::uint32_t>(row);
            const auto quad = static_cast<std::uint32_t>(x / 4);
            CHECK(DropMask({Each::element, p}, run, 3).keep(i, c, row, x) == (u({quad, y, channel, image}, static_cast<std::size_t>(x % 4)) >= p));
            CHECK(DropMask({Each::channel, p}, run, 3).keep(i, c, row, x) == (u({0, 0, channel, image}, 0) >= p));
            CHECK(DropMask({Each::image, p}, run, 3).keep(i, c, row, x) == (u({0, 0, 0, image}, 0) >= p));
          }
}
TEST_CASE("every number of the key and of the place counts, and none other") {
  const Drop half{Each::element, 0.5};
  const RunKey run{1, 2, 0};
  std::set<std::string> masks;
  for (const RunKey& other : {run, RunKey{2, 2, 0}, RunKey{1ull << 32 | 1, 2, 0}, RunKey{1, 3, 0}, RunKey{1, 1ull << 32 | 2, 0}, RunKey{1, 2, 2}})
    masks.insert(text_of(DropMask(half, other, 4)));
  masks.insert(text_of(DropMask(half, run, 5)));
  CHECK(masks.size() == 7);
  CHECK(text_of(DropMask(half, run, 4)) == text_of(DropMask(half, run, 4)));
  std::set<std::string> parts;   // of one mask: rows of channels of images
  const DropMask mask(half, run, 4);
  for (Index i = 0; i < 3; ++i)
    for (Index c = 0; c < 3; ++c)
      for (Index y = 0; y < 3; ++y) {
        std::string row;
        for (Index x = 0; x < 64; ++x) row += mask.keep(i, c, y, x) ? '1' : '0';
        parts.insert(row);
      }
  CHECK(parts.size() == 27);
  const std::string together = text_of(DropMask(half, run, 4), 4), later = text_of(DropMask(half, {1, 2, 2}, 4), 2);
  CHECK(together.substr(together.size() / 2) == later);   // images of batches that are accumulated go on counting
}
TEST_CASE("the share that is dropped is the probability") {
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    Index kept = 0;
    const Index count = 40000;
    const DropMask mask({Each::element, p}, {3, 1, 0}, 2);
    for (Index i = 0; i < count; ++i) kept += mask.keep(0, i / 1600, i / 40 % 40, i % 40);
    const double deviation = std::sqrt(p * (1 - p) * static_cast<double>(count));
    CHECK(std::abs(static_cast<double>(kept) - (1 - p) * static_cast<double>(count)) <= 4 * deviation);
  }
}
