// Steps that one loop carries out give the bits of those steps one after the other, wherever they lie in memory, and whatever order units come in; so
// does the gradient of a bias that is made along.
#include "loops_case.hpp"
#include <lrcnn/backend/cudnn/loops/launch_recorder.hpp>
#include <map>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Runs units from the last to the first; of blocks, and of their threads in each phase, too.
struct Backwards {};
template <class F>
void for_units(const Backwards&, Index count, const F& f) {
  for (Index unit = count; unit-- > 0;) f(unit);
}
template <class F>
void for_blocks(const Backwards& exec, Index count, const F& f) {
  for_units(exec, count, loops::HostBlock<F, true>{f});
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
  Node convolution{.layer = {.kind = Kind::conv, .channels = 4, .bias = true}};
  std::vector<T> memory;
  std::vector<std::uint8_t> bits;
  std::vector<Operands<T>> steps;
  std::vector<float> gradient;
  std::vector<double> workspace;
  std::vector<std::uint32_t> tallies = std::vector<std::uint32_t>(static_cast<std::size_t>(loops::most_tallies), 0);
  explicit Case(std::uint64_t seed) {
    Draw draw{Random(seed)};
    n = 1 + draw.below(2), c = std::array{3, 8, 5, 16}[static_cast<std::size_t>(draw.below(4))],
    w = draw.below(20) > 0 ? 1 + draw.below(4) : 200 + draw.below(100);
    const Shape shape{n, c, 8, w};
    Layer layer;
    layer.activation = {Function::relu, 0};
    relu = {.layer = layer, .in = shape, .out = shape};
    sum = {.layer = Layer{.kind = Kind::sum}, .in = shape, .in2 = shape, .out = shape};
    gradient.assign(static_cast<std::size_t>(c), 0.5F);
    workspace.assign(1000, std::nan(""));
    const Index map = n * c * 8 * w;
    const auto values = random_vector(6 * map, seed + 1);
    for (const double v : values) memory.push_back(static_cast<T>(v));
    bits.assign(static_cast<std::size_t>(n * 8 * ceil_div(w * c, Index{8})), std::uint8_t(0x5a));
    while (steps.size() < 6) {
      const auto last = std::find_if(steps.rbegin(), steps.rend(), [&](const Operands<T>& o) { return o.node == &relu; });
      if (last != steps.rend() && last->dx.data != nullptr && draw.below(2) == 0) {   // steps may lie between
        steps.push_back(sums(*last, draw.below(2) == 0));
        continue;
      }
      const Operands<T> drawn = step(draw, map);
      auto own = *cudnn::PointwiseStep<T>::of(drawn);
      own.saved = {};
      if (const auto match = own.match(own); match.goes && match.row.value_or(0) == 0)
        steps.push_back(drawn);   // its operands do not overlap, unless they are the same
    }
  }
  /// The gradient of the bias of a convolution that reads what a step writes.
  Operands<T> sums(const Operands<T>& behind, bool accumulate) {
    Operands<T> o;
    o.op = Op::backward_parameters, o.node = &convolution, o.accumulate = accumulate, o.dy = behind.dx;
    o.d_parameters[1] = gradient.data();
    o.workspace = reinterpret_cast<std::byte*>(workspace.data()), o.workspace_bytes = static_cast<Index>(workspace.size() * sizeof(double));
    return o;
  }
  Operands<T> step(Draw& draw, Index map) {
    const Index first = 2 * draw.below(3);
    const Range own{first, first + std::array{2, 2, 1, 4}[static_cast<std::size_t>(draw.below(4))]};
    const auto view = [&] {   // some overlap
      const Index place = draw.below(5), offset = draw.below(6) == 0 ? draw.below(map) : 0,
                  row = draw.below(3) == 0 ? draw.below(9 - own.size()) : first;
      return dense_view(memory.data() + place * map + offset, n, c, {0, 8}, w, c).slice(Range{row, row + own.size()});
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
  // By the number of steps: all, with steps that begin at other rows, with sums; with sums and moves behind the ReLU.
  std::map<std::size_t, int> seen, beside, with_sums, with_both;
  for (std::uint64_t seed = 0; seed < 12000; ++seed) {
    CAPTURE(seed);
    Case<T> a(seed);
    const cudnn::PointwiseRun<T> run(a.steps, a.steps.size());
    ++seen[run.steps], with_sums[run.steps] += run.sums != nullptr;
    with_both[run.steps] += run.sums != nullptr && !run.work.empty() && run.work.back().moves();
    beside[run.steps] += std::any_of(run.work.begin(), run.work.end(), [](const auto& step) { return step.row > 0; });
    if (run.steps < 2 && !run.sums) continue;
    const auto memory = a.memory;
    const auto bits = a.bits;
    const auto gradient = a.gradient;
    for (std::size_t i = 0; i < run.steps; ++i) loops::run(on_host, a.steps[i]);
    if (const Operands<T>* o = run.sums) loops::bias_gradient(on_host, o->dy, o->d_parameters[1], o->accumulate, o->workspace, a.tallies.data());
    const auto wanted = a.memory;
    const auto wanted_bits = a.bits;
    const auto wanted_gradient = a.gradient;
    std::copy(memory.begin(), memory.end(), a.memory.begin()), std::copy(bits.begin(), bits.end(), a.bits.begin());   // where views point
    std::copy(gradient.begin(), gradient.end(), a.gradient.begin());
    const std::span<const cudnn::PointwiseStep<T>> work(run.work);
    const auto start = [&](const auto& exec) {
      if (run.sums) loops::run_together(exec, work, *run.sums, a.tallies.data());
      else loops::run_together(exec, work);
    };
    if (seed % 2 == 0) start(Backwards{});
    else start(on_host);
    REQUIRE(std::memcmp(a.memory.data(), wanted.data(), wanted.size() * sizeof(T)) == 0);
    REQUIRE(a.bits == wanted_bits);
    REQUIRE(a.gradient == wanted_gradient);
    std::vector<loops::RecordedLoop> list;
    start(loops::LaunchRecorder{&list});
    REQUIRE(list.size() <= 1);
  }
  for (const std::size_t steps : {1, 2, 3, 4}) CHECK(seen[steps] > 20);
  for (const std::size_t steps : {2, 3}) CHECK(std::min(beside[steps], with_sums[steps]) > 20);
  CHECK(std::min(with_sums[1], with_both[2]) > 20);
}
