// Max, average and global pooling against their formulas, on every small window, whole and in slabs.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct MaxPool {
  Map y, place;
};
MaxPool max_formula(const Node& n, const Map& x) {
  MaxPool m{Map(n.out), Map(n.out)};
  std::fill(m.y.value.begin(), m.y.value.end(), -std::numeric_limits<double>::infinity());
  each_tap(n, [&](Index i, Index k, Index p, Index q, Index c, Index r, Index s, Index h, Index w) {
    if (!x.inside(h, w) || x.at(i, c, h, w) <= m.y.at(i, k, p, q)) return;
    m.y.at(i, k, p, q) = x.at(i, c, h, w);
    m.place.at(i, k, p, q) = static_cast<double>(r * n.layer.window.kernel.w + s);
  });
  return m;
}
Map max_formula_backward(const Node& n, const MaxPool& m, const Map& dy, Range out) {
  Map dx(n.in);
  each_tap(n, [&](Index i, Index k, Index p, Index q, Index c, Index r, Index s, Index h, Index w) {
    const bool wins = m.place.at(i, k, p, q) == static_cast<double>(r * n.layer.window.kernel.w + s);
    if (wins && dx.inside(h, w) && out.contains({p, p + 1})) dx.at(i, c, h, w) += dy.at(i, k, p, q);
  });
  return dx;
}
/// Positions that the window at (p, q) counts.
double count_at(const Node& n, Index p, Index q) {
  const Window& w = n.layer.window;
  double count = 0;
  for (Index r = 0; r < w.kernel.h; ++r)
    for (Index s = 0; s < w.kernel.w; ++s) {
      const Index h = p * w.stride.h - w.pad.top + r * w.dilation.h;
      const Index column = q * w.stride.w - w.pad.left + s * w.dilation.w;
      const bool inside = 0 <= h && h < n.in.h && 0 <= column && column < n.in.w;
      const bool padding = h < n.in.h + w.pad.bottom && column < n.in.w + w.pad.right;   // what lies beyond is nothing
      count += inside || (padding && n.layer.count_padding);
    }
  return std::max(count, 1.0);
}
Map avg_formula(const Node& n, const Map& x) {
  Map y(n.out);
  each_tap(n, [&](Index i, Index k, Index p, Index q, Index c, Index, Index, Index h, Index w) {
    if (x.inside(h, w)) y.at(i, k, p, q) += x.at(i, c, h, w) / count_at(n, p, q);
  });
  return y;
}
Map avg_formula_backward(const Node& n, const Map& dy, Range out) {
  Map dx(n.in);
  each_tap(n, [&](Index i, Index k, Index p, Index q, Index c, Index, Index, Index h, Index w) {
    if (dx.inside(h, w) && out.contains({p, p + 1})) dx.at(i, c, h, w) += dy.at(i, k, p, q) / count_at(n, p, q);
  });
  return dx;
}
Range widened(Range r, Index height) { return {std::max<Index>(0, r.begin - 1), std::min(height, r.end + 2)}; }
void check_max(const Bench<double>& b, std::uint64_t seed) {
  CAPTURE(describe(b.node.layer));
  CAPTURE(to_string(b.node.in));
  CAPTURE(b.x_block);
  const Map x = random_map(b.node.in, seed, true), dy = random_map(b.node.out, seed + 1);
  const MaxPool wanted = max_formula(b.node, x);
  for (const auto& cuts : cuts_of(b.node.out.h))
    for (const Range out : cuts) {
      auto memory = b.saved_memory(out), alone = memory;
      const auto saved = b.saved(memory, out), saved_alone = b.saved(alone, out);
      const Slab<double> y = b.forward(x, out, saved);
      CHECK(y.difference(wanted.y) == 0);
      CHECK(b.forward(x, out).difference(wanted.y) == 0);
      bool places = true;
      for (Index i = 0; i < saved.n; ++i)
        for (Index c = 0; c < round_up(saved.c, saved.block); ++c)
          for (Index p = out.begin; p < out.end; ++p)
            for (Index q = 0; q < saved.w; ++q) {
              const Index place = saved(i, c, p, q);
              places = places && (c < saved.c ? static_cast<double>(place) == wanted.place.at(i, c, p, q)
                                              : place < b.node.layer.window.kernel.h * b.node.layer.window.kernel.w);
            }
      CHECK(places);
      const Slab<double> from(x, b.reads(out), b.x_block);
      Operands<double> o;
      o.op = Op::forward;
      o.x = from.view();
      o.saved = saved_alone;
      b.run(o);
      CHECK(memory == alone);
      const Map dx = max_formula_backward(b.node, wanted, dy, out);
      CHECK(b.backward_data(dy, out, b.reads(out), saved).difference(dx) < 1e-14);
      CHECK(b.backward_data(dy, out, widened(b.reads(out), b.node.in.h), saved).difference(dx) < 1e-14);
    }
}
void check_avg(const Bench<double>& b, std::uint64_t seed) {
  CAPTURE(describe(b.node.layer));
  CAPTURE(to_string(b.node.in));
  CAPTURE(b.x_block);
  const Map x = random_map(b.node.in, seed), dy = random_map(b.node.out, seed + 1);
  const Map wanted = avg_formula(b.node, x);
  const Slab<double> whole = b.forward(x, b.all_out());
  for (const auto& cuts : cuts_of(b.node.out.h))
    for (const Range out : cuts) {
      const Slab<double> y = b.forward(x, out);
      CHECK(y.difference(wanted) < 1e-14);
      CHECK(same_bits(y.view(), whole.view(), out));
      const Map dx = avg_formula_backward(b.node, dy, out);
      CHECK(b.backward_data(dy, out, b.reads(out)).difference(dx) < 1e-14);
      CHECK(b.backward_data(dy, out, widened(b.reads(out), b.node.in.h)).difference(dx) < 1e-14);
    }
}
/// Calls f(layer, input shape, seed) for every small pool of a kind.
template <class F>
void each_pool(Kind kind, F f) {
  std::uint64_t seed = 0;
  Index cases = 0;
  for (Index kernel = 1; kernel <= 4; ++kernel)
    for (Index stride = 1; stride <= 5; ++stride)
      for (Index dilation = 1; dilation <= (kernel == 1 ? 1 : 3); ++dilation)
        for (Index top = 0; top <= 3; ++top)
          for (Index bottom = 0; bottom <= 2; ++bottom)
            for (const Index h : {1, 2, 5, 8})
              for (const bool turned : {false, true}) {
                ++seed;
                Layer layer{.kind = kind};
                layer.count_padding = seed % 3 != 0;
                const Index across = static_cast<Index>(seed / 2 % 3) + 1, s = 1 + static_cast<Index>(seed / 2 % 2);
                layer.window = {
                    .kernel = {kernel, across}, .stride = {stride, s}, .pad = {top, bottom, across / 2, across / 3}, .dilation = {dilation, 1}};
                Shape in{1, 3, h, 3 + static_cast<Index>(seed % 4)};
                if (turned) {
                  layer.window = {
                      .kernel = {across, kernel}, .stride = {s, stride}, .pad = {across / 2, across / 3, top, bottom}, .dilation = {1, dilation}};
                  std::swap(in.h, in.w);
                }
                layer.window.ceil = seed % 5 < 2;
                if (fault_of(layer, in) != Fault::none) continue;
                ++cases;
                f(layer, in, seed);
              }
  CHECK(cases > 1000);
}
}   // namespace
TEST_CASE("max pooling follows its formula for every small window; the first of equals wins; padding is -inf") {
  each_pool(Kind::max_pool, [](const Layer& layer, const Shape& in, std::uint64_t seed) {
    const Index block = std::array<Index, 4>{1, 16, 8, 2}[seed % 4];
    check_max(Bench<double>(node_of(layer, in), block, block), seed);
  });
}
TEST_CASE("average pooling follows its formula for every small window, counting padding or not") {
  each_pool(Kind::avg_pool, [](const Layer& layer, const Shape& in, std::uint64_t seed) {
    const Index block = std::array<Index, 4>{1, 16, 8, 2}[seed % 4];
    check_avg(Bench<double>(node_of(layer, in), block, block), seed);
  });
}
TEST_CASE("rounded up, a map that is smaller than the window has one, which counts what PyTorch's does") {
  const auto of = [](Layer layer, Index rows, Index columns, double first) {   // first, first + 1, ...
    layer.window.ceil = true;
    const Shape in{1, 1, rows, columns};
    REQUIRE(fault_of(layer, in) == Fault::none);
    const Bench<double> b(node_of(layer, in), 1, 1);
    CHECK(b.node.out == Shape{1, 1, 1, 1});
    Map x(in);
    for (std::size_t i = 0; i < x.value.size(); ++i) x.value[i] = first + static_cast<double>(i);
    return b.forward(x, {0, 1}).view()(0, 0, 0, 0);
  };
  const Window two{.kernel = 2, .stride = 2}, three{.kernel = 3, .stride = 2}, padded{.kernel = 4, .stride = 2, .pad = 1};
  CHECK(of({.kind = Kind::max_pool, .window = two}, 1, 1, -3) == -3);
  CHECK(of({.kind = Kind::max_pool, .window = two}, 1, 2, -3) == -2);
  CHECK(of({.kind = Kind::max_pool, .window = three}, 2, 2, -9) == -6);
  for (const bool count_padding : {false, true}) {
    CHECK(of({.kind = Kind::avg_pool, .window = two, .count_padding = count_padding}, 1, 1, 7) == 7);
    CHECK(of({.kind = Kind::avg_pool, .window = three, .count_padding = count_padding}, 2, 2, 1) == 2.5);
    CHECK(of({.kind = Kind::avg_pool, .window = padded, .count_padding = count_padding}, 1, 1, 9) == (count_padding ? 1 : 9));   // 3 x 3 count
  }
}
TEST_CASE("many channels and images, in blocks") {
  for (const Kind kind : {Kind::max_pool, Kind::avg_pool})
    for (const Index block : {1, 8, 16})
      for (const Index channels : {15, 16, 17, 40}) {
        Layer layer{.kind = kind, .count_padding = false};
        layer.window = {.kernel = 3, .stride = 2, .pad = 1};
        const Bench<double> b(node_of(layer, {3, channels, 7, 9}), block, block);
        kind == Kind::max_pool ? check_max(b, 5) : check_avg(b, 5);
      }
}
TEST_CASE_TEMPLATE("max pooling passes on what is not a number, and -inf from inside the map", T, float, double) {
  Layer layer{.kind = Kind::max_pool};
  layer.window = {.kernel = 2, .stride = 2, .pad = {1, 1, 1, 1}};
  const Bench<T> b(node_of(layer, {1, 1, 4, 4}), 16, 16);
  Map x = random_map(b.node.in, 1);
  x.at(0, 0, 1, 1) = std::numeric_limits<double>::quiet_NaN();
  x.at(0, 0, 0, 0) = -std::numeric_limits<double>::infinity();
  auto memory = b.saved_memory({0, 3});
  const auto saved = b.saved(memory, {0, 3});
  const auto y = b.forward(x, {0, 3}, saved);
  CHECK(std::isnan(y.view()(0, 0, 1, 1)));
  CHECK(y.view()(0, 0, 0, 0) == -std::numeric_limits<T>::infinity());
  CHECK(saved(0, 0, 0, 0) == 3);
  CHECK(saved(0, 0, 2, 0) == 1);
}
TEST_CASE_TEMPLATE("global pooling gives the same bits however rows are cut, and is the mean", T, float, double, bfloat16) {
  for (const Index block : {1, 8, 16, 3})
    for (const Shape in : {Shape{2, 5, 7, 3}, Shape{1, 20, 9, 29}, Shape{3, 16, 1, 1}, Shape{1, 1, 4, 8}, Shape{1, 2, 3, 600}}) {
      const Bench<T> b(node_of({.kind = Kind::global_avg_pool}, in), block, block);
      const Map x = random_map(in, 9);
      Map mean(b.node.out);
      for (Index i = 0; i < in.n; ++i)
        for (Index c = 0; c < in.c; ++c)
          for (Index e = 0; e < in.h * in.w; ++e) mean.at(i, c, 0, 0) += x.at(i, c, e / in.w, e % in.w) / static_cast<double>(in.h * in.w);
      const Slab<T> whole = b.forward(x, {0, 1});
      CHECK(whole.difference(mean) < (sizeof(T) == 8 ? 1e-14 : sizeof(T) == 4 ? 1e-6 : 0.01));
      for (const auto& cuts : cuts_of(in.h)) {
        Slab<T> y(b.node.out, {0, 1}, block);
        std::vector<double> sums(static_cast<std::size_t>(in.n * in.c), std::nan(""));
        for (const Range rows : cuts) {
          const Slab<T> from(x, rows, block);
          Operands<T> o;
          o.op = Op::forward;
          o.accumulate = rows.begin > 0;
          o.sums = sums.data();
          o.x = from.view();
          o.y = y.view();
          b.run(o);
        }
        CHECK((y.intact() && same_bits(y.view(), whole.view(), {0, 1})));
      }
    }
}
TEST_CASE_TEMPLATE("a mean over millions of equal pixels is that pixel, slab by slab too", T, float, bfloat16) {
  // One accumulator of floats stops growing at 2^24 times what is added, one of bfloat16 at 2^8 times.
  for (const Index block : {1, 16}) {
    const Shape in{1, 2, 3000, block == 1 ? 3000 : 300};
    const Node node = node_of({.kind = Kind::global_avg_pool}, in), adaptive = node_of({.kind = Kind::adaptive_avg_pool, .pooled = {1, 2}}, in);
    const std::vector<T> pixels(static_cast<std::size_t>(in.h * in.w * (block == 1 ? in.c : block)), T(0.1));
    const auto x = dense_view(pixels.data(), 1, in.c, {0, in.h}, in.w, block);
    for (const Index slabs : {1, 250}) {
      const Slab<T> y(node.out, {0, 1}, block, 0);
      std::vector<double> sums(2);
      for (Index slab = 0; slab < slabs; ++slab) {
        Operands<T> o;
        o.op = Op::forward, o.node = &node, o.accumulate = slab > 0, o.sums = sums.data();
        o.x = x.slice({in.h * slab / slabs, in.h * (slab + 1) / slabs}), o.y = y.view();
        host::run(o, 2);
      }
      for (Index c = 0; c < 2; ++c) CHECK(std::abs(static_cast<double>(y.view()(0, c, 0, 0)) - static_cast<double>(T(0.1))) <= 1e-6);
    }
    const Slab<T> y(adaptive.out, {0, 1}, block);
    Operands<T> o;
    o.op = Op::forward, o.node = &adaptive, o.x = x, o.y = y.view();
    host::run(o, 2);
    for (Index c = 0; c < 2; ++c)
      for (Index q = 0; q < 2; ++q) CHECK(std::abs(static_cast<double>(y.view()(0, c, 0, q)) - static_cast<double>(T(0.1))) <= 1e-6);
  }
}
TEST_CASE("global pooling sends every element its share back, slab by slab") {
  const Shape in{2, 5, 7, 3};
  for (const Index block : {1, 16}) {
    const Bench<double> b(node_of({.kind = Kind::global_avg_pool}, in), block, block);
    const Map dy = random_map(b.node.out, 4);
    Map dx(in);
    for (Index i = 0; i < in.n; ++i)
      for (Index c = 0; c < in.c; ++c)
        for (Index e = 0; e < in.h * in.w; ++e) dx.at(i, c, e / in.w, e % in.w) = dy.at(i, c, 0, 0) / 21;
    for (const auto& cuts : cuts_of(in.h))
      for (const Range rows : cuts) CHECK(b.backward_data(dy, {0, 1}, rows).difference(dx) < 1e-15);
  }
}
