// What the loops are made of: division, packs, pieces, and windows as threads walk them.
#include "loops_case.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
using namespace lrcnn::loops;
TEST_CASE("a divisor divides, whatever the sizes") {
  const Random random(3);
  bool good = true;
  std::vector<Index> divisors, numbers;
  for (Index d = 1; d <= 300; ++d) divisors.push_back(d);
  for (int bit = 8; bit < 40; ++bit)
    for (const Index off : {-1, 0, 1}) divisors.push_back((Index{1} << bit) + off);
  for (int bit = 0; bit < 62; ++bit)
    for (const Index off : {-1, 0, 1}) numbers.push_back((Index{1} << bit) + off);
  for (std::uint64_t i = 0; i < 300; ++i) numbers.push_back(static_cast<Index>(random.below(i, std::uint64_t{1} << 31)));
  for (const Index d : divisors) {
    const Divisor divisor(d);
    for (Index a : numbers) {
      good = good && divisor.quotient(a) == a / d;
      for (const Index near : {a / d * d - 1, a / d * d, a / d * d + d - 1})   // where the quotient changes
        if (near >= 0) good = good && divisor.quotient(near) == near / d;
      const Index whole = a / d, rest = a % d;
      good = good && divisor.split(a) == whole && a == rest;
    }
  }
  CHECK(good);
  CHECK(Divisor{}.quotient(17) == 17);
}
TEST_CASE("packs are taken where address and steps are multiples of theirs") {
  alignas(16) float numbers[32] = {};
  CHECK(takes_packs<4>(numbers, 8, 12));
  CHECK_FALSE(takes_packs<4>(numbers + 1, 8));
  CHECK_FALSE(takes_packs<4>(numbers, 6));
  CHECK(takes_packs<8>(numbers, 4));
  CHECK_FALSE(takes_packs<8>(reinterpret_cast<float16*>(numbers) + 4));
  CHECK(takes_packs<4>(reinterpret_cast<std::uint8_t*>(numbers) + 4, 12));
}
TEST_CASE("every element lies in one piece, pieces have bytes of mask to themselves") {
  for (const Index c : {1, 3, 8, 16})
    for (const Index w : {1, 2, 5, 8})
      for (const Index n : {1, 3})
        for (const Index hidden : {0, 1})
          for (const bool masked : {false, true}) {
            const Shape shape{n, c, 6, w};
            const Slab<float> slab(Map(shape), {1, 5}, c, hidden);
            const View<float> view = slab.view();
            Layer layer;
            std::vector<std::uint8_t> memory(static_cast<std::size_t>(n * 4 * ceil_div(w * c, 8)));
            const auto mask = masked ? saved_view(memory.data(), layer, n, c, {1, 5}, w, c) : View<std::uint8_t>{};
            const Lines lines(mask, view);
            const Line<float> line(view);
            const Line<std::uint8_t> bytes(mask);
            for (Index unit = 0; unit < lines.count(); ++unit) {
              const Piece p = lines.piece(unit);
              for (int v = 0; v < p.count; ++v) line.at(p)[v] += 1;
              if (masked) ++*bytes.byte_at(p);
            }
            Map ones(shape);
            for (double& e : ones.value) e = 1;
            CHECK(slab.difference(ones) == 0);
            if (masked) CHECK(memory == std::vector<std::uint8_t>(memory.size(), 1));
            if (hidden == 0 && !masked) CHECK(lines.count() == ceil_div(n * 4 * w * c, 8));
          }
}
TEST_CASE("windows: taps and readers agree with the one formula") {
  bool good = true;
  for (Index kernel = 1; kernel <= 4; ++kernel)
    for (Index stride = 1; stride <= 6; ++stride)
      for (Index dilation = 1; dilation <= 4; ++dilation)
        for (Index begin = 0; begin <= 4; ++begin)
          for (Index extent = 1; extent <= 8; ++extent) {
            const Axis axis{.kernel = kernel, .stride = stride, .pad_begin = begin, .pad_end = 2, .dilation = dilation, .ceil = kernel % 2 == 0};
            const WindowAxis window(axis, extent);
            const Index outputs = out_extent(axis, extent);
            for (int out = 0; out < outputs; ++out) {
              Index counted = 0;
              for (int tap = 0; tap < kernel; ++tap) counted += out * stride - begin + tap * dilation < extent + 2;
              good = good && window.taps_counted(out, false) == taps_inside(axis, out, extent).size();
              good = good && window.taps_counted(out, true) == counted && (axis.ceil || counted == kernel);
              for (int tap = 0; tap < kernel; ++tap) {
                const Index at = out * stride - begin + tap * dilation;
                good = good && tap_position(axis, out, tap) == at;
                good = good && window.position(out, tap) == at;
                good = good && window.inside(window.position(out, tap)) == (0 <= at && at < extent);
              }
            }
            for (int in = 0; in < extent; ++in) {
              std::vector<std::pair<Index, Index>> wanted, got;
              for (Index tap = 0; tap < kernel; ++tap) {
                const Index out = host::output_reading(axis, in, tap, {0, outputs});
                if (out >= 0) wanted.emplace_back(tap, out);
              }
              for (auto r = window.first_reader(in); r.tap < window.kernel(); window.next(r))
                if (r.out >= 0 && r.out < outputs) got.emplace_back(r.tap, r.out);
              good = good && wanted == got;
            }
          }
  CHECK(good);
}
