// Sums whose last block adds up the parts: the same bits in whatever order blocks are run, one after the other or at the same time, and tallies
// that are 0 again, so that a loop may follow another.
#include "loops_case.hpp"
#include <lrcnn/backend/cudnn/loops/launch_recorder.hpp>
#include <numeric>
#include <thread>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Runs units in an order that a seed chooses, in turn by several threads.
struct AnyOrder {
  std::uint64_t seed;
  int threads = 1;
};
template <class F>
void for_units(const AnyOrder& order, Index count, const F& f) {
  std::vector<Index> units(static_cast<std::size_t>(count));
  std::iota(units.begin(), units.end(), Index{0});
  const Random random(order.seed);
  for (std::size_t i = units.size(); i > 1; --i) std::swap(units[i - 1], units[random.below(i, i)]);
  std::vector<std::thread> others;
  for (int thread = 0; thread < order.threads; ++thread)
    others.emplace_back([&, thread] {
      for (auto i = static_cast<std::size_t>(thread); i < units.size(); i += static_cast<std::size_t>(order.threads)) f(units[i]);
    });
  for (std::thread& other : others) other.join();
}
/// Statistics, sums and gradients of a norm over a batch or over groups, or of a bias, as one list of numbers.
template <class T, class Exec>
std::vector<double> sums(const Exec& exec, const Shape& s, Index groups, Tallies& tallies) {
  using A = master_t<T>;
  Layer layer{.kind = Kind::norm};
  layer.norm = {.over = groups > 0 ? Norm::Over::group : Norm::Over::batch, .groups = groups};
  const Node node{.layer = layer, .in = s, .out = s};
  const auto values = [&](std::uint64_t seed) {
    const auto numbers = random_vector(s.n * s.c * s.h * s.w, seed);
    return std::vector<T>(numbers.begin(), numbers.end());
  };
  const std::vector<T> x = values(1), dy = values(2);
  std::vector<A> parameters(static_cast<std::size_t>(s.c), A(1)), gradients(static_cast<std::size_t>(5 * s.c), A(3));
  std::vector<double> statistics(static_cast<std::size_t>(statistics_bytes(layer.norm, s.c, s.n)) / sizeof(double)),
      sums(static_cast<std::size_t>(sums_bytes(layer, s.c, s.n)) / sizeof(double));
  Operands<T> o;
  o.node = &node;
  o.x = dense_view(x.data(), s.n, s.c, {0, s.h}, s.w, s.c), o.dy = dense_view(dy.data(), s.n, s.c, {0, s.h}, s.w, s.c);
  o.statistics = statistics.data(), o.sums = sums.data(), o.tallies = tallies.data();
  for (std::size_t p = 0; p < 4; ++p) o.parameters[p] = parameters.data(), o.d_parameters[p] = gradients.data() + static_cast<Index>(p) * s.c;
  std::vector<double> workspace;
  for (const bool again : {false, true})   // the second adds its rows to those of the first
    for (const Op op : {Op::statistics, Op::backward_sums}) {
      o.op = op, o.accumulate = o.accumulate_parameters = again;
      o.workspace_bytes = loops::workspace_bytes(o);
      workspace.assign(static_cast<std::size_t>(o.workspace_bytes) / sizeof(double) + 1, std::nan(""));
      o.workspace = reinterpret_cast<std::byte*>(workspace.data());
      if (op == Op::statistics) loops::norm_statistics(exec, o);
      else loops::norm_backward_sums(exec, o);
    }
  workspace.assign(static_cast<std::size_t>(loops::bias_gradient_bytes<T>(s.n, s.c, s.h, s.w)) / sizeof(double) + 1, std::nan(""));
  loops::bias_gradient(exec, o.dy, gradients.data() + 4 * s.c, true, reinterpret_cast<std::byte*>(workspace.data()), tallies.data());
  std::vector<double> all(gradients.begin(), gradients.end());
  all.insert(all.end(), statistics.begin(), statistics.end());
  all.insert(all.end(), sums.begin(), sums.end());
  return all;
}
template <class T>
void check_orders(const Shape& s, Index groups) {
  INFO(s.n, "x", s.c, "x", s.h, "x", s.w, ", groups ", groups);
  Tallies tallies;
  const std::vector<double> wanted = sums<T>(on_host, s, groups, tallies);
  CHECK(tallies.all_zero());
  CHECK(std::all_of(wanted.begin(), wanted.end(), [](double v) { return std::isfinite(v); }));
  for (const AnyOrder& order : {AnyOrder{1}, AnyOrder{2}, AnyOrder{3, 4}}) {
    const std::vector<double> got = sums<T>(order, s, groups, tallies);
    CHECK(std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(double)) == 0);
    CHECK(tallies.all_zero());
  }
}
}   // namespace
TEST_CASE("the last block adds up the parts with the same bits, whichever block it is") {
  check_orders<float>({2, 8, 200, 170}, 0);        // parts of one column, of which a thread takes a few
  check_orders<bfloat16>({2, 64, 130, 120}, 0);    // of several
  check_orders<bfloat16>({1, 256, 132, 130}, 0);   // more of them than a thread reads at once
  check_orders<float>({1, 512, 70, 65}, 0);
  check_orders<float>({2, 300, 20, 20}, 0);    // the last column is not full
  check_orders<bfloat16>({3, 600, 5, 5}, 0);   // one part
  check_orders<float>({3, 12, 60, 60}, 3);     // sets of their own
  check_orders<bfloat16>({2, 16, 170, 170}, 4);
}
TEST_CASE("a sum of parts has no more tallies than are promised, and needs none for one part") {
  for (const Index channels : {1, 8, 64, 200, 256, 257, 2048, 10'000})
    for (const Index sets : {1, 2, 8, 9, 200, 264, 265, 5000})
      for (const Index positions : {1, 100, 20'000, 4'000'000}) {
        const loops::Tiles tiles = loops::tiles_of<bfloat16>(sets, positions, channels);
        CHECK((tiles.parts() == 1 || tiles.sets * tiles.columns < loops::most_tallies));
      }
}
TEST_CASE("statistics, sums and bias gradients are one kernel each where all images share statistics, and two in groups") {
  for (const bool batch : {true, false}) {
    Layer layer{.kind = Kind::norm};
    layer.norm = {.over = batch ? Norm::Over::batch : Norm::Over::group, .groups = batch ? 0 : 4};
    const Node node{.layer = layer, .in = {2, 64, 30, 40}, .out = {2, 64, 30, 40}};
    const auto address = [](Index at) { return reinterpret_cast<float*>(at << 24); };   // nothing is touched
    Operands<float> o;
    o.node = &node;
    o.statistics = o.sums = reinterpret_cast<double*>(address(1));
    o.workspace = reinterpret_cast<std::byte*>(address(2)), o.workspace_bytes = 1 << 24;
    o.x = dense_view(address(3), 2, 64, {0, 30}, 40, 64), o.dy = dense_view(address(4), 2, 64, {0, 30}, 40, 64);
    std::vector<loops::RecordedLoop> list;
    const loops::LaunchRecorder recorder{&list};
    loops::norm_statistics(recorder, o);
    loops::norm_backward_sums(recorder, o);
    loops::bias_gradient(recorder, o.dy, address(5), false, o.workspace, nullptr);
    CHECK(list.size() == (batch ? 3 : 5));
  }
}
