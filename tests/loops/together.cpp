// Steps that one loop carries out give the bits of those steps one after the other, wherever they lie in memory, and whatever order units come in.
#include "loops_case.hpp"
#include <lrcnn/backend/cudnn/loops/launch_recorder.hpp>
#include <map>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Runs units from the last to the first.
struct Backwards {};
template <class F>
void for_units(const Backwards&, Index count, const F& f) {
  for (Index unit = count; unit-- > 0;) f(unit);
}
/// Draws numbers.
struct Draw {
  Random random;
  std::uint64_t at = 0;
  Index below(Index count) { return static_cast<Index>(random.below(at++, static_cast<std::uint64_t>(count))); }
};
/// Steps on pieces of one memory, which often are the same pieces.
template <class T>
struct Case {
  Index n, c, w;
  Node relu, sum;
  std::vector<T> memory;
  std::vector<std::uint8_t> bits;
  std::vector<Operands<T>> steps;
  explicit Case(std::uint64_t seed) {
    Draw draw{Random(seed)};
    n = 1 + draw.below(2), c = std::array{3, 8, 5, 16}[static_cast<std::size_t>(draw.below(4))], w = 1 + draw.below(4);
    const Shape shape{n, c, 8, w};
    Layer layer;
    layer.activation = {Function::relu, 0};
    relu = {.layer = layer, .in = shape, .out = shape};
    sum = {.layer = Layer{.kind = Kind::sum}, .in = shape, .in2 = shape, .out = shape};
    const Index map = n * c * 8 * w;
    const auto values = random_vector(6 * map, seed + 1);
    for (const double v : values) memory.push_back(static_cast<T>(v));
    bits.assign(static_cast<std::size_t>(n * 8 * ceil_div(w * c, Index{8})), std::uint8_t(0x5a));
    while (steps.size() < 6) {
      const Operands<T> drawn = step(draw, map);
      auto own = *cudnn::PointwiseStep<T>::of(drawn);
      own.saved = {};
      if (own.goes_with(own)) steps.push_back(drawn);   // its operands do not overlap, unless they are the same
    }
  }
  Operands<T> step(Draw& draw, Index map) {
    const auto rows = [&] {
      const Index first = 2 * draw.below(3);
      return Range{first, first + 2};
    };
    const Range own = rows();
    const auto view = [&] {   // some overlap
      const Index place = draw.below(5), offset = draw.below(6) == 0 ? draw.below(map) : 0;
      return dense_view(memory.data() + place * map + offset, n, c, {0, 8}, w, c).slice(draw.below(8) == 0 ? rows() : own);
    };
    const auto moved = [](auto v, Range r) {
      v.row0 = r.begin;
      return v;
    };
    Operands<T> o;
    const Index kind = draw.below(5);
    const View<T> from = moved(view(), own), to = moved(view(), own);
    const View<std::uint8_t> saved = saved_view(bits.data(), relu.layer, n, c, {0, 8}, w, c).slice(own);
    if (kind < 2) {
      o.op = kind == 0 ? Op::copy : Op::add, o.x = from, o.y = to;
    } else if (kind == 2) {
      o.op = Op::forward, o.node = &relu, o.x = from;
      if (draw.below(4) > 0) o.y = to;
      if (draw.below(2) == 0 || o.y.data == nullptr) o.saved = saved;
    } else if (kind == 3) {
      o.op = Op::backward_data, o.node = &relu, o.dy = from, o.dx = draw.below(2) == 0 ? from : to;
      if (draw.below(2) == 0) o.saved = saved;
      else o.y = moved(view(), own);
    } else {
      o.op = Op::backward_data, o.node = &sum, o.operand = 1, o.dy = from, o.dx = draw.below(3) == 0 ? from : to;
    }
    return o;
  }
};
}   // namespace
TEST_CASE_TEMPLATE("steps that go together give the bits of steps one after the other", T, float, bfloat16) {
  std::map<std::size_t, int> seen;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    CAPTURE(seed);
    Case<T> a(seed);
    const cudnn::PointwiseRun<T> run(a.steps);
    ++seen[run.steps];
    if (run.steps < 2) continue;
    const auto memory = a.memory;
    const auto bits = a.bits;
    for (std::size_t i = 0; i < run.steps; ++i) loops::run(on_host, a.steps[i]);
    const auto wanted = a.memory;
    const auto wanted_bits = a.bits;
    std::copy(memory.begin(), memory.end(), a.memory.begin()), std::copy(bits.begin(), bits.end(), a.bits.begin());   // where views point
    if (!run.work.empty()) {
      if (seed % 2 == 0) loops::run_together<Backwards, T>(Backwards{}, run.work);
      else loops::run_together<loops::HostSystem, T>(on_host, run.work);
    }
    REQUIRE(std::memcmp(a.memory.data(), wanted.data(), wanted.size() * sizeof(T)) == 0);
    REQUIRE(a.bits == wanted_bits);
    std::vector<loops::RecordedLoop> list;
    loops::run_together<loops::LaunchRecorder, T>(loops::LaunchRecorder{&list}, run.work);
    REQUIRE(list.size() <= 1);
  }
  for (const std::size_t steps : {1, 2, 3, 4}) CHECK(seen[steps] > 20);
}
