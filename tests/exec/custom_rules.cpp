// Custom layers with rules of their own: a row rule as an axis, work in place, an activation applied by their step. By rows as layer by
// layer, under random policies, in three storage layouts.
#include "support/random_network.hpp"
#include "support/run_network.hpp"
#include "support/thorough.hpp"
#include <lrcnn/layer/layers.hpp>
#include <doctest/doctest.h>
#include <cmath>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class V, class F>
void each(const V& view, F f) {
  for (Index i = 0; i < view.n; ++i)
    for (Index c = 0; c < view.c; ++c)
      for (Index row = view.row0; row < view.row0 + view.rows; ++row)
        for (Index column = 0; column < view.w; ++column) f(i, c, row, column);
}
constexpr ParameterShapes taps(const Layer&, const Shape& in) {
  ParameterShapes shapes;
  shapes.add({.name = "taps", .extents = {in.c, 3, 1, 1}, .fill = 1});
  return shapes;
}
constexpr ParameterShapes shift(const Layer&, const Shape& in) {
  ParameterShapes shapes;
  shapes.add({.name = "shift", .extents = {in.c, 1, 1, 1}, .fill = 1});
  return shapes;
}
using Forward = CustomForward<double>;
using Backward = CustomBackward<double>;
/// Output row p is a weighted sum of the input's rows p - 1, p and p + 1.
struct ThreeRows {
  static constexpr Axis axis(const Layer&, const Shape&) { return {.kernel = 3, .pad_begin = 1, .pad_end = 1}; }
  template <class F>
  static void each_tap(const Shape& in, Index row, F f) {
    for (Index k = 0; k < 3; ++k)
      if (const Index from = row - 1 + k; from >= 0 && from < in.h) f(k, from);
  }
  static void forward(const Forward& a) {
    each(a.y, [&](Index i, Index c, Index row, Index q) {
      double sum = 0;
      each_tap(a.in, row, [&](Index k, Index from) { sum += a.parameters[0][c * 3 + k] * a.x(i, c, from, q); });
      a.y(i, c, row, q) = sum;
    });
  }
  static void backward_data(const Backward& a) {
    each(a.dx, [&](Index i, Index c, Index row, Index q) { a.dx(i, c, row, q) = 0; });
    each(a.dy, [&](Index i, Index c, Index row, Index q) {
      each_tap(a.in, row, [&](Index k, Index from) { a.dx(i, c, from, q) += a.parameters[0][c * 3 + k] * a.dy(i, c, row, q); });
    });
  }
  static void backward_parameters(const Backward& a) {
    each(a.dy, [&](Index i, Index c, Index row, Index q) {
      each_tap(a.in, row, [&](Index k, Index from) { a.d_parameters[0][c * 3 + k] += a.x(i, c, from, q) * a.dy(i, c, row, q); });
    });
  }
};
/// Each row twice, the second time doubled.
struct TwiceTheRows {
  static constexpr Axis axis(const Layer&, const Shape&) { return nearest_axis(2); }
  static constexpr Shape output(const Layer&, const Shape& in, const Shape&) { return {in.n, in.c, in.h == unknown ? unknown : 2 * in.h, in.w}; }
  static double factor(Index row) { return row % 2 == 1 ? 2 : 1; }
  static void forward(const Forward& a) {
    each(a.y, [&](Index i, Index c, Index row, Index q) { a.y(i, c, row, q) = a.x(i, c, row / 2, q) * factor(row); });
  }
  static void backward_data(const Backward& a) {
    each(a.dx, [&](Index i, Index c, Index row, Index q) { a.dx(i, c, row, q) = 0; });
    each(a.dy, [&](Index i, Index c, Index row, Index q) { a.dx(i, c, row / 2, q) += a.dy(i, c, row, q) * factor(row); });
  }
};
/// tanh(x + shift), whose backward steps read the output: all of it may be in place.
struct ShiftedTanh {
  static void forward(const Forward& a) {
    each(a.y, [&](Index i, Index c, Index row, Index q) { a.y(i, c, row, q) = std::tanh(a.x(i, c, row, q) + a.parameters[0][c]); });
  }
  static double slope(double y) { return 1 - y * y; }
  static void backward_data(const Backward& a) {
    each(a.dx, [&](Index i, Index c, Index row, Index q) {
      a.dx(i, c, row, q) = a.dy.range().contains({row, row + 1}) ? slope(a.y(i, c, row, q)) * a.dy(i, c, row, q) : 0;
    });
  }
  static void backward_parameters(const Backward& a) {
    each(a.dy, [&](Index i, Index c, Index row, Index q) { a.d_parameters[0][c] += slope(a.y(i, c, row, q)) * a.dy(i, c, row, q); });
  }
};
/// sin(x), whose backward step reads the input.
struct Sine {
  static void forward(const Forward& a) {
    each(a.y, [&](Index i, Index c, Index row, Index q) { a.y(i, c, row, q) = std::sin(a.x(i, c, row, q)); });
  }
  static void backward_data(const Backward& a) {
    each(a.dx, [&](Index i, Index c, Index row, Index q) {
      a.dx(i, c, row, q) = a.dy.range().contains({row, row + 1}) ? std::cos(a.x(i, c, row, q)) * a.dy(i, c, row, q) : 0;
    });
  }
};
template <class F>
constexpr CustomLayer layer_of(const LayerRules& rules) {
  CustomLayer layer{.rules = rules, .f64 = {F::forward, F::backward_data}};
  if constexpr (requires { F::backward_parameters; }) layer.f64.backward_parameters = F::backward_parameters;
  return layer;
}
constexpr CustomLayer three = layer_of<ThreeRows>(
    {.name = "three", .rows = RowMap::own, .axis = ThreeRows::axis, .backward = reads_input, .takes_activation = true, .parameters = taps});
constexpr CustomLayer filtered = layer_of<ThreeRows>({.name = "filtered",
                                                      .rows = RowMap::own,
                                                      .axis = ThreeRows::axis,
                                                      .backward = reads_input_for_parameters,
                                                      .cheap = false,
                                                      .takes_activation = true,
                                                      .parameters = taps});
constexpr CustomLayer twice = layer_of<TwiceTheRows>(
    {.name = "twice", .rows = RowMap::own, .axis = TwiceTheRows::axis, .takes_activation = true, .output = TwiceTheRows::output});
constexpr CustomLayer shifted = layer_of<ShiftedTanh>({.name = "shifted",
                                                       .backward = reads_output,
                                                       .overwrites_input = true,
                                                       .overwrites_gradient = true,
                                                       .takes_activation = true,
                                                       .parameters = shift});
constexpr CustomLayer dear = layer_of<ShiftedTanh>(
    {.name = "dear", .backward = reads_input_and_output, .cheap = false, .overwrites_input = true, .overwrites_gradient = true, .parameters = shift});
constexpr CustomLayer sine =
    layer_of<Sine>({.name = "sine", .backward = reads_input, .overwrites_input = true, .overwrites_gradient = true, .takes_activation = true});
/// Such layers among convolutions, pools and activations; heights stay below sixty.
RandomNetwork custom_network(Dice& dice) {
  RandomNetwork net{{dice.upto(1, 3), dice.upto(1, 5), dice.upto(4, 24), dice.upto(1, 5)}, {}};
  Index height = net.input.h;
  const auto activation = [&] {
    Layer y;
    y.activation.function = dice.pick({Function::relu, Function::leaky_relu, Function::silu, Function::sigmoid});
    if (y.activation.function == Function::leaky_relu) y.activation.slope = dice.chance(0.6) ? 0.125 : -0.25;
    return y;
  };
  for (Index count = dice.upto(2, 8); count > 0; --count) {
    if (const Index what = dice.upto(0, 9); what < 6) {
      const CustomLayer* const custom = dice.pick({&three, &filtered, &twice, &shifted, &dear, &sine});
      if (custom == &twice && height > 30) continue;
      if (custom == &twice) height *= 2;
      net.layers.push_back({.kind = Kind::custom, .custom = custom});
      if (dice.chance(0.6)) net.layers.push_back(activation());
    } else if (what < 9) {
      net.layers.push_back({.kind = Kind::conv, .window = {.kernel = {3, 1}, .pad = Pad(1, 1, 0, 0)}, .channels = dice.upto(1, 5), .bias = true});
    } else if (height >= 6) {
      net.layers.push_back({.kind = Kind::max_pool, .window = {.kernel = {2, 1}, .stride = {2, 1}}});
      height /= 2;
    }
  }
  net.layers.push_back({.kind = dice.chance(0.5) ? Kind::global_avg_pool : Kind::flatten});
  net.layers.push_back({.kind = Kind::linear, .channels = 3, .bias = true});
  return net;
}
double apart(const Outcome<double>& a, const Outcome<double>& b) {
  double difference = 0, norm = 1e-12;
  const auto add = [&](const std::vector<double>& x, const std::vector<double>& y) {
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double d = x[i] - y[i];
      difference += std::isnan(d) ? INFINITY : d * d, norm += x[i] * x[i];
    }
  };
  add(a.output, b.output), add(a.gradients, b.gradients), add(a.input_gradient, b.input_gradient);
  return std::sqrt(difference / norm);
}
}   // namespace
TEST_CASE("custom layers with rules of their own: by rows as layer by layer") {
  Reference<double> plain(1);
  Reference<double, 4> blocked(1);
  Reference<double, 0> channels_last(1);
  Index runs = 0, fused = 0, in_place = 0, own_rows = 0;
  for (std::uint64_t seed = 1; seed <= cases_to_do<std::uint64_t>(500, 120); ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const RandomNetwork net = custom_network(dice);
    const Problem<double> problem(net.layers, net.input, seed);
    PolicySpec column;
    column.workspace_bytes = 0;
    const Outcome<double> wanted = run_once(problem, column, plain);
    const auto try_on = [&](auto& backend) {
      const PolicySpec policy = random_policy(dice, net);
      CAPTURE(to_string(policy));
      try {
        const Plan plan = make_plan(problem.table, policy, std::remove_reference_t<decltype(backend)>::target, {.input_gradient = true});
        for (const Step& s : plan.steps) {
          if (s.layer < 0 || s.op != Op::forward || plan.table.node(s.layer).layer.kind != Kind::custom) continue;
          fused += s.activates, in_place += s.x.buffer == s.y.buffer;
          own_rows += rules_of(plan.table.node(s.layer).layer).rows == RowMap::own && s.slab > 0;
        }
        const auto problems = check_plan(plan);
        CHECK((problems.empty() ? "" : problems[0]) == "");
        CHECK(apart(wanted, run_once(problem, policy, backend)) < 1e-11);
        ++runs;
      } catch (const PlanError&) {   // too few rows for so many slabs
      }
    };
    try_on(plain), try_on(blocked), try_on(channels_last);
  }
  CHECK(runs > 200);
  CHECK(fused > 100);
  CHECK(in_place > 100);
  CHECK(own_rows > 100);
}
