#pragma once
// Arrays of images in memory, drawn at random: every type, planes and pixels, gaps between rows, any place in memory.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/data/direct_source.hpp>
#include <cstdlib>
namespace lrcnn::testing {
struct RandomArray {
  ArrayType type{};
  SampleLayout layout{};
  std::vector<Index> samples{};   ///< of a batch
  DirectOptions options{};
  std::shared_ptr<const void> memory{};   ///< of exactly the array's bytes, so that a sanitizer sees what is read beyond
  const void* data = nullptr;
  SampleArray array() const { return {data, type, layout, memory}; }
};
/// Numbers below a bound from one generator.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  Index operator()(Index below) { return static_cast<Index>(random_.below(next_++, static_cast<std::uint64_t>(below))); }
  double normal() { return random_.normal(next_++); }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};
inline RandomArray random_array(std::uint64_t seed) {
  Draws draw(seed);
  RandomArray a;
  a.type = static_cast<ArrayType>(draw(5));
  const Shape s{1 + draw(5), 1 + draw(5), 1 + draw(9), 1 + draw(draw(3) == 0 ? 300 : 20)};
  const Index gap = draw(2) * draw(40), row_gap = draw(2) * draw(9);
  if (draw(2) == 0) {
    a.layout = SampleLayout::planes(s);
    a.layout.row += row_gap, a.layout.channel = s.h * a.layout.row + gap, a.layout.image = s.c * a.layout.channel + gap;
  } else {
    const Index unused = draw(3) == 0 ? 1 : 0;   // as the alpha of RGBA
    a.layout = SampleLayout::interleaved({s.n, s.c + unused, s.h, s.w});
    a.layout.shape = s;
    a.layout.row += row_gap, a.layout.image = s.h * a.layout.row + gap;
  }
  const Index size = array_type_bytes(a.type), offset = draw(2) * draw(64) * size, bytes = a.layout.extent() * size;
  // What lies before the array belongs to another object, as it does in a program.
  auto* memory = static_cast<std::byte*>(std::malloc(static_cast<std::size_t>(offset + bytes)));
  a.memory = std::shared_ptr<const void>(memory, [](const void* m) { std::free(const_cast<void*>(m)); });
  a.data = memory + offset;
  with_array_type(a.type, [&]<class S>(const S*) {
    for (Index e = 0; e < a.layout.extent(); ++e) {
      S number{};
      if constexpr (std::is_integral_v<S>) number = static_cast<S>(draw(Index{1} << (8 * sizeof(S))));
      else number = static_cast<S>(draw.normal());
      std::memcpy(memory + offset + e * size, &number, sizeof(S));
    }
  });
  for (Index i = 0, n = 1 + draw(6); i < n; ++i) a.samples.push_back(draw(s.n));
  if (draw(3) > 0)
    for (Index c = 0; c < s.c; ++c)
      a.options.normalization.mean.push_back(draw.normal()), a.options.normalization.deviation.push_back(0.1 + 0.1 * static_cast<double>(draw(9)));
  const Index cut = draw(3);   // whole images; cuts; cuts of padded images
  if (cut > 0) {
    const Index pad = cut == 2 ? draw(6) : 0;
    a.options.crop_h = 1 + draw(s.h + 2 * pad), a.options.crop_w = 1 + draw(s.w + 2 * pad);
    for (std::size_t i = 0; i < a.samples.size(); ++i)
      a.options.placements.push_back(
          {draw(s.h + 2 * pad - a.options.crop_h + 1) - pad, draw(s.w + 2 * pad - a.options.crop_w + 1) - pad, draw(2) == 0});
  } else if (draw(2) == 0) {
    for (std::size_t i = 0; i < a.samples.size(); ++i) a.options.placements.push_back({0, 0, draw(2) == 0});
  }
  a.options.fill = static_cast<double>(draw(256));
  return a;
}
}   // namespace lrcnn::testing
