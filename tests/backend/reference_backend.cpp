// The reference backend as a Backend: its storage rules, what it refuses, gradients against finite differences.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
static_assert(Backend<Reference<>>);
static_assert(Backend<Reference<float>>);
static_assert(Backend<Reference<double, 16>>);
static_assert(Backend<Reference<long double>>);
static_assert(Reference<>::target == Target{.element_bytes = 8, .uses_workspace = false});
static_assert(Reference<float, 16, 4>::target ==
              Target{.element_bytes = 4, .channel_block = 16, .plain_channels = 4, .uses_workspace = false, .activates = true});
static_assert(!Reference<>::target.packs_weights);
TEST_CASE("zero threads are as many as the machine offers, and absurd numbers are refused") {
  CHECK(Reference<>().threads() == 1);
  CHECK(Reference<>(0).threads() == host::thread_count(0));
  CHECK(Reference<>(0).describe() == Reference<>(host::thread_count(0)).describe());
  CHECK_THROWS_AS(Reference<>(-1), BackendError);
  CHECK_THROWS_AS(Reference<>(1 << 20), BackendError);
  CHECK(Reference<>(3).threads() == 3);
  CHECK(Reference<>::name == "reference");
}
TEST_CASE("a max pool of 256 places finds the last of them") {
  Layer layer{.kind = Kind::max_pool};
  layer.window = {.kernel = 16};
  const Bench<double> b(node_of(layer, {1, 1, 16, 16}));
  Map x(b.node.in);
  x.at(0, 0, 15, 15) = 1;
  auto memory = b.saved_memory({0, 1});
  b.forward(x, {0, 1}, b.saved(memory, {0, 1}));
  CHECK(memory[0] == 255);
  Map dy(b.node.out);
  dy.value[0] = 3;
  Map dx(b.node.in);
  dx.at(0, 0, 15, 15) = 3;
  CHECK(b.backward_data(dy, {0, 1}, {0, 16}, b.saved(memory, {0, 1})).difference(dx) == 0);
}
namespace {
/// <dy, y(x, parameters)>
double objective(const Bench<double>& b, const Map& x, const Map& dy) {
  const Slab<double> from(x, {0, x.shape.h}, b.x_block, 0);
  Slab<double> y(b.node.out, b.all_out(), b.y_block, 0);
  Operands<double> o;
  o.op = Op::forward;
  o.x = from.view();
  o.y = y.view();
  b.run(o);
  double sum = 0;
  for (Index i = 0; i < dy.shape.n; ++i)
    for (Index c = 0; c < dy.shape.c; ++c)
      for (Index p = 0; p < dy.shape.h; ++p)
        for (Index q = 0; q < dy.shape.w; ++q) sum += dy.at(i, c, p, q) * y.view()(i, c, p, q);
  return sum;
}
}   // namespace
TEST_CASE("every layer's gradients agree with finite differences") {
  std::vector<std::pair<Layer, Shape>> cases;
  const Shape in{2, 4, 6, 5};
  Layer conv{.kind = Kind::conv, .channels = 6, .groups = 2, .bias = true};
  conv.window = {.kernel = {3, 2}, .stride = {2, 1}, .pad = {2, 1, 0, 1}, .dilation = {1, 2}};
  cases.emplace_back(conv, in);
  for (const Kind kind : {Kind::max_pool, Kind::avg_pool, Kind::avg_pool}) {
    Layer pool{.kind = kind, .count_padding = cases.size() % 2 == 0};
    pool.window = {.kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 1, 1, 0}};
    cases.emplace_back(pool, in);
  }
  for (const Function f : {Function::relu, Function::leaky_relu, Function::silu}) {
    Layer layer;
    layer.activation = {f, 0.125};
    cases.emplace_back(layer, in);
  }
  cases.emplace_back(Layer{.kind = Kind::global_avg_pool}, in);
  cases.emplace_back(Layer{.kind = Kind::flatten}, in);
  cases.emplace_back(Layer{.kind = Kind::linear, .channels = 3, .bias = true}, Shape{2, 7, 1, 1});
  for (const auto& one : cases)
    for (const Index block : {1, 16}) {
      const Layer& layer = one.first;
      const Shape& shape = one.second;
      CAPTURE(describe(layer));
      const Bench<double> b(node_of(layer, shape), block, block);
      Map x = random_map(shape, 21);
      for (double& e : x.value) e += e > 0 ? 0.01 : -0.01;   // away from where a derivative jumps
      const Map dy = random_map(b.node.out, 22);
      // One step of each kind as the plan would ask for it.
      auto memory = b.saved_memory(b.all_out());
      const bool saves = layer.kind == Kind::max_pool || (layer.kind == Kind::activation && layer.activation.function != Function::silu);
      const Slab<double> from(x, {0, shape.h}, block, 0), down(dy, b.all_out(), block, 0);
      Slab<double> y(b.node.out, b.all_out(), block, 0), dx(shape, {0, shape.h}, block, 0);
      Operands<double> o;
      o.op = Op::forward;
      o.x = from.view();
      o.y = y.view();
      if (saves) o.saved = b.saved(memory, b.all_out());
      b.run(o);
      o.op = Op::backward_data;
      o.y = {};
      if (saves) o.x = {};
      o.dy = down.view();
      o.dx = dx.view();
      b.run(o);
      const double e = 1e-6;
      double most = 0;
      for (std::size_t i = 0; i < x.value.size(); ++i) {
        Map up = x, low = x;
        up.value[i] += e, low.value[i] -= e;
        const auto at = static_cast<Index>(i);
        const Index plane = shape.h * shape.w;
        const Index i_c = at / plane;
        const double got = dx.view()(i_c / shape.c, i_c % shape.c, at / shape.w % shape.h, at % shape.w);
        most = std::max(most, std::abs(got - (objective(b, up, dy) - objective(b, low, dy)) / (2 * e)));
      }
      CHECK(most < 1e-7);
      if (b.parameters.empty()) continue;
      std::vector<std::vector<double>> g;
      for (const auto& p : b.parameters) g.emplace_back(p.size(), std::numeric_limits<double>::quiet_NaN());
      o = {};
      o.op = Op::backward_parameters;
      o.x = from.view();
      o.dy = down.view();
      b.run(o, &g);
      for (std::size_t p = 0; p < g.size(); ++p)
        for (std::size_t i = 0; i < g[p].size(); ++i) {
          Bench<double> up = b, low = b;
          up.parameters[p][i] += e, low.parameters[p][i] -= e;
          CHECK(std::abs(g[p][i] - (objective(up, x, dy) - objective(low, x, dy)) / (2 * e)) < 1e-7);
        }
    }
}
