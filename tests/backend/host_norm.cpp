// Norms against their formulas: statistics from slabs in any order, forward and backward from those, from running ones, and over channels.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Over = Norm::Over;
Layer norm_layer(Over over, Index groups = 0, bool affine = true, double epsilon = 1e-5) {
  Layer layer{.kind = Kind::norm};
  layer.norm = {.over = over, .affine = affine, .groups = groups, .epsilon = epsilon};
  return layer;
}
/// Number of the mean that an element is normalised with.
std::size_t unit_of(const Node& n, Index i, Index c, Index y, Index x) {
  const Index units = statistics_units(n.layer.norm, n.in.c);
  if (n.layer.norm.over == Over::batch) return static_cast<std::size_t>(c);
  if (n.layer.norm.over == Over::group) return static_cast<std::size_t>(i * units + c / (n.in.c / units));
  return static_cast<std::size_t>((i * n.in.h + y) * n.in.w + x);
}
template <class F>
void each(const Shape& s, F f) {
  for (Index i = 0; i < s.n; ++i)
    for (Index c = 0; c < s.c; ++c)
      for (Index y = 0; y < s.h; ++y)
        for (Index x = 0; x < s.w; ++x) f(i, c, y, x);
}
using Vector = std::vector<double>;
/// Mean of a value over each unit.
Vector unit_means(const Node& n, const Map& values) {
  Vector sum(static_cast<std::size_t>(n.in.count())), count = sum;
  each(n.in, [&](Index i, Index c, Index y, Index x) {
    sum[unit_of(n, i, c, y, x)] += values.at(i, c, y, x);
    count[unit_of(n, i, c, y, x)] += 1;
  });
  for (std::size_t u = 0; u < sum.size(); ++u) sum[u] /= std::max(1.0, count[u]);
  return sum;
}
struct Formula {
  Map y, dx, normal;
  Vector mean, variance, weight, bias;   // the last two: gradients
};
/// All of a norm. `running`: mean and variance to take instead of the map's own.
Formula formula(const Node& n, const std::vector<Vector>& p, const Map& x, const Map& dy, bool running = false) {
  const bool affine = n.layer.norm.affine;
  const auto w = [&](Index c) { return affine ? p[0][static_cast<std::size_t>(c)] : 1; };
  Formula f{Map(n.in), Map(n.in), Map(n.in), unit_means(n, x), {}, Vector(static_cast<std::size_t>(n.in.c)), {}};
  f.bias = f.weight;
  Map squares(n.in), g(n.in), gn(n.in);
  each(n.in, [&](Index i, Index c, Index y, Index q) { squares.at(i, c, y, q) = std::pow(x.at(i, c, y, q) - f.mean[unit_of(n, i, c, y, q)], 2); });
  f.variance = unit_means(n, squares);
  if (running) f.mean = p[affine ? 2 : 0], f.variance = p[affine ? 3 : 1];
  each(n.in, [&](Index i, Index c, Index y, Index q) {
    const std::size_t u = unit_of(n, i, c, y, q), at = static_cast<std::size_t>(c);
    const double normal = (x.at(i, c, y, q) - f.mean[u]) / std::sqrt(f.variance[u] + n.layer.norm.epsilon), down = dy.at(i, c, y, q);
    f.normal.at(i, c, y, q) = normal;
    f.y.at(i, c, y, q) = normal * w(c) + (affine ? p[1][at] : 0);
    g.at(i, c, y, q) = w(c) * down, gn.at(i, c, y, q) = w(c) * down * normal;
    f.weight[at] += down * normal, f.bias[at] += down;
  });
  const Vector mean_g = unit_means(n, g), mean_gn = unit_means(n, gn);
  each(n.in, [&](Index i, Index c, Index y, Index q) {
    const std::size_t u = unit_of(n, i, c, y, q);
    const double taken = running ? 0 : mean_g[u] + f.normal.at(i, c, y, q) * mean_gn[u];
    f.dx.at(i, c, y, q) = (g.at(i, c, y, q) - taken) / std::sqrt(f.variance[u] + n.layer.norm.epsilon);
  });
  return f;
}
/// Images and rows of a step.
struct Piece {
  Range images, rows;
};
/// Ways to cut a map, the second and third out of order.
std::vector<std::vector<Piece>> pieces_of(const Shape& s) {
  std::vector<std::vector<Piece>> all{{{{0, s.n}, {0, s.h}}}};
  if (s.h > 1) all.push_back({{{0, s.n}, {s.h / 2, s.h}}, {{0, s.n}, {0, s.h / 2}}});
  all.emplace_back();
  for (Index i = s.n; i-- > 0;)
    for (Index y = 0; y < s.h; y += 2) all.back().push_back({{i, i + 1}, {y, std::min(y + 2, s.h)}});
  return all;
}
template <class E>
View<E> images(View<E> v, Range r) {
  v.data += r.begin * v.stride_n;
  v.n = r.size();
  return v;
}
/// A norm with its statistics, sums and gradients, poisoned.
template <class T>
struct NormBench {
  using A = master_t<T>;
  Bench<T> bench;
  std::vector<Vector> statistics_sets{};
  Vector statistics, sums;
  std::vector<std::vector<A>> gradients{};
  explicit NormBench(const Node& node, Index block, int threads = 1) : bench(node, block, block) {
    bench.threads = threads;
    const Norm& norm = node.layer.norm;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    statistics.assign(static_cast<std::size_t>(statistics_bytes(norm, node.in.c, node.in.n)) / sizeof(double), nan);
    sums.assign(static_cast<std::size_t>(sums_bytes(node.layer, node.in.c, node.in.n)) / sizeof(double), nan);
    for (auto& p : bench.parameters) gradients.emplace_back(p.size(), std::numeric_limits<A>::quiet_NaN());
    if (norm.over == Over::batch)
      for (double& v : bench.parameters.back()) v = 1.25 + v;
    for (auto& p : bench.parameters)
      for (double& v : p) v = static_cast<double>(static_cast<A>(v));
  }
  const Node& node() const { return bench.node; }
  double* set(Vector& sets, Index units, Index image) const {
    return sets.data() + (node().layer.norm.over == Over::batch ? 0 : image * Statistics::doubles(units));
  }
  double* statistics_of(Index image) { return set(statistics, statistics_units(node().layer.norm, node().in.c), image); }
  double* sums_of(Index image) { return set(sums, node().in.c, image); }
  /// Whether a piece is the first of its images' sets.
  bool first(const std::vector<Piece>& cut, std::size_t k) const {
    for (std::size_t j = 0; j < k; ++j)
      if (node().layer.norm.over == Over::batch || cut[j].images == cut[k].images) return false;
    return true;
  }
  void find_statistics(const Map& x, const std::vector<Piece>& cut) {
    for (std::size_t k = 0; k < cut.size(); ++k) {
      const Slab<T> from(x, cut[k].rows, bench.x_block);
      Operands<T> o;
      o.op = Op::statistics;
      o.x = images<const T>(from.view(), cut[k].images);
      o.accumulate = !first(cut, k);
      o.statistics = statistics_of(cut[k].images.begin);
      bench.run(o, &gradients);
    }
  }
  void find_sums(const Map& x, const Map& dy, const std::vector<Piece>& cut, bool add = false) {
    for (std::size_t k = 0; k < cut.size(); ++k) {
      const Slab<T> from(x, {0, node().in.h}, bench.x_block), down(dy, cut[k].rows, bench.x_block);
      Operands<T> o;
      o.op = Op::backward_sums;
      o.x = images<const T>(from.view(), cut[k].images);
      o.dy = images<const T>(down.view(), cut[k].images);
      o.accumulate = !first(cut, k), o.accumulate_parameters = add || k > 0;
      o.statistics = statistics_of(cut[k].images.begin), o.sums = sums_of(cut[k].images.begin);
      bench.run(o, &gradients);
    }
  }
  Slab<T> forward(const Map& x, Range rows, bool with_statistics = true, bool in_place = false) {
    const Slab<T> from(x, rows, bench.x_block);
    Slab<T> y(node().in, rows, bench.x_block);
    Operands<T> o;
    o.op = Op::forward;
    o.x = from.view();
    o.y = in_place ? from.view() : y.view();
    o.statistics = with_statistics ? statistics.data() : nullptr;
    bench.run(o);
    return in_place ? Slab<T>(std::move(const_cast<Slab<T>&>(from))) : std::move(y);
  }
  Slab<T> backward(const Map& x, const Map& dy, Range out, Range in, bool with_statistics = true, bool in_place = false) {
    const Slab<T> from(x, out, bench.x_block);
    Slab<T> down(dy, out, bench.x_block), dx(node().in, in, bench.x_block);
    Operands<T> o;
    o.op = Op::backward_data;
    o.x = from.view(), o.dy = down.view(), o.dx = in_place ? down.view() : dx.view();
    if (with_statistics) o.statistics = statistics.data(), o.sums = sums.data();
    bench.run(o);
    return in_place ? std::move(down) : std::move(dx);
  }
  Vector gradient(std::size_t p) const { return {gradients[p].begin(), gradients[p].end()}; }
};
Node norm_node(const Layer& layer, const Shape& in) { return {.layer = layer, .in = in, .out = in}; }
template <class T>
Map rounded(Map map) {
  for (double& v : map.value) v = static_cast<double>(static_cast<T>(v));
  return map;
}
double largest(const Vector& v) {
  double most = 1;
  for (const double e : v) most = std::max(most, std::abs(e));
  return most;
}
const std::vector<Shape> shapes{{3, 6, 5, 7}, {1, 32, 4, 16}, {2, 20, 3, 9}, {4, 18, 1, 1}, {1, 2, 9, 37}, {2, 48, 6, 5}};
const std::vector<Layer> with_statistics{norm_layer(Over::batch),    norm_layer(Over::batch, 0, false, 1e-3),
                                         norm_layer(Over::group, 1), norm_layer(Over::group, 2),
                                         norm_layer(Over::group, 0), norm_layer(Over::group, 2, false)};
template <class T>
constexpr double tolerance = sizeof(T) == 8   ? 1e-12
                             : sizeof(T) == 4 ? 1e-5
                                              : 4e-2;
}   // namespace
TEST_CASE_TEMPLATE("norms with statistics follow their formulas, however a map is cut and stored", T, double, float, bfloat16) {
  for (const Layer& layer : with_statistics)
    for (const Shape& in : shapes)
      for (const Index block : {1, 8, 16, 3, 20}) {
        CAPTURE(norm_name(layer.norm));
        CAPTURE(to_string(in));
        CAPTURE(block);
        const Node node = norm_node(layer, in);
        const Map x = rounded<T>(random_map(in, 3)), dy = rounded<T>(random_map(in, 4));
        NormBench<T> b(node, block);
        const Formula f = formula(node, b.bench.parameters, x, dy);
        if (in.h * in.w == 1 && layer.norm.over == Over::group && in.c == statistics_units(layer.norm, in.c)) continue;   // x = mean
        const double scale = largest(f.dx.value), limit = tolerance<T> * (in.h * in.w == 1 && layer.norm.over != Over::batch ? 10 : 1);
        for (const auto& cut : pieces_of(in)) {
          NormBench<T> one(node, block, 1), two(node, block, 2);
          one.find_statistics(x, cut), two.find_statistics(x, cut);
          CHECK(one.statistics == two.statistics);
          one.find_sums(x, dy, cut), two.find_sums(x, dy, cut);
          CHECK(one.sums == two.sums);
          if (layer.norm.affine) {
            CHECK(one.gradients[0] == two.gradients[0]);
            CHECK(worst(f.weight, one.gradient(0)) <= limit * 20);
            CHECK(worst(f.bias, one.gradient(1)) <= limit * 20);
            one.find_sums(x, dy, cut, true);
            Vector twice = f.weight;
            for (double& v : twice) v *= 2;
            CHECK(worst(twice, one.gradient(0)) <= limit * 40);
          }
          const Slab<T> whole = one.forward(x, {0, in.h}), dx = one.backward(x, dy, {0, in.h}, {0, in.h});
          CHECK(whole.difference(f.y) <= limit * 3);
          CHECK(dx.difference(f.dx) <= limit * scale * 3);
          CHECK(same_bits(whole.view(), two.forward(x, {0, in.h}).view(), {0, in.h}));
          CHECK(same_bits(dx.view(), two.backward(x, dy, {0, in.h}, {0, in.h}).view(), {0, in.h}));
          CHECK(same_bits(whole.view(), one.forward(x, {0, in.h}, true, true).view(), {0, in.h}));
          CHECK(same_bits(dx.view(), one.backward(x, dy, {0, in.h}, {0, in.h}, true, true).view(), {0, in.h}));
          for (const auto& rows : cuts_of(in.h))
            for (const Range r : rows) {
              CHECK(same_bits(whole.view(), one.forward(x, r).view(), r));
              const Slab<T> part = one.backward(x, dy, r, {0, in.h});
              CHECK(same_bits(dx.view(), part.view(), r));
              Map zeros = f.dx;
              each(in, [&](Index i, Index c, Index y, Index q) {
                if (!r.contains({y, y + 1})) zeros.at(i, c, y, q) = 0;
              });
              CHECK(part.difference(zeros) <= limit * scale * 3);
            }
        }
      }
}
TEST_CASE("statistics of slabs merge into those of the whole map, whatever the order; those of the batch are written at the end") {
  for (const Layer& layer : with_statistics)
    for (const Shape& in : shapes) {
      const Node node = norm_node(layer, in);
      const Map x = random_map(in, 5);
      NormBench<double> whole(node, 16);
      whole.find_statistics(x, pieces_of(in)[0]);
      const Formula f = formula(node, whole.bench.parameters, x, x);
      const Index units = statistics_units(layer.norm, in.c), sets = statistics_sets(layer.norm, in.n);
      for (Index s = 0; s < sets; ++s) {
        const Statistics set{whole.statistics_of(s), units};
        const double count = static_cast<double>(in.count()) / static_cast<double>(units * sets);
        CHECK(set.count() == count);
        for (Index u = 0; u < units; ++u) {
          CHECK(set.mean(u) == doctest::Approx(f.mean[static_cast<std::size_t>(s * units + u)]).epsilon(1e-13));
          CHECK(std::abs(set.deviations(u) / count - f.variance[static_cast<std::size_t>(s * units + u)]) < 1e-13);
        }
      }
      for (const auto& cut : pieces_of(in)) {
        NormBench<double> b(node, 8);
        b.find_statistics(x, cut);
        CHECK(worst(whole.statistics, b.statistics) < 1e-11);
        if (layer.norm.over != Over::batch) continue;
        const std::size_t p = layer.norm.affine ? 2 : 0;
        const double count = static_cast<double>(in.n * in.h * in.w);
        Vector unbiased = f.variance;
        unbiased.resize(static_cast<std::size_t>(in.c));
        for (double& v : unbiased) v *= count / (count - 1);
        CHECK(worst(Vector(f.mean.begin(), f.mean.begin() + in.c), b.gradient(p)) < 1e-13);
        CHECK(worst(unbiased, b.gradient(p + 1)) < 1e-13);
        NormBench<double> rest(node, 8);
        rest.find_statistics(x, {{{0, in.n}, {0, in.h - 1}}});
        if (in.h > 1) CHECK(std::isnan(rest.gradients[p][0]));
      }
    }
}
TEST_CASE("a batch of one element has variance 0, and what it is normalised to is the bias") {
  const Node node = norm_node(norm_layer(Over::batch), {1, 3, 1, 1});
  NormBench<double> b(node, 16);
  const Map x = random_map(node.in, 5);
  b.find_statistics(x, pieces_of(node.in)[0]);
  CHECK(b.gradients[3] == Vector{0, 0, 0});
  const Slab<double> y = b.forward(x, {0, 1});
  for (Index c = 0; c < 3; ++c) CHECK(std::abs(y.view()(0, c, 0, 0) - b.bench.parameters[1][static_cast<std::size_t>(c)]) < 1e-12);
}
TEST_CASE_TEMPLATE("a large mean costs no digits of the variance", T, double, float) {
  const double mean = sizeof(T) == 8 ? 1e4 : 100, deviation = sizeof(T) == 8 ? 1e-2 : 1;
  const Shape in{2, 16, 40, 64};
  for (const Index block : {1, 16})
    for (const bool outlier : {false, true}) {
      Map x = random_map(in, 9);
      for (double& v : x.value) v = static_cast<double>(static_cast<T>(mean + deviation * v));
      if (outlier)
        for (Index c = 0; c < 16; ++c) x.at(0, c, 0, 0) = 0;   // where running sums begin
      for (const Layer& layer : {norm_layer(Over::batch, 0, true, 1e-12), norm_layer(Over::group, 4, true, 1e-12)}) {
        const Node node = norm_node(layer, in);
        NormBench<T> b(node, block);
        const Map dy = random_map(in, 4);
        const Formula f = formula(node, b.bench.parameters, x, dy);
        for (const auto& cut : {pieces_of(in)[0], pieces_of(in)[1], pieces_of(in)[2]}) {
          b.find_statistics(x, cut);
          const Index units = statistics_units(layer.norm, in.c), sets = statistics_sets(layer.norm, in.n);
          for (Index s = 0; s < sets; ++s)
            for (Index u = 0; u < units; ++u) {
              const Statistics set{b.statistics_of(s), units};
              const double variance = f.variance[static_cast<std::size_t>(s * units + u)];
              CHECK(std::abs(set.deviations(u) / set.count() / variance - 1) < 1e-8);
            }
          CHECK(b.forward(x, {0, in.h}).difference(f.y) < (sizeof(T) == 8 ? 1e-7 : 1e-4));   // the formula's own mean is no better
        }
      }
    }
}
TEST_CASE_TEMPLATE("running statistics, and norms over channels, need no pass of their own", T, double, float, bfloat16) {
  for (const Layer& layer :
       {norm_layer(Over::batch), norm_layer(Over::batch, 0, false), norm_layer(Over::channels), norm_layer(Over::channels, 0, false, 1e-3)})
    for (const Shape& in : shapes)
      for (const Index block : {1, 8, 16, 3, 20}) {
        CAPTURE(norm_name(layer.norm));
        CAPTURE(to_string(in));
        CAPTURE(block);
        const Node node = norm_node(layer, in);
        const Map x = rounded<T>(random_map(in, 3)), dy = rounded<T>(random_map(in, 4));
        NormBench<T> b(node, block), two(node, block, 2);
        const bool running = layer.norm.over == Over::batch;
        const Formula f = formula(node, b.bench.parameters, x, dy, running);
        const double limit = tolerance<T> * 5, scale = largest(f.dx.value);
        const Slab<T> whole = b.forward(x, {0, in.h}, false), dx = b.backward(x, dy, {0, in.h}, {0, in.h}, false);
        CHECK(whole.difference(f.y) <= limit * largest(f.y.value));
        CHECK(dx.difference(f.dx) <= limit * scale);
        CHECK(same_bits(whole.view(), two.forward(x, {0, in.h}, false).view(), {0, in.h}));
        CHECK(same_bits(dx.view(), two.backward(x, dy, {0, in.h}, {0, in.h}, false).view(), {0, in.h}));
        CHECK(same_bits(whole.view(), b.forward(x, {0, in.h}, false, true).view(), {0, in.h}));
        CHECK(same_bits(dx.view(), b.backward(x, dy, {0, in.h}, {0, in.h}, false, true).view(), {0, in.h}));
        for (const auto& cut : cuts_of(in.h)) {
          std::vector<std::vector<master_t<T>>> sums, others;
          for (const Range r : cut) {
            CHECK(same_bits(whole.view(), b.forward(x, r, false).view(), r));
            CHECK(same_bits(dx.view(), b.backward(x, dy, r, {0, in.h}, false).view(), r));
            sums = b.bench.backward_parameters(x, dy, r, r == cut[0] ? nullptr : &sums);
            others = two.bench.backward_parameters(x, dy, r, r == cut[0] ? nullptr : &others);
          }
          if (!layer.norm.affine) continue;
          CHECK(sums[0] == others[0]);
          CHECK(worst(f.weight, Vector(sums[0].begin(), sums[0].end())) <= limit * largest(f.weight));
          CHECK(worst(f.bias, Vector(sums[1].begin(), sums[1].end())) <= limit * largest(f.bias));
        }
      }
}
TEST_CASE_TEMPLATE("an activation in the same step gives the bits of one behind it", T, double, float, bfloat16) {
  for (const Function function : {Function::relu, Function::leaky_relu, Function::silu, Function::sigmoid})
    for (const Layer& layer : {norm_layer(Over::batch), norm_layer(Over::group, 2), norm_layer(Over::channels)})
      for (const Shape& in : shapes)
        for (const Index block : {1, 8, 16, 3}) {
          CAPTURE(norm_name(layer.norm));
          CAPTURE(to_string(in));
          CAPTURE(block);
          Layer after;
          after.activation = {function, 0.125};
          const Node node = norm_node(layer, in);
          const Bench<T> activation(norm_node(after, in), block, block);
          NormBench<T> b(node, block);
          const Map x = rounded<T>(random_map(in, 3));
          if (has_statistics(layer, true)) b.find_statistics(x, pieces_of(in)[0]);
          const Range rows{in.h / 2, in.h};
          const Slab<T> apart = b.forward(x, rows, has_statistics(layer, true));
          const Slab<T> from(x, rows, block), y(in, rows, block);
          auto memory = activation.saved_memory(rows), alone = memory, wanted = memory;
          Operands<T> o;
          o.op = Op::forward;
          o.x = apart.view(), o.y = apart.view(), o.saved = activation.saved(wanted, rows);
          activation.run(o);
          o.activation = &activation.node;
          o.x = from.view(), o.y = y.view(), o.saved = activation.saved(memory, rows);
          o.statistics = has_statistics(layer, true) ? b.statistics.data() : nullptr;
          b.bench.run(o);
          CHECK((y.intact() && same_bits(y.view(), apart.view(), rows)));
          CHECK(memory == wanted);
          o.y = {}, o.saved = activation.saved(alone, rows);
          b.bench.run(o);
          CHECK(alone == wanted);
        }
}
TEST_CASE("gradients of norms are those of finite differences") {
  for (const Layer& layer : {norm_layer(Over::batch), norm_layer(Over::group, 2), norm_layer(Over::group, 0), norm_layer(Over::channels)}) {
    CAPTURE(norm_name(layer.norm));
    const Shape in{2, 4, 3, 3};
    const Node node = norm_node(layer, in);
    const bool sets = has_statistics(layer, true);
    const auto cut = pieces_of(in).back();
    Map x = random_map(in, 3);
    const Map dy = random_map(in, 4);
    NormBench<double> b(node, 8);
    const auto loss = [&] {
      if (sets) b.find_statistics(x, cut);
      const Slab<double> y = b.forward(x, {0, in.h}, sets);
      double sum = 0;
      each(in, [&](Index i, Index c, Index row, Index q) { sum += y.view()(i, c, row, q) * dy.at(i, c, row, q); });
      return sum;
    };
    const auto difference = [&](double& v) {
      const double before = v, step = 1e-5;
      v = before + step;
      const double up = loss();
      v = before - step;
      const double down = loss();
      v = before;
      return (up - down) / (2 * step);
    };
    Map dx(in);
    for (std::size_t e = 0; e < dx.value.size(); ++e) dx.value[e] = difference(x.value[e]);
    std::array<Vector, 2> gradients;
    for (std::size_t p = 0; p < 2; ++p)
      for (double& v : b.bench.parameters[p]) gradients[p].push_back(difference(v));
    loss();
    if (sets) b.find_sums(x, dy, cut);
    else b.gradients = b.bench.backward_parameters(x, dy, {0, in.h});
    CHECK(b.backward(x, dy, {0, in.h}, {0, in.h}, sets).difference(dx) < 1e-6);
    for (std::size_t p = 0; p < 2; ++p) CHECK(worst(gradients[p], b.gradient(p)) < 1e-6);
  }
}
TEST_CASE("what is not a number goes through norms to everything it is averaged with") {
  for (const Layer& layer : {norm_layer(Over::batch), norm_layer(Over::group, 2), norm_layer(Over::channels)}) {
    const Node node = norm_node(layer, {2, 4, 3, 5});
    NormBench<float> b(node, 16);
    Map x = random_map(node.in, 3);
    x.at(1, 1, 1, 1) = std::numeric_limits<double>::quiet_NaN();
    if (has_statistics(layer, true)) b.find_statistics(x, pieces_of(node.in)[0]);
    const Slab<float> y = b.forward(x, {0, 3}, has_statistics(layer, true));
    each(node.in, [&](Index i, Index c, Index row, Index q) {
      CHECK(std::isnan(y.view()(i, c, row, q)) == (unit_of(node, i, c, row, q) == unit_of(node, 1, 1, 1, 1)));
    });
  }
}
