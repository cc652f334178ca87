// Norms on the device's loops: what the host's loops make of the same rows, statistics, sums and gradients included; the same bits for
// every cut where nothing is added up, and a workspace of the size that was asked for and not a byte more.
#include "loops_case.hpp"
#include <lrcnn/backend/cudnn/loops/launch_recorder.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Over = Norm::Over;
using Vector = std::vector<double>;
Layer norm_layer(Over over, Index groups = 0, bool affine = true, double epsilon = 1e-5) {
  Layer layer{.kind = Kind::norm};
  layer.norm = {.over = over, .affine = affine, .groups = groups, .epsilon = epsilon};
  return layer;
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
/// A norm with its statistics, sums and gradients, poisoned, on either side.
template <class T>
struct NormRun {
  using A = master_t<T>;
  Node node;
  bool device;
  Index spare = 0;   ///< bytes of workspace beyond what is needed
  std::vector<std::vector<A>> parameters{}, gradients{};
  Vector statistics{}, sums{};
  NormRun(const Layer& layer, const Shape& in, bool on_device) : node{.layer = layer, .in = in, .out = in}, device(on_device) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Norm& norm = layer.norm;
    statistics.assign(static_cast<std::size_t>(statistics_bytes(norm, in.c, in.n)) / sizeof(double), nan);
    sums.assign(static_cast<std::size_t>(sums_bytes(layer, in.c, in.n)) / sizeof(double), nan);
    const Index count = (norm.affine ? 2 : 0) + (norm.over == Over::batch ? 2 : 0);
    for (Index p = 0; p < count; ++p) {
      const Vector values = random_vector(in.c, 7 + static_cast<std::uint64_t>(p));
      parameters.emplace_back(values.begin(), values.end());
      gradients.emplace_back(values.size(), std::numeric_limits<A>::quiet_NaN());
    }
    if (norm.over == Over::batch)
      for (A& v : parameters.back()) v += A(1.25);
  }
  Index set(Index image, Index units) const { return node.layer.norm.over == Over::batch ? 0 : image * Statistics::doubles(units); }
  double* statistics_of(Index image) { return statistics.data() + set(image, statistics_units(node.layer.norm, node.in.c)); }
  double* sums_of(Index image) { return sums.data() + set(image, node.in.c); }
  void run(Operands<T> o) {
    o.node = &node;
    for (std::size_t p = 0; p < parameters.size(); ++p) o.parameters[p] = parameters[p].data(), o.d_parameters[p] = gradients[p].data();
    if (!device) return host::run(o);
    o.workspace_bytes = loops::workspace_bytes(o) + spare;
    std::vector<double> workspace(static_cast<std::size_t>(o.workspace_bytes) / sizeof(double) + 9, std::nan(""));
    std::memset(workspace.data(), 0xff, workspace.size() * sizeof(double));
    o.workspace = reinterpret_cast<std::byte*>(workspace.data());
    REQUIRE(loops::covers(o));
    Tallies tallies;
    o.tallies = tallies.data();
    loops::run(on_host, o);
    CHECK(tallies.all_zero());
    const std::byte* const end = reinterpret_cast<const std::byte*>(workspace.data() + workspace.size());
    CHECK(std::all_of(o.workspace + o.workspace_bytes, const_cast<std::byte*>(end), [](std::byte b) { return b == std::byte{0xff}; }));
  }
  /// Whether a piece is the first of its images' sets.
  bool first(const std::vector<Piece>& cut, std::size_t k) const {
    for (std::size_t j = 0; j < k; ++j)
      if (node.layer.norm.over == Over::batch || cut[j].images == cut[k].images) return false;
    return true;
  }
  void find_statistics(const Map& x, const std::vector<Piece>& cut) {
    for (std::size_t k = 0; k < cut.size(); ++k) {
      const Slab<T> from(x, cut[k].rows, node.in.c);
      Operands<T> o;
      o.op = Op::statistics;
      o.x = images<const T>(from.view(), cut[k].images);
      o.accumulate = !first(cut, k);
      o.statistics = statistics_of(cut[k].images.begin);
      run(o);
    }
  }
  void find_sums(const Map& x, const Map& dy, const std::vector<Piece>& cut, bool add = false) {
    for (std::size_t k = 0; k < cut.size(); ++k) {
      const Slab<T> from(x, {0, node.in.h}, node.in.c), down(dy, cut[k].rows, node.in.c);
      Operands<T> o;
      o.op = Op::backward_sums;
      o.x = images<const T>(from.view(), cut[k].images);
      o.dy = images<const T>(down.view(), cut[k].images);
      o.accumulate = !first(cut, k), o.accumulate_parameters = add || k > 0;
      o.statistics = statistics_of(cut[k].images.begin), o.sums = sums_of(cut[k].images.begin);
      run(o);
    }
  }
  void parameter_gradients(const Map& x, const Map& dy, Range rows, bool add) {
    const Slab<T> from(x, {0, node.in.h}, node.in.c), down(dy, rows, node.in.c);
    Operands<T> o;
    o.op = Op::backward_parameters;
    o.x = from.view(), o.dy = down.view();
    o.accumulate = add;
    run(o);
  }
  Slab<T> forward(const Map& x, Range rows, bool with_statistics, Index hidden = 1, bool in_place = false) {
    Slab<T> from(x, rows, node.in.c, hidden), y(node.in, rows, node.in.c, hidden);
    Operands<T> o;
    o.op = Op::forward;
    o.x = from.view(), o.y = in_place ? from.view() : y.view();
    o.statistics = with_statistics ? statistics.data() : nullptr;
    run(o);
    return in_place ? std::move(from) : std::move(y);
  }
  Slab<T> backward(const Map& x, const Map& dy, Range out, Range in, bool with_statistics, Index hidden = 1, bool in_place = false) {
    const Slab<T> from(x, out, node.in.c, hidden);
    Slab<T> down(dy, out, node.in.c, hidden), dx(node.in, in, node.in.c, hidden);
    Operands<T> o;
    o.op = Op::backward_data;
    o.x = from.view(), o.dy = down.view(), o.dx = in_place ? down.view() : dx.view();
    if (with_statistics) o.statistics = statistics.data(), o.sums = sums.data();
    run(o);
    return in_place ? std::move(down) : std::move(dx);
  }
};
/// Largest difference, as a share of the largest value (or of 1); infinite if a number is missing on one side.
template <class V>
double apart(const V& a, const V& b) {
  double most = 0, scale = 1;
  for (std::size_t e = 0; e < a.size(); ++e) {
    if (std::isnan(a[e]) && std::isnan(b[e])) continue;
    const double d = std::abs(static_cast<double>(a[e]) - static_cast<double>(b[e]));
    most = std::isfinite(d) ? std::max(most, d) : 1e300;
    scale = std::max(scale, std::abs(static_cast<double>(a[e])));
  }
  return most / scale;
}
template <class T>
double apart(const Slab<T>& a, const Slab<T>& b) {
  if (!a.intact() || !b.intact()) return 1e300;
  Vector u, v;
  const View<T> p = a.view(), q = b.view();
  for (Index i = 0; i < p.n; ++i)
    for (Index y = p.row0; y < p.row0 + p.rows; ++y)
      for (Index e = 0; e < p.stride_row(); ++e)
        u.push_back(static_cast<double>(p.row(i, 0, y)[e])), v.push_back(static_cast<double>(q.row(i, 0, y)[e]));
  return apart(u, v);
}
template <class T>
double gradients_apart(const NormRun<T>& a, const NormRun<T>& b) {
  double most = 0;
  for (std::size_t p = 0; p < a.gradients.size(); ++p) most = std::max(most, apart(a.gradients[p], b.gradients[p]));
  return most;
}
template <class T>
constexpr double tolerance = sizeof(T) == 8   ? 1e-12
                             : sizeof(T) == 4 ? 2e-6
                                              : 1e-2;
const std::vector<Shape> shapes{{3, 6, 5, 7},  {1, 32, 4, 16}, {2, 20, 3, 9},  {4, 18, 1, 2}, {1, 2, 9, 37},
                                {2, 48, 6, 5}, {2, 8, 25, 40}, {2, 264, 7, 19}};   // the last has several parts of two blocks beside each other
const std::vector<Layer> with_statistics{norm_layer(Over::batch),    norm_layer(Over::batch, 0, false, 1e-3),
                                         norm_layer(Over::group, 1), norm_layer(Over::group, 2),
                                         norm_layer(Over::group, 0), norm_layer(Over::group, 2, false)};
}   // namespace
TEST_CASE_TEMPLATE("norms with statistics give what the host's loops give, however a map is cut", T, double, float, bfloat16, float16) {
  for (const Layer& layer : with_statistics)
    for (const Shape& in : shapes) {
      CAPTURE(norm_name(layer.norm));
      CAPTURE(to_string(in));
      const Map x = as<T>(random_map(in, 3)), dy = as<T>(random_map(in, 4));
      NormRun<T> h(layer, in, false);
      h.find_statistics(x, pieces_of(in)[0]);
      h.find_sums(x, dy, pieces_of(in)[0]);
      const Slab<T> y = h.forward(x, {0, in.h}, true), dx = h.backward(x, dy, {0, in.h}, {0, in.h}, true);
      for (const auto& cut : pieces_of(in)) {
        NormRun<T> d(layer, in, true), again(layer, in, true);
        d.find_statistics(x, cut), again.find_statistics(x, cut);
        CHECK(d.statistics == again.statistics);
        CHECK(apart(h.statistics, d.statistics) <= (sizeof(T) == 2 ? 1e-6 : 1e-12));   // of 16 bits, a few are added up in a float first
        d.find_sums(x, dy, cut), again.find_sums(x, dy, cut);
        CHECK(d.sums == again.sums);
        CHECK(apart(h.sums, d.sums) <= (sizeof(T) == 2 ? 1e-6 : 1e-11));
        CHECK(gradients_apart(h, d) <= (sizeof(T) == 8 ? 1e-12 : 1e-6));
        if (layer.norm.affine) {
          again.find_sums(x, dy, cut, true);
          for (auto& g : h.gradients[0]) g *= 2;
          CHECK(apart(h.gradients[0], again.gradients[0]) <= (sizeof(T) == 8 ? 1e-12 : 1e-6));
          for (auto& g : h.gradients[0]) g /= 2;
        }
        const Slab<T> whole = d.forward(x, {0, in.h}, true), down = d.backward(x, dy, {0, in.h}, {0, in.h}, true);
        CHECK(apart(y, whole) <= tolerance<T>);
        CHECK(apart(dx, down) <= tolerance<T>);
        CHECK(same(whole, d.forward(x, {0, in.h}, true, 1, true)));
        CHECK(same(down, d.backward(x, dy, {0, in.h}, {0, in.h}, true, 1, true)));
        for (const auto& rows : cuts_of(in.h))
          for (const Range r : rows)
            for (const Index hidden : {0, 1}) {
              CHECK(same_bits(whole.view(), d.forward(x, r, true, hidden).view(), r));
              const Slab<T> part = d.backward(x, dy, r, {0, in.h}, true, hidden);
              CHECK(part.intact());
              CHECK(same_bits(down.view(), part.view(), r));
              bool zeros = true;
              for (Index i = 0; i < in.n; ++i)
                for (Index row = 0; row < in.h; ++row)
                  for (Index e = 0; e < part.view().stride_row() && !r.contains({row, row + 1}); ++e)
                    zeros = zeros && static_cast<double>(part.view().row(i, 0, row)[e]) == 0;
              CHECK(zeros);
            }
      }
    }
}
TEST_CASE_TEMPLATE("with running statistics, and over channels, likewise", T, double, float, bfloat16, float16) {
  for (const Layer& layer :
       {norm_layer(Over::batch), norm_layer(Over::batch, 0, false), norm_layer(Over::channels), norm_layer(Over::channels, 0, false, 1e-3)})
    for (const Shape& in : shapes)
      for (const Index spare : {0, 500, 100'000}) {
        CAPTURE(norm_name(layer.norm));
        CAPTURE(to_string(in));
        const Map x = as<T>(random_map(in, 3)), dy = as<T>(random_map(in, 4));
        NormRun<T> h(layer, in, false), d(layer, in, true);
        d.spare = spare;
        const Slab<T> y = d.forward(x, {0, in.h}, false), dx = d.backward(x, dy, {0, in.h}, {0, in.h}, false);
        CHECK(apart(h.forward(x, {0, in.h}, false), y) <= tolerance<T>);
        CHECK(apart(h.backward(x, dy, {0, in.h}, {0, in.h}, false), dx) <= tolerance<T>);
        CHECK(same(y, d.forward(x, {0, in.h}, false, 1, true)));
        CHECK(same(dx, d.backward(x, dy, {0, in.h}, {0, in.h}, false, 1, true)));
        for (const auto& cut : cuts_of(in.h)) {
          for (const Range r : cut) {
            CHECK(same_bits(y.view(), d.forward(x, r, false, 0).view(), r));
            CHECK(same_bits(dx.view(), d.backward(x, dy, r, {0, in.h}, false, 0).view(), r));
            h.parameter_gradients(x, dy, r, !(r == cut[0])), d.parameter_gradients(x, dy, r, !(r == cut[0]));
          }
          CHECK(gradients_apart(h, d) <= (sizeof(T) == 8 ? 1e-12 : 1e-6));
        }
      }
}
TEST_CASE("from the same statistics come the host's bits: both work out scales and shifts by one formula") {
  for (const Layer& layer : {norm_layer(Over::batch), norm_layer(Over::batch, 0, false, 1e-3), norm_layer(Over::group, 2)})
    for (const Shape& in : shapes) {
      CAPTURE(norm_name(layer.norm));
      CAPTURE(to_string(in));
      const Map x = random_map(in, 3);
      NormRun<double> h(layer, in, false), d(layer, in, true);
      const bool statistics = layer.norm.over == Over::group;
      if (statistics) h.find_statistics(x, pieces_of(in)[0]), d.statistics = h.statistics;
      CHECK(same(h.forward(x, {0, in.h}, statistics), d.forward(x, {0, in.h}, statistics)));
    }
}
TEST_CASE_TEMPLATE("SlabBatchNorm takes the statistics of its rows, as the host's does", T, double, float, bfloat16, float16) {
  for (const Layer& layer : {norm_layer(Over::slab), norm_layer(Over::slab, 0, false, 1e-3)})
    for (const Shape& in : shapes) {
      if (in.h == 1) continue;
      CAPTURE(to_string(in));
      const Map x = as<T>(random_map(in, 3)), dy = as<T>(random_map(in, 4));
      NormRun<T> h(layer, in, false), d(layer, in, true);
      for (const auto& cut : cuts_of(in.h))
        for (const Range r : cut)
          for (const Index hidden : {0, 1}) {
            if (r.size() * in.n * in.w < 2) continue;
            const Slab<T> y = d.forward(x, r, false, hidden), dx = d.backward(x, dy, r, {0, in.h}, false, hidden);
            CHECK(apart(h.forward(x, r, false), y) <= 2 * tolerance<T>);
            CHECK(apart(h.backward(x, dy, r, {0, in.h}, false), dx) <= 2 * tolerance<T>);
            CHECK(same(y, d.forward(x, r, false, hidden, true)));
            if (!layer.norm.affine) continue;
            for (NormRun<T>* n : {&h, &d}) n->parameter_gradients(x, dy, r, !(r == cut[0]) || hidden == 1);
            CHECK(gradients_apart(h, d) <= (sizeof(T) == 8 ? 1e-12 : 2e-6));
          }
    }
  NormRun<double> none(norm_layer(Over::slab), {2, 3, 4, 5}, true);
  const Map x = random_map(none.node.in, 3), dy = random_map(none.node.in, 4);
  none.parameter_gradients(x, dy, {1, 1}, false);
  CHECK(none.gradients[0] == Vector{0, 0, 0});
}
TEST_CASE_TEMPLATE("a large mean costs no digits of the variance", T, double, float) {
  const double mean = sizeof(T) == 8 ? 1e4 : 100, deviation = sizeof(T) == 8 ? 1e-2 : 1;
  const Shape in{2, 16, 40, 64};
  for (const bool outlier : {false, true})
    for (const Layer& layer : {norm_layer(Over::batch), norm_layer(Over::group, 4), norm_layer(Over::group, 1)})
      for (const auto& cut : pieces_of(in)) {
        Map x = random_map(in, 9);
        for (double& v : x.value) v = mean + deviation * v;
        if (outlier)
          for (Index c = 0; c < 16; ++c) x.at(0, c, 0, 0) = 0;
        NormRun<T> h(layer, in, false), d(layer, in, true);
        h.find_statistics(as<T>(x), cut), d.find_statistics(as<T>(x), cut);
        for (std::size_t e = 0; e < d.statistics.size(); ++e) CHECK(std::abs(d.statistics[e] / h.statistics[e] - 1) < 1e-8);
      }
}
TEST_CASE("the batch's mean and variance are written with its last rows, and only then; of one element the variance is 0") {
  NormRun<double> d(norm_layer(Over::batch), {2, 3, 4, 5}, true);
  const Map x = random_map(d.node.in, 5);
  d.find_statistics(x, {{{0, 2}, {0, 3}}});
  CHECK(std::isnan(d.gradients[2][0]));
  NormRun<double> one(norm_layer(Over::batch), {1, 3, 1, 1}, true);
  const Map pixel = random_map(one.node.in, 5);
  one.find_statistics(pixel, pieces_of(one.node.in)[0]);
  CHECK(one.gradients[2] == pixel.value);
  CHECK(one.gradients[3] == Vector{0, 0, 0});
}
TEST_CASE_TEMPLATE("an activation in the same step gives the bits of one behind it", T, double, float, bfloat16, float16) {
  for (const Function function : {Function::relu, Function::leaky_relu, Function::silu, Function::sigmoid})
    for (const Layer& layer : {norm_layer(Over::batch), norm_layer(Over::group, 2), norm_layer(Over::channels)})
      for (const Shape& in : shapes) {
        CAPTURE(norm_name(layer.norm));
        CAPTURE(to_string(in));
        Layer after;
        after.activation = {function, 0.125};
        const LoopBench<T> activation(Node{.layer = after, .in = in, .out = in});
        NormRun<T> d(layer, in, true);
        const Map x = as<T>(random_map(in, 3));
        const bool sets = has_statistics(layer, true);
        if (sets) d.find_statistics(x, pieces_of(in)[0]);
        const Range rows{in.h / 2, in.h};
        const Slab<T> behind = d.forward(x, rows, sets), from(x, rows, in.c), y(in, rows, in.c);
        auto memory = activation.host.saved_memory(rows), alone = memory, wanted = memory;
        Operands<T> o;
        o.op = Op::forward;
        o.x = behind.view(), o.y = behind.view(), o.saved = activation.host.saved(wanted, rows);
        activation.run(o);
        o.activation = &activation.node();
        o.x = from.view(), o.y = y.view(), o.saved = activation.host.saved(memory, rows);
        o.statistics = sets ? d.statistics.data() : nullptr;
        d.run(o);
        CHECK(same(y, behind));
        CHECK(memory == wanted);
        o.y = {}, o.saved = activation.host.saved(alone, rows);
        d.run(o);
        CHECK(alone == wanted);
      }
}
TEST_CASE("a slab without rows adds nothing, and begins sets and gradients all the same") {
  NormRun<double> d(norm_layer(Over::group, 2), {2, 4, 3, 3}, true);
  const Map x = random_map(d.node.in, 3), dy = random_map(d.node.in, 4);
  d.find_statistics(x, {{{0, 2}, {0, 0}}});
  CHECK(d.statistics == Vector(d.statistics.size(), 0.0));
  d.find_statistics(x, pieces_of(d.node.in)[0]);
  d.find_sums(x, dy, {{{0, 2}, {1, 1}}});
  CHECK(d.sums == Vector(d.sums.size(), 0.0));
  CHECK(d.gradients[0] == Vector(4, 0.0));
}
TEST_CASE("passes of a norm over a batch are one kernel each, of whole pieces of channels; of others two") {
  for (const Index channels : {8, 48, 6}) {
    const Node node{.layer = norm_layer(Over::batch), .in = {2, channels, 3, 4}, .out = {2, channels, 3, 4}};
    const auto address = [](Index at) { return reinterpret_cast<float*>(at * 65536); };   // nothing is touched
    Operands<float> o;
    o.node = &node;
    o.statistics = o.sums = reinterpret_cast<double*>(address(1));
    o.workspace = reinterpret_cast<std::byte*>(address(2)), o.workspace_bytes = 65536;
    o.x = dense_view(address(3), 2, channels, {0, 3}, 4, channels);
    o.y = dense_view(address(4), 2, channels, {0, 3}, 4, channels);
    std::vector<loops::RecordedLoop> list;
    loops::norm_forward(loops::LaunchRecorder{&list}, o);
    o.y = {};
    o.dy = dense_view(address(4), 2, channels, {0, 3}, 4, channels), o.dx = dense_view(address(5), 2, channels, {0, 3}, 4, channels);
    o.op = Op::backward_data;
    loops::norm_backward_data(loops::LaunchRecorder{&list}, o);
    CHECK(list.size() == (channels % 8 == 0 ? 2 : 4));
  }
}
