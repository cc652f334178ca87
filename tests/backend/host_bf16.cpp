// The host's loops on bfloat16: what they give is what they give in float on the same numbers, rounded once.
#include "exec/user_layers.hpp"
#include "host_case.hpp"
#include <lrcnn/backend/host/words.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Numbers that bfloat16 holds, so that only the loops round.
Map exact_map(const Shape& s, std::uint64_t seed) {
  Map map = random_map(s, seed);
  for (double& v : map.value) v = static_cast<double>(bfloat16(v));
  return map;
}
/// What a layer's three passes give, stored elements in order.
struct Results {
  std::vector<double> y, dx;
  std::vector<double> gradients;
};
template <class T>
std::vector<double> elements(const Slab<T>& slab) {
  CHECK(slab.intact());
  std::vector<double> list;
  const View<T> v = slab.view();
  for (Index i = 0; i < v.n; ++i)
    for (Index b = 0; b < v.blocks(); ++b)
      for (Index e = 0; e < v.rows * v.stride_row(); ++e) list.push_back(static_cast<double>(v.row(i, b, v.row0)[e]));
  return list;
}
template <class T>
Results results(const Node& node, Index block, const Map& x, const Map& dy, Range out) {
  Bench<T> bench(node, block, block);
  if (node.layer.kind == Kind::linear || node.layer.kind == Kind::flatten) bench.hidden = 0;
  Results r;
  const bool pool = node.layer.kind == Kind::max_pool, activation = node.layer.kind == Kind::activation;
  auto memory = bench.saved_memory(out);
  const View<std::uint8_t> saved = pool || activation ? bench.saved(memory, out) : View<std::uint8_t>{};
  r.y = elements(bench.forward(x, out, saved));
  const bool silu = activation && node.layer.activation.function == Function::silu;
  const bool reads_y = node.layer.kind == Kind::custom && rules_of(node.layer).backward(node.layer).output;   // which may be any numbers
  const bool reads_x = silu || (node.layer.kind == Kind::custom && rules_of(node.layer).backward(node.layer).input);
  r.dx = elements(bench.backward_data(dy, out, bench.reads(out), saved, reads_x ? &x : nullptr, reads_y ? &x : nullptr));
  if (bench.parameters.empty()) return r;
  auto sums = bench.backward_parameters(x, dy, out);
  sums = bench.backward_parameters(x, dy, out, &sums);
  for (const auto& sum : sums) r.gradients.insert(r.gradients.end(), sum.begin(), sum.end());
  return r;
}
/// Elements that are the nearest bfloat16 of those in float; a compiler that fuses operations in one of the two only may
/// move one in a hundred to the other neighbour.
void check_rounded(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  std::size_t near = 0, far = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool close = std::abs(got[i] - want[i]) <= std::ldexp(std::abs(want[i]), -7);
    if (got[i] != static_cast<double>(bfloat16(want[i]))) ++(close ? near : far);
  }
  CHECK(far == 0);
  CHECK(near * 100 <= got.size());
}
void law(const Layer& layer, const Shape& in) {
  const Node node = node_of(layer, in);
  CAPTURE(describe(layer));
  CAPTURE(to_string(in));
  const Map x = exact_map(in, 1), dy = exact_map(node.out, 2);
  for (const Index block : {1, 4, 8, 16})
    for (const Range out : {Range{0, node.out.h}, Range{node.out.h / 2, node.out.h}}) {
      if (out.begin > 0 && rules_of(layer).rows != RowMap::window && layer.kind != Kind::pad && layer.kind != Kind::activation) continue;
      CAPTURE(block);
      CAPTURE(out.begin);
      const Results got = results<bfloat16>(node, block, x, dy, out), want = results<float>(node, block, x, dy, out);
      check_rounded(got.y, want.y);
      if (layer.custom != &blur_layer) check_rounded(got.dx, want.dx);   // which adds up in bfloat16
      REQUIRE(got.gradients.size() == want.gradients.size());
      double worst = 0;
      for (std::size_t i = 0; i < got.gradients.size(); ++i)
        worst = std::max(worst, std::abs(got.gradients[i] - want.gradients[i]) / std::max(1.0, std::abs(want.gradients[i])));
      CHECK(worst <= 1e-5);
    }
}
Layer conv(const Window& window, Index groups = 1, bool bias = true) {
  return {.kind = Kind::conv, .window = window, .channels = 6, .groups = groups, .bias = bias};
}
}   // namespace
TEST_CASE("every kind of layer in bfloat16 gives its result in float, rounded once") {
  const Shape map{2, 6, 9, 11}, wide{1, 6, 3, 2500};   // wide: rows longer than are summed up at once
  for (const Shape& in : {map, wide}) {
    law(conv({.kernel = 3, .pad = 1}), in);
    law({.kind = Kind::max_pool, .window = {.kernel = 3, .stride = 2, .pad = 1}}, in);
    law({.kind = Kind::avg_pool, .window = {.kernel = 3, .pad = 1}}, in);
    law({.kind = Kind::activation, .activation = {Function::relu, 0}}, in);
    law({.kind = Kind::global_avg_pool}, in);
  }
  law(conv({.kernel = {2, 3}, .stride = {2, 3}, .pad = {1, 0, 2, 1}}, 2, false), map);
  law(conv({.kernel = 3, .pad = 2, .dilation = 2}, 6), map);
  law({.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}}, map);
  law({.kind = Kind::avg_pool, .window = {.kernel = 3, .stride = 2, .pad = 1}, .count_padding = false}, map);
  law({.kind = Kind::activation, .activation = {Function::leaky_relu, 0.3}}, map);
  law({.kind = Kind::activation, .activation = {Function::silu, 0}}, map);
  law({.kind = Kind::flatten}, map);
  law({.kind = Kind::linear, .channels = 7, .bias = true}, {3, 50, 1, 1});
  law({.kind = Kind::linear, .channels = 5, .bias = false}, {2, 4500, 1, 1});
  law(Softplus::layer(), map);
  law(Blur<>::layer(), map);
  law(Tanh::layer(), map);
}
TEST_CASE("a global average in bfloat16 that gets its rows slab by slab is rounded once") {
  const Node node = node_of({.kind = Kind::global_avg_pool}, {2, 5, 12, 7});
  const Map x = exact_map(node.in, 3);
  for (const Index block : {1, 16}) {
    Slab<bfloat16> y(node.out, {0, 1}, block, 0);
    std::vector<double> sums(10);
    for (const Range rows : {Range{0, 5}, Range{5, 6}, Range{6, 12}}) {
      const Slab<bfloat16> from(x, rows, block);
      Operands<bfloat16> o;
      o.op = Op::forward, o.node = &node, o.accumulate = rows.begin > 0, o.sums = sums.data();
      o.x = from.view(), o.y = y.view();
      host::run(o);
    }
    for (Index i = 0; i < 2; ++i)
      for (Index c = 0; c < 5; ++c) {
        double sum = 0;
        for (Index e = 0; e < 12 * 7; ++e) sum += x.at(i, c, e / 7, e % 7);
        CHECK(y.view()(i, c, 0, 0) == static_cast<bfloat16>(static_cast<float>(sum / 84)));
      }
  }
}
TEST_CASE("rows that are added are rounded once, and words round as elements do") {
  const Shape s{1, 3, 2, 301};
  const Map a = exact_map(s, 4), b = exact_map(s, 5);
  const Slab<bfloat16> x(a, {0, 2}, 1), y(b, {0, 2}, 1);
  Operands<bfloat16> o;
  o.op = Op::add, o.x = x.view(), o.y = y.view();
  host::run(o);
  for (Index c = 0; c < 3; ++c)
    for (Index e = 0; e < 602; ++e)
      CHECK(y.view()(0, c, e / 301, e % 301).bits() ==
            bfloat16(static_cast<float>(a.at(0, c, e / 301, e % 301)) + static_cast<float>(b.at(0, c, e / 301, e % 301))).bits());
  CHECK((x.intact() && y.intact()));
  using W = host::Words<bfloat16, 16>;
  const Random random(12);
  bool good = true;
  for (std::uint64_t i = 0; i < 100000; i += 16) {
    std::array<float, 16> values{};
    std::array<bfloat16, 16> stored{};
    for (std::size_t l = 0; l < 16; ++l) {
      const std::uint64_t pick = random.below(i + l, 0x100000000);
      const auto bits = static_cast<std::uint32_t>(pick % 5 == 0 ? 0x7f800000 + pick % 3 - 1 : pick % 5 == 1 ? (pick & 0xffff0000) + 0x8000 : pick);
      std::memcpy(&values[l], &bits, 4);
    }
    for (Index l = 0; l < 16; l += W::width) host::store_word(stored.data() + l, host::load_word<W::Value>(values.data() + l));
    for (std::size_t l = 0; l < 16; ++l) good = good && stored[l].bits() == bfloat16(values[l]).bits();
    for (Index l = 0; l < 16; l += W::width) host::store_word(values.data() + l, host::load_word<W::Value>(stored.data() + l));
    for (std::size_t l = 0; l < 16; ++l) {
      const auto bits = static_cast<std::uint32_t>(stored[l].bits()) << 16;
      good = good && std::memcmp(&bits, &values[l], 4) == 0;
    }
  }
  CHECK(good);
}
TEST_CASE("rows of a batch are rounded on their way into a slab, however large they are") {
  for (const Shape& s : {Shape{2, 5, 9, 13}, Shape{1, 3, 4, 30000}, Shape{1, 20, 300, 40}}) {
    const Random random(6);
    std::vector<float> pixels(static_cast<std::size_t>(s.count()));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(random.normal(i));
    const MemorySource<float> source(pixels.data(), s);
    const View<const float> all = dense_view<const float>(pixels.data(), s.n, s.c, {0, s.h}, s.w);
    Reference<bfloat16> backend;
    for (const Index block : {1, 16}) {
      const Slab<bfloat16> slab(s, {1, s.h - 1}, block);
      backend.load(source, 0, slab.view());
      Map want(s);
      for (Index i = 0; i < s.n; ++i)
        for (Index c = 0; c < s.c; ++c)
          for (Index e = 0; e < s.h * s.w; ++e) want.at(i, c, e / s.w, e % s.w) = static_cast<double>(bfloat16(all(i, c, e / s.w, e % s.w)));
      CHECK(slab.difference(want) == 0);
    }
  }
}
