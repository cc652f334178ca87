// Activations: values, mask bits, in place, backward from every source that the plan may choose.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Layer activation(Function function, double slope = 0) {
  Layer layer;
  layer.activation = {function, slope};
  return layer;
}
double value(const Activation& a, double x) {
  switch (a.function) {
    case Function::silu: return x / (1 + std::exp(-x));
    case Function::relu6: return std::min(std::max(x, 0.0), 6.0);
    case Function::gelu: return x * (0.5 * (1 + std::erf(x * std::sqrt(0.5))));
    case Function::hardswish: return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
    case Function::sigmoid: return 1 / (1 + std::exp(-x));
    case Function::hardsigmoid: return std::min(std::max(x + 3, 0.0), 6.0) / 6;
    default: return x > 0 ? x : a.slope * x;
  }
}
bool from_sign(const Activation& a) { return a.function == Function::relu || a.function == Function::leaky_relu; }
double derivative(const Activation& a, double x) {
  if (from_sign(a)) return x > 0 ? 1 : a.slope;
  if (a.function == Function::relu6 && (x == 0 || x == 6)) return 0;   // where finite differences find something else
  const double e = 1e-6;
  return (value(a, x + e) - value(a, x - e)) / (2 * e);
}
Map applied(const Activation& a, const Map& x) {
  Map y = x;
  for (double& e : y.value) e = value(a, e);
  return y;
}
Map applied_backward(const Activation& a, const Map& x, const Map& dy, Range rows) {
  Map dx(x.shape);
  for (Index i = 0; i < x.shape.n; ++i)
    for (Index c = 0; c < x.shape.c; ++c)
      for (Index y = rows.begin; y < rows.end; ++y)
        for (Index q = 0; q < x.shape.w; ++q) dx.at(i, c, y, q) = derivative(a, x.at(i, c, y, q)) * dy.at(i, c, y, q);
  return dx;
}
const std::vector<Layer> all{activation(Function::relu),
                             activation(Function::leaky_relu, 0.125),
                             activation(Function::leaky_relu, -0.25),
                             activation(Function::silu),
                             activation(Function::relu6),
                             activation(Function::gelu),
                             activation(Function::hardswish),
                             activation(Function::sigmoid),
                             activation(Function::hardsigmoid)};
/// Arguments that reach beyond every function's bends.
Map wide_map(const Shape& s, std::uint64_t seed, bool ties = false) {
  Map map = random_map(s, seed, ties);
  for (double& v : map.value) v *= 4;
  return map;
}
}   // namespace
TEST_CASE("activations follow their formulas, in every width and block, and keep the bits x > 0") {
  for (const Layer& layer : all)
    for (const Index block : {1, 8, 16, 3})
      for (const Index w : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33}) {
        CAPTURE(describe(layer));
        CAPTURE(block);
        CAPTURE(w);
        const Bench<double> b(node_of(layer, {2, 5, 3, w}), block, block);
        const Activation& a = layer.activation;
        Map x = wide_map(b.node.in, 3, w % 2 == 0);   // zeros among them
        x.at(0, 0, 1, 0) = -0.0;
        const Map dy = random_map(b.node.out, 4), y = applied(a, x);
        const bool sign = from_sign(a);
        for (const Range rows : {Range{0, 3}, Range{1, 2}, Range{2, 2}}) {
          auto memory = b.saved_memory(rows), alone = memory;
          const auto saved = b.saved(memory, rows);
          CHECK(b.forward(x, rows, saved).difference(y) < 1e-15);
          CHECK(b.forward(x, rows).difference(y) < 1e-15);
          bool bits = true;
          for (Index i = 0; i < 2; ++i)
            for (Index cb = 0; cb < ceil_div(5, block); ++cb)
              for (Index row = rows.begin; row < rows.end; ++row)
                for (Index e = 0; e < round_up(w * block, 8); ++e) {
                  const Index c = cb * block + e % block;
                  const bool positive = e < w * block && c < 5 && x.at(i, c, row, e / block) > 0;
                  bits = bits && ((saved.row(i, cb, row)[e / 8] >> (e % 8) & 1) != 0) == positive;
                }
          CHECK(bits);
          const Slab<double> from(x, rows, block);
          Operands<double> o;
          o.op = Op::forward;
          o.x = from.view();
          o.saved = b.saved(alone, rows);
          b.run(o);
          CHECK(memory == alone);
          const Map dx = applied_backward(a, x, dy, rows);
          const double limit = sign ? 0 : 1e-9;   // a finite difference
          CHECK(b.backward_data(dy, rows, rows, {}, &x).difference(dx) <= limit);
          if (sign) CHECK(b.backward_data(dy, rows, rows, saved).difference(dx) <= limit);
          if (sign && a.slope >= 0) CHECK(b.backward_data(dy, rows, rows, {}, nullptr, &y).difference(dx) <= limit);
          if (sign) CHECK(b.backward_data(dy, rows, {0, 3}, saved).difference(dx) <= limit);   // zeros elsewhere
        }
      }
}
TEST_CASE("in place, forward and backward give the same") {
  for (const Layer& layer : all)
    for (const Index block : {1, 16}) {
      CAPTURE(describe(layer));
      const Bench<double> b(node_of(layer, {2, 5, 4, 7}), block, block);
      const Map x = random_map(b.node.in, 3), dy = random_map(b.node.out, 4);
      const Range rows{1, 4};
      auto memory = b.saved_memory(rows), other = memory;
      const Slab<double> apart = b.forward(x, rows, b.saved(memory, rows));
      const Slab<double> both(x, rows, block);
      Operands<double> o;
      o.op = Op::forward;
      o.x = both.view();
      o.y = both.view();
      o.saved = b.saved(other, rows);
      b.run(o);
      CHECK((both.intact() && same_bits(both.view(), apart.view(), rows)));
      CHECK(memory == other);
      const Slab<double> down(dy, rows, block), values(x, rows, block);
      o = {};
      o.op = Op::backward_data;
      o.dy = down.view();
      o.dx = down.view();
      if (!from_sign(layer.activation)) o.x = values.view();
      else o.saved = b.saved(memory, rows);
      b.run(o);
      CHECK(down.difference(applied_backward(layer.activation, x, dy, rows)) < 1e-9);
    }
}
TEST_CASE("what is not a number passes through every activation; large arguments stay finite") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(ReluFunctor{}.value(nan)));
  CHECK(std::isnan(LeakyReluFunctor<double>{0.5}.value(nan)));
  CHECK(std::isnan(SiluFunctor{}.value(nan)));
  CHECK(std::isnan(Relu6Functor{}.value(nan)));
  CHECK(std::isnan(GeluFunctor{}.value(nan)));
  CHECK(std::isnan(HardswishFunctor{}.value(nan)));
  CHECK(std::isnan(SigmoidFunctor{}.value(nan)));
  CHECK(std::isnan(HardsigmoidFunctor{}.value(nan)));
  for (const float x : {-1e30f, -1000.0f, -90.0f, 90.0f, 1e30f}) {
    CHECK(SiluFunctor{}.value(x) == (x > 0 ? doctest::Approx(x) : doctest::Approx(0.0)));
    CHECK(SiluFunctor{}.gradient(1.0f, x) == doctest::Approx(x > 0 ? 1.0 : 0.0));
    CHECK(Relu6Functor{}.value(x) == (x > 0 ? 6 : 0));
    CHECK(GeluFunctor{}.value(x) == (x > 0 ? x : 0));
    CHECK(GeluFunctor{}.gradient(1.0f, x) == (x > 0 ? 1 : 0));
    CHECK(HardswishFunctor{}.value(x) == (x > 0 ? x : 0));
    CHECK(HardswishFunctor{}.gradient(1.0f, x) == (x > 0 ? 1 : 0));
    CHECK(SigmoidFunctor{}.value(x) == doctest::Approx(x > 0 ? 1.0 : 0.0));
    CHECK(SigmoidFunctor{}.gradient(1.0f, x) == doctest::Approx(0.0));
    CHECK(HardsigmoidFunctor{}.value(x) == (x > 0 ? 1 : 0));
    CHECK(HardsigmoidFunctor{}.gradient(1.0f, x) == 0);
  }
}
TEST_CASE("derivatives at bends are those of PyTorch") {
  CHECK(Relu6Functor{}.gradient(1.0, 0.0) == 0);
  CHECK(Relu6Functor{}.gradient(1.0, 6.0) == 0);
  CHECK(HardswishFunctor{}.gradient(1.0, -3.0) == 0);
  CHECK(HardswishFunctor{}.gradient(1.0, 3.0) == 1);   // 1.5 in some older versions
  CHECK(HardsigmoidFunctor{}.gradient(1.0, -3.0) == 0);
  CHECK(HardsigmoidFunctor{}.gradient(1.0, 3.0) == 0);
  CHECK(HardsigmoidFunctor{}.gradient(1.0, 0.0) == 1.0 / 6);
  CHECK(GeluFunctor{}.gradient(1.0, 0.0) == 0.5);
}
TEST_CASE("the exponential of words is exact to two in the last place, and saturates") {
  using Value = host::Words<float, 16>::Value;
  const auto of = [](float x) {
    const Value y = host::WordExp<float>{}(Value{} + x);
    return static_cast<double>(host::load_word<float>(&y));
  };
  double most = 0;
  for (int i = -87000; i <= 88000; ++i) {
    const float x = static_cast<float>(i) / 1000;
    most = std::max(most, std::abs(of(x) / std::exp(static_cast<double>(x)) - 1));
  }
  CHECK(most < 2e-7);
  CHECK(of(0) == 1);
  CHECK(of(-1e30f) == of(-87));
  CHECK(of(1e30f) == of(88));
  CHECK(std::isnan(of(std::numeric_limits<float>::quiet_NaN())));
}
TEST_CASE_TEMPLATE("an element's value and gradient do not depend on its place", T, float, double) {
  for (const Layer& layer : all) {
    const Bench<T> one(node_of(layer, {1, 1, 1, 1})), wide(node_of(layer, {1, 1, 1, 37}));
    const Map x = random_map(wide.node.in, 3), dy = random_map(wide.node.in, 4);
    const Slab<T> y = wide.forward(x, {0, 1}), dx = wide.backward_data(dy, {0, 1}, {0, 1}, {}, &x);
    Map difference(wide.node.in);
    bool same = true;
    for (Index q = 0; q < 37; ++q) {
      Map x1({1, 1, 1, 1}), dy1 = x1;
      x1.value[0] = x.at(0, 0, 0, q), dy1.value[0] = dy.at(0, 0, 0, q);
      same = same && one.forward(x1, {0, 1}).view()(0, 0, 0, 0) == y.view()(0, 0, 0, q);
      same = same && one.backward_data(dy1, {0, 1}, {0, 1}, {}, &x1).view()(0, 0, 0, 0) == dx.view()(0, 0, 0, q);
      difference.at(0, 0, 0, q) = value(layer.activation, x.at(0, 0, 0, q));
    }
    CHECK(same);
    CHECK(y.difference(difference) < 1e-6);
  }
}
TEST_CASE("relu's gradient is 0 where the sign is not positive, whatever dy is") {
  CHECK(ReluFunctor{}.gradient(std::numeric_limits<float>::infinity(), false) == 0.0f);
  CHECK_FALSE(std::signbit(ReluFunctor{}.value(-0.0f)));
}
