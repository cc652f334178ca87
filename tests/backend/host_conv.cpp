// Convolution against its formula, on every small window; slabs against whole maps; blocked storage against plain.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Map formula(const Bench<double>& b, const Map& x) {
  Map y(b.node.out);
  const Index c_group = b.node.in.c / b.node.layer.groups;
  const Window& w = b.node.layer.window;
  if (b.node.layer.bias)
    for (Index i = 0; i < y.shape.n; ++i)
      for (Index k = 0; k < y.shape.c; ++k)
        for (Index e = 0; e < y.shape.h * y.shape.w; ++e) y.at(i, k, e / y.shape.w, e % y.shape.w) = b.parameters[1][static_cast<std::size_t>(k)];
  each_tap(b.node, [&](Index i, Index k, Index p, Index q, Index c, Index r, Index s, Index h, Index column) {
    const auto at = static_cast<std::size_t>(((k * c_group + c % c_group) * w.kernel.h + r) * w.kernel.w + s);
    if (x.inside(h, column)) y.at(i, k, p, q) += b.parameters[0][at] * x.at(i, c, h, column);
  });
  return y;
}
/// Gradients of <dy, y> from output rows `out`.
struct Gradients {
  Map dx;
  std::vector<double> dw, db;
};
Gradients formula_backward(const Bench<double>& b, const Map& x, const Map& dy, Range out) {
  Gradients g{Map(b.node.in), std::vector<double>(b.parameters[0].size()), std::vector<double>(static_cast<std::size_t>(b.node.out.c))};
  const Index c_group = b.node.in.c / b.node.layer.groups;
  const Window& w = b.node.layer.window;
  each_tap(b.node, [&](Index i, Index k, Index p, Index q, Index c, Index r, Index s, Index h, Index column) {
    if (!out.contains({p, p + 1}) || !x.inside(h, column)) return;
    const auto at = static_cast<std::size_t>(((k * c_group + c % c_group) * w.kernel.h + r) * w.kernel.w + s);
    g.dx.at(i, c, h, column) += b.parameters[0][at] * dy.at(i, k, p, q);
    g.dw[at] += dy.at(i, k, p, q) * x.at(i, c, h, column);
  });
  for (Index i = 0; i < dy.shape.n; ++i)
    for (Index k = 0; k < dy.shape.c; ++k)
      for (Index p = out.begin; p < out.end; ++p)
        for (Index q = 0; q < dy.shape.w; ++q) g.db[static_cast<std::size_t>(k)] += dy.at(i, k, p, q);
  return g;
}
/// Everything that must hold for one convolution in one storage.
void check_conv(const Bench<double>& b, std::uint64_t seed) {
  CAPTURE(describe(b.node.layer));
  CAPTURE(to_string(b.node.in));
  CAPTURE(b.x_block);
  CAPTURE(b.y_block);
  const Map x = random_map(b.node.in, seed), dy = random_map(b.node.out, seed + 1);
  const Map y = formula(b, x);
  const Slab<double> whole = b.forward(x, b.all_out());
  CHECK(whole.difference(y) < 1e-12);
  for (const auto& cuts : cuts_of(b.node.out.h)) {
    std::vector<std::vector<double>> sums;
    for (const Range out : cuts) {
      const Slab<double> slab = b.forward(x, out);
      CHECK((slab.intact() && same_bits(slab.view(), whole.view(), out)));
      const Gradients g = formula_backward(b, x, dy, out);
      const Range need = b.reads(out);
      CHECK(b.backward_data(dy, out, need).difference(g.dx) < 1e-12);
      const Range more{std::max<Index>(0, need.begin - 1), std::min(b.node.in.h, need.end + 2)};
      CHECK(b.backward_data(dy, out, more).difference(g.dx) < 1e-12);
      const auto written = b.backward_parameters(x, dy, out);
      CHECK(worst(g.dw, written[0]) < 1e-12);
      if (b.node.layer.bias) CHECK(worst(g.db, written[1]) < 1e-12);
      sums = sums.empty() ? written : b.backward_parameters(x, dy, out, &sums);
    }
    const Gradients all = formula_backward(b, x, dy, b.all_out());
    CHECK(worst(all.dw, sums[0]) < 1e-12);
    if (b.node.layer.bias) CHECK(worst(all.db, sums[1]) < 1e-12);
  }
}
/// Forward gives slabs the bits of the whole map; forward and backward give any number of threads the bits of one.
template <class T>
void check_bits(Bench<T> b) {
  const Range rows = b.all_out();   // of the input, too
  const Map x = random_map(b.node.in, 5), dy = random_map(b.node.out, 6);
  const auto whole = b.forward(x, rows);
  const auto dx = b.backward_data(dy, rows, rows);
  const auto g = b.backward_parameters(x, dy, rows);
  for (const auto& cuts : cuts_of(rows.end))
    for (const Range out : cuts) CHECK(same_bits(b.forward(x, out).view(), whole.view(), out));
  for (const int threads : {2, 3, 8}) {
    b.threads = threads;
    CHECK(same_bits(b.forward(x, rows).view(), whole.view(), rows));
    CHECK(same_bits(b.backward_data(dy, rows, rows).view(), dx.view(), rows));
    CHECK(b.backward_parameters(x, dy, rows) == g);
  }
}
}   // namespace
TEST_CASE("a convolution follows its formula for every small window, forward and backward, whole and in slabs") {
  std::uint64_t seed = 0;
  Index cases = 0;
  for (Index kernel = 1; kernel <= 4; ++kernel)
    for (Index stride = 1; stride <= 5; ++stride)
      for (Index dilation = 1; dilation <= (kernel == 1 ? 1 : 3); ++dilation)
        for (Index top = 0; top <= 3; ++top)
          for (Index bottom = 0; bottom <= 2; ++bottom)
            for (const Index h : {1, 2, 5, 8}) {
              ++seed;
              Layer layer{.kind = Kind::conv, .channels = 2, .bias = seed % 2 == 0};
              const Index across = static_cast<Index>(seed % 4) + 1, w = 3 + static_cast<Index>(seed % 5);
              layer.window = {.kernel = {kernel, across},
                              .stride = {stride, 1 + static_cast<Index>(seed % 3)},
                              .pad = {top, bottom, static_cast<Index>(seed % 3), static_cast<Index>(seed / 3 % 3)},
                              .dilation = {dilation, 1 + static_cast<Index>(seed / 2 % 2)}};
              const Shape in{1, 2, h, w};
              if (fault_of(layer, in) != Fault::none) continue;
              ++cases;
              const Index block = seed % 3 == 0 ? 16 : 1;
              check_conv(Bench<double>(node_of(layer, in), block, block, seed), seed);
            }
  CHECK(cases > 1000);
}
TEST_CASE("a convolution follows its formula for every small window across") {
  std::uint64_t seed = 0;
  for (Index kernel = 1; kernel <= 4; ++kernel)
    for (Index stride = 1; stride <= 5; ++stride)
      for (Index dilation = 1; dilation <= (kernel == 1 ? 1 : 3); ++dilation)
        for (Index left = 0; left <= 3; ++left)
          for (Index right = 0; right <= 2; ++right)
            for (const Index w : {1, 2, 7}) {
              ++seed;
              Layer layer{.kind = Kind::conv, .channels = 2};
              layer.window = {.kernel = {2, kernel}, .stride = {1, stride}, .pad = {1, 0, left, right}, .dilation = {1, dilation}};
              const Shape in{1, 1, 3, w};
              if (fault_of(layer, in) != Fault::none) continue;
              check_conv(Bench<double>(node_of(layer, in), seed % 2 == 0 ? 16 : 1, 1, seed), seed);
            }
}
TEST_CASE("groups, depthwise and blocks of any size") {
  struct Channels {
    Index in, out, groups;
  };
  for (const Channels c : {Channels{4, 6, 2}, {6, 6, 6}, {3, 9, 3}, {6, 4, 2}, {17, 33, 1}, {20, 20, 20}, {5, 18, 1}})
    for (const auto& [xb, yb] : std::vector<std::pair<Index, Index>>{{1, 1}, {16, 16}, {1, 16}, {16, 1}, {8, 8}, {4, 3}}) {
      Layer layer{.kind = Kind::conv, .channels = c.out, .groups = c.groups, .bias = true};
      layer.window = {.kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 1, 0, 1}};
      check_conv(Bench<double>(node_of(layer, {2, c.in, 5, 4}), xb, yb), 11);
    }
}
TEST_CASE("pointwise convolutions from blocks to a few plain channels have loops of their own") {
  for (const Index block : {8, 16})
    for (const Index in : {5, 16, 40})
      for (const Index out : {1, 2, 3, 4}) {
        Layer layer{.kind = Kind::conv, .channels = out, .bias = out % 2 == 0};
        const Bench<double> b(node_of(layer, {2, in, 7, 70}), block, 1);   // more columns than go through registers at a time
        Operands<double> o;
        o.op = Op::backward_data;
        o.node = &b.node;
        o.dx.block = block;
        CHECK(host::is_pointwise(o));
        check_conv(b, 17);
      }
  Layer strided{.kind = Kind::conv, .channels = 2};
  strided.window = {.kernel = 1, .stride = 2};
  check_conv(Bench<double>(node_of(strided, {1, 20, 5, 6}), 16, 1), 18);
}
TEST_CASE_TEMPLATE("pointwise loops give the same bits for any slab and any number of threads", T, float, double) {
  Layer layer{.kind = Kind::conv, .channels = 2, .bias = true};
  check_bits(Bench<T>(node_of(layer, {2, 40, 13, 300}), 16, 1));
}
TEST_CASE("a bias's gradient over many pixels is as exact as one over few") {
  // One accumulator of floats stops growing at 2^24 times what is added.
  for (const Index block : {1, 16}) {
    Layer layer{.kind = Kind::conv, .channels = block, .bias = true};
    const Node node = node_of(layer, {1, 1, 1, 1});
    const Index rows = 5000, columns = block == 1 ? 5000 : 1000;
    const std::vector<float> dy(static_cast<std::size_t>(rows * columns * block), 0.1f);
    std::vector<float> db(static_cast<std::size_t>(block), 1.f);
    Operands<float> o;
    o.node = &node;
    o.op = Op::backward_parameters;
    o.dy = dense_view(dy.data(), 1, block, Range{0, rows}, columns, block);
    o.d_parameters[1] = db.data();
    for (const bool add : {false, true}) {
      o.accumulate = add;
      host::bias_gradient(o, 1);
      const double expected = (add ? 2 : 1) * static_cast<double>(0.1f) * static_cast<double>(rows * columns);
      for (const float gradient : db) CHECK(gradient == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}
TEST_CASE("a bias's gradient has the same bits however many channels lie side by side") {
  for (const Index channels : {63, 64, 65, 128, 200}) {
    Layer layer{.kind = Kind::conv, .channels = channels, .bias = true};
    const Node node = node_of(layer, {2, 1, 7, 301});
    const Map dy = random_map(node.out, 5);
    const auto gradient = [&](Index block, int threads) {
      const Slab<float> slab(dy, {1, 6}, block);
      std::vector<float> db(static_cast<std::size_t>(channels), 1.f);
      Operands<float> o;
      o.node = &node;
      o.op = Op::backward_parameters;
      o.dy = slab.view();
      o.d_parameters[1] = db.data();
      o.accumulate = true;
      host::bias_gradient(o, threads);
      return db;
    };
    const std::vector<float> expected = gradient(1, 1);
    for (const Index block : {Index{16}, channels, channels + 70})
      for (const int threads : {1, 3}) CHECK((gradient(block, threads) == expected));
  }
}
TEST_CASE("backward is the adjoint of forward") {
  Layer layer{.kind = Kind::conv, .channels = 3};
  layer.window = {.kernel = {3, 2}, .stride = {2, 3}, .pad = {2, 0, 1, 1}, .dilation = {2, 1}};
  const Bench<double> b(node_of(layer, {2, 4, 9, 10}), 16, 16);
  const Map x = random_map(b.node.in, 1), dy = random_map(b.node.out, 2);
  const auto dot = [](const Map& m, const View<double>& v) {
    double sum = 0;
    for (Index i = 0; i < v.n; ++i)
      for (Index c = 0; c < v.c; ++c)
        for (Index y = 0; y < v.rows; ++y)
          for (Index q = 0; q < v.w; ++q) sum += m.at(i, c, y, q) * v(i, c, y, q);
    return sum;
  };
  const double forward = dot(dy, b.forward(x, b.all_out()).view());
  CHECK(dot(x, b.backward_data(dy, b.all_out(), {0, 9}).view()) == doctest::Approx(forward).epsilon(1e-13));
  const auto dw = b.backward_parameters(x, dy, b.all_out())[0];
  double with_w = 0;
  for (std::size_t i = 0; i < dw.size(); ++i) with_w += dw[i] * b.parameters[0][i];
  CHECK(with_w == doctest::Approx(forward).epsilon(1e-13));
}
TEST_CASE("a slab wholly in padding is the bias, and its gradients are zero") {
  Layer layer{.kind = Kind::conv, .channels = 3, .bias = true};
  layer.window = {.kernel = 2, .stride = 1, .pad = 4};
  const Bench<double> b(node_of(layer, {1, 2, 2, 3}), 16, 16);
  const Map x = random_map(b.node.in, 3), dy = random_map(b.node.out, 4);
  const Range out{0, 2};
  REQUIRE(b.reads(out).empty());
  const Slab<double> y = b.forward(x, out);
  for (Index k = 0; k < 3; ++k) CHECK(y.view()(0, k, 1, 2) == b.parameters[1][static_cast<std::size_t>(k)]);
  CHECK(b.backward_data(dy, out, {0, 0}).intact());
  CHECK(b.backward_data(dy, out, {0, 2}).difference(Map(b.node.in)) == 0);
  const auto g = b.backward_parameters(x, dy, out);
  CHECK(worst(std::vector<double>(g[0].size()), g[0]) == 0);
  CHECK(worst(formula_backward(b, x, dy, out).db, g[1]) < 1e-13);
}
TEST_CASE_TEMPLATE("slabs give the bits of the whole map, and so does any number of threads", T, float, double) {
  Layer layer{.kind = Kind::conv, .channels = 20, .bias = true};
  layer.window = {.kernel = 3, .pad = 1};
  for (const Index block : {1, 16}) check_bits(Bench<T>(node_of(layer, {2, 19, 13, 37}), block, block));
}
